// How many trips a Loop makes whose condition depends on nothing that only run time knows: while
// loops as TensorFlow writes them, which count up to a constant.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// A loop as far as it is known. Each list has an element per parameter of the body.
struct KnownLoop {
  /// What the parameter is in the first trip; none when run time tells.
  std::vector<std::optional<Literal>> start;
  /// Which element of the body's result the parameter is in the next trip; none: it stays.
  std::vector<std::optional<size_t>> next;
  size_t condition = 0;  // the parameter that says whether there is another trip
};

/// The number of trips, at most `limit`, found by running what the condition depends on; none when
/// that depends on data or takes more than some thousands of trips.
std::optional<int64_t> count_trips(const Module& module, const Function& body,
                                   const KnownLoop& loop, std::optional<int64_t> limit);

}  // namespace backcast
