// Bounds of every value of a function, from the ranges of its inputs forward through the transfer
// rules of ir/ops/interval.h.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/ops/interval.h"

namespace backcast {

/// What a caller promises about floating-point inputs: finite, and within a range. Integers lie
/// within their type's range anyhow.
struct InputBounds {
  static constexpr double kDefault = 1e6;

  bool known = true;  // false: nothing is promised
  double low = -kDefault, high = kDefault;
  std::map<std::string, std::pair<double, double>> named;  // of one input, before the others'

  /// "inputs within ±1e+06, \"x\" within 0..255"; empty when nothing is known.
  std::string describe() const;
};

/// Parses `off`, `LO,HI` or `NAME=LO,HI`, one after the other. CompileError for anything else.
InputBounds parse_input_bounds(const std::vector<std::string>& words);

/// The constant whose elements a value has: its own, or one converted to a wider integer type; null
/// for anything else.
const Literal* known_elements(const Function& function, ValueId id);

/// By value number. Tuples have no bounds: theirs are empty.
std::vector<Bounds> bounds_of_values(const Module& module, const Function& function,
                                     const InputBounds& inputs);

}  // namespace backcast
