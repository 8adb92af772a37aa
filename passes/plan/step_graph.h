// A list of steps, an entry point's or those that a loop holds, as a graph: who must precede whom,
// which arena storage each step touches, and where a step may write over an operand.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

struct StepGraph {
  /// `steps` are among those of the program.
  StepGraph(const loop::Program& program, const std::vector<loop::Step>& steps);

  /// A step that writes storage `written` may do so in the place of `read`, if it is the last one
  /// that touches it.
  struct Takeover {
    int32_t written = 0, read = 0;
  };
  struct StepNode {
    std::vector<int32_t> successors;
    int32_t predecessors = 0;      // how many
    std::vector<int32_t> storage;  // arena storages it touches, each once
    std::vector<Takeover> takeovers;
  };
  std::vector<StepNode> steps;
  std::vector<int64_t> bytes;  // per storage
  std::vector<int32_t> uses;   // per storage: steps that touch it, one more where it lives on
};

}  // namespace backcast
