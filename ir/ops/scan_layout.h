// Where the operands and results of a scan stand.
#pragma once

#include "ir/graph/module.h"
#include "ir/ops/op_attrs.h"

namespace backcast::ops {

/// Operands: trips, carries…, xs…, invariants…. Body parameters: the same without trips. Results:
/// carries…, ys…, and with a trajectory: the carries before each trip…, the number of trips.
struct ScanLayout {
  int64_t carries = 0, xs = 0, invariants = 0, ys = 0;
  bool trajectory = false;

  int64_t first_x() const { return 1 + carries; }
  int64_t first_invariant() const { return 1 + carries + xs; }
  int64_t first_y() const { return carries; }
  int64_t first_trajectory() const { return carries + ys; }
  int64_t executed() const { return carries + ys + carries; }
};

/// `node` is a scan whose type is inferred.
ScanLayout scan_layout(const Node& node);

}  // namespace backcast::ops
