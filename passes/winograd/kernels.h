// The kernel of a layer computed by minimal filtering. Internal to the pass `winograd`.
#pragma once

#include <string>

#include "passes/winograd/tiles.h"

namespace backcast {

/// The layer's kernel written anew: a loop over blocks around the transform of the input, a
/// definition of the products and the transform back with the layer's epilogue. Parameters: the
/// layer's own without the weights; before the written one, kFilter (read), kSpectrum and kProducts
/// (to work in, undefined before and after).
loop::Kernel winograd_kernel(const WinogradConv& conv, const loop::Kernel& layer,
                             const WinogradForm& form, bool use_fma);

inline constexpr const char* kProducts = "products";

}  // namespace backcast
