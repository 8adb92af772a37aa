// A window's gradient seen from the operand: Σ over k of x[k + t - p]·y[k] for every tap t, with x
// padded, is Σ over q of x[q]·y[q - t + p], with y cut off at its ends. All taps then read the same
// element of x in a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/schedule/nest.h"

namespace backcast {

struct ShiftedTaps {
  loop::Definition definition;
  std::vector<std::string> taps;  // axes of results, in the order of the sum's
  std::vector<double> inside;     // the share of steps that all taps along such an axis take
};

/// The sum of products in which parameter `factor` depends on no tap; nothing where it has none, or
/// where steps and taps move through it at different speeds.
///   Ensures: the same products in the same order.
std::optional<ShiftedTaps> shift_taps(const loop::Definition& definition,
                                      const std::string& factor);

}  // namespace backcast
