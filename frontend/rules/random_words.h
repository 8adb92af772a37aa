// Random words: Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011)
// turns a key and a counter into bits with integer arithmetic alone. The same key gives the same
// words on every target, in any order, and they can be computed again.
#pragma once

#include "frontend/node_context.h"

namespace backcast {

inline constexpr ElementType kRandomWord = ElementType::u32;

/// What words are made of: a key, u32[2], and the number of the step, u32[].
struct RandomSource {
  ValueId key, step;
};

/// Of the training form, which has a state for it; CompileError inside of If, Loop and Scan.
RandomSource trained_source(NodeContext& n);

/// A key that never changes.
RandomSource fixed_source(NodeContext& n, uint32_t key);

/// One random word, u32, per element of `shape`. Each call has a range of counters of its own.
ValueId random_words(NodeContext& n, const RandomSource& source, const Shape& shape);

}  // namespace backcast
