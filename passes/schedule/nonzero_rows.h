// Which factor of a sum of products has zeros to leave out, and how the sum runs through it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// The rows in which a sum reads a rectified factor.
struct NonzeroRows {
  std::string factor, weight;      // parameters: whose zeros, and what they multiply
  loop::Expr flat_weight;          // index of the latter
  std::vector<std::string> axes;   // of the reduction, that run through a row of the factor
  std::vector<std::string> order;  // of all its axes: these are innermost
  int64_t count = 1, rows = 0;     // elements of a row; rows of the factor
  loop::Expr row;                  // that a result reads, over all axes but these
  bool is_guarded = false;         // some rows that are named lie outside of the factor
};

/// The rows of a sum of products of two floats, if one of them is rectified.
///   `is_rectified`: whether about half of a parameter's elements are zero;
///   `block`: an axis that is not to run through a row; may be empty.
std::optional<NonzeroRows> find_nonzero_rows(
    const loop::Definition& definition, const loop::Kernel& kernel,
    const std::function<bool(const std::string&)>& is_rectified, const std::string& block = {});

}  // namespace backcast
