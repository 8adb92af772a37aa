// Values moved between the lanes of registers: sums across lanes and transposition of a block.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/loop/stmt.h"

namespace backcast {

using Combining = std::function<loop::Expr(const loop::Expr&, const loop::Expr&)>;
/// Gives a value a name, so that it is computed once.
using Naming = std::function<loop::Expr(const loop::Expr&)>;

/// The largest power of two that is at most `n`; 1 where there is none.
inline int64_t floor_power(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

/// A value whose lane i is all lanes of values[i] combined, halves with halves as reduce_lanes does
/// it; a scalar for one value.
///   Requires: equal types; numbers of lanes and of values are powers of two.
loop::Expr across_lanes(std::vector<loop::Expr> values, const Combining& combine,
                        const Naming& name);

/// Lane i of value j becomes lane j of value i.
///   Requires: as many values as lanes, a power of two.
std::vector<loop::Expr> transpose_lanes(std::vector<loop::Expr> values, const Naming& name);

/// What is turned from 32 bits into a narrower type as the last operation; else the value itself.
loop::Expr before_narrowing(const loop::Expr& value);

/// The same elements in the order: lane 0 of every value, lane 1 of every value, and so on.
///   Requires: equal types.
std::vector<loop::Expr> interleave_lanes(const std::vector<loop::Expr>& values, const Naming& name);

}  // namespace backcast
