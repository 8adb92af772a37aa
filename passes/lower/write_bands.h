// Writes the steps of a region whose trips are known: calls of kernels for some rows, copies that
// move windows along, and a loop around trips that are alike.
#pragma once

#include <vector>

#include "ir/loop/program.h"
#include "passes/lower/row_borders.h"
#include "passes/lower/row_trips.h"

namespace backcast {

/// What takes the place of the region's steps. Adds buffers, kernels and symbols to `program`, of
/// which the region's steps must be no part.
std::vector<loop::Step> write_bands(loop::Program& program, const RowRegion& region,
                                    const RowTrips& trips, Borders borders);

}  // namespace backcast
