// Axes whose length run time tells, cut into strips of a constant width, so that vectors and
// register tiles run along them as along any other axis.
#pragma once

#include <functional>
#include <vector>

#include "passes/schedule/nest.h"

namespace backcast {

/// From element `begin` to `end` as many tiles of the first size as there are, then of each of the
/// others what those before left.
std::vector<TileSegment> tiles_between(const loop::Expr& begin, const loop::Expr& end,
                                       const std::vector<int64_t>& sizes);

/// Definitions of the same results: one of as many whole strips as there are, one of narrower ones
/// for what these leave, and one of single elements. One definition (the same) where the schedule
/// would not fill vectors, or the columns of a tile, along such an axis if it were long.
///   `choose`: the schedule of a definition whose extents are constants.
std::vector<loop::Definition> symbolic_strips(
    const loop::Definition& definition,
    const std::function<NestSchedule(const loop::Definition&)>& choose);

}  // namespace backcast
