// Loops over bands of trips (loop_bands.h), one behind the other, run as one where the second only
// needs of the first what the same band gave: recurrent layers on top of each other, whose rows
// between them then exist for one band.
#pragma once

#include <cstddef>

#include "ir/loop/program.h"

namespace backcast {

/// How many trips of a loop are a band: as many as register tiles have rows, or nearly, or each.
enum class TripsTogether { as_tiles, one };

/// Joins loops of an entry point's steps; whether there were any.
bool join_bands(loop::Program& program, size_t entry, TripsTogether together);

}  // namespace backcast
