// Which chains run in bands (row_bands.h) so that no step needs more memory than so much, and how
// high those are: the cheapest choice, found step by step. An estimate: it knows no overlaps.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/loop/program.h"
#include "passes/lower/row_bands.h"

namespace backcast {

/// A choice for all entry points and what is told of it.
struct BandsForMemory {
  std::vector<BandChoice> choices;
  int64_t kept = 0;   // bytes of rows that are copied
  size_t banded = 0;  // steps that run in bands
};

/// The cheapest bands with which no step takes more than `goal` bytes of arena, or that exceed it
/// least.
///   Requires: fused definitions, before scheduling.
BandsForMemory bands_for_memory(const loop::Program& program, const BandCosts& costs, int64_t goal);

}  // namespace backcast
