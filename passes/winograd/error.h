// What minimal filtering costs a layer in precision. Internal to the pass `winograd`.
#pragma once

#include "passes/winograd/layer.h"
#include "passes/winograd/weights.h"

namespace backcast {

struct WinogradError {
  double direct = 0, transformed = 0;
};
/// Largest error of a layer's results over the largest result: in the layer's type against a wider
/// one, on tiles of random numbers, with its own weights or, where they
/// are not constant, random ones. Always the same random numbers. That of
/// integers is zero, or something is wrong. Of a gradient, for sums over 64 tiles.
WinogradError measure_error(const WinogradConv& conv, const WinogradWeights& weights, int m,
                            bool use_fma);

}  // namespace backcast
