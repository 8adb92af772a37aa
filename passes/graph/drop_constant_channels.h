// Removes dead work inside tensors: channels (indices along any axis) that have the same value for
// every input the caller promises to give, as interval analysis finds them behind clipping
// activations, and channels that nobody reads. What a removed channel contributed goes into a
// constant added to the consuming contraction's result.
//   Requires: simplified, inlined calls; functions that are entries, in a module without state
//   (what is trained is no constant).
//   Ensures: for inputs within `inputs`, the same results to rounding; without a promise the same
//   bits, since sums of floats stay as they are. Parameters and results keep their types. A channel
//   goes only where all that read it can do without: sums, products by element, poolings and
//   depthwise convolutions carry it along, contractions with constants end it. At a zero-padded
//   border a constant that is not zero is none, so it stays.
#pragma once

#include "ir/graph/module.h"
#include "ir/target/target_info.h"
#include "passes/graph/intervals.h"

namespace backcast {

/// What was done.
struct DroppedChannels {
  int64_t channels = 0;  // of results of contractions
};

/// What channels come in: as many of those that could go stay as fill the last vector of the others
/// up to a power of two of lanes, or the last word of small integers. They cost nothing there, and
/// remainders of remainders do.
struct ChannelUnits {
  int64_t vector_bits = 0;  // of the target's registers, 0 without
  int64_t word = 1;         // small integers that a product takes at once
};
ChannelUnits channel_units(const TargetInfo& target);

/// Whether there are sums of integers: these are bounded by what their types hold, so that channels
/// can be found without any promise.
bool sums_integers(const Module& module);

Module drop_constant_channels(const Module& module, const InputBounds& inputs,
                              DroppedChannels* dropped = nullptr, const ChannelUnits& units = {});

}  // namespace backcast
