// The gradient with respect to a layer's weights by minimal filtering: F(3×3, m×m), in which tiles
// of the gradient with respect to the results are the filters. Internal to the pass `winograd`.
#pragma once

#include "passes/winograd/tiles.h"

namespace backcast {

/// Sums over all tiles, in frequencies: a loop over blocks around the transforms of both operands
/// and a definition of the products. Parameters: the operands (read), kSpectrum, kGradientSpectrum
/// (to work in, undefined before and after) and kSums (written).
loop::Kernel gradient_sums_kernel(const WinogradConv& conv, const loop::Kernel& layer,
                                  const WinogradForm& form, bool use_fma);
/// The layer's definition with kSums, transformed back, in place of its sum over positions.
loop::Definition gradient_definition(const WinogradConv& conv, int m, bool use_fma);

inline constexpr const char* kGradientSpectrum = "gradient_spectrum";
inline constexpr const char* kSums = "sums";

}  // namespace backcast
