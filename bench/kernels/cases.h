// The contractions, reductions and rearrangements of training steps, as graph IR: what dense and
// convolutional networks and a transformer's encoder compute forwards and backwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace backcast::bench {

struct Case {
  std::string name;   // "conv_dw 16x16 3x3 32x32 b1"
  std::string text;   // a module
  int64_t macs = 0;   // 0: measured by the bytes it touches
  int in_place = -1;  // the input whose place the result takes
};

std::vector<Case> all_cases();

}  // namespace backcast::bench
