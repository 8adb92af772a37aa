// The kernel of a layer computed by minimal filtering. Internal to the pass `winograd`.
#pragma once

#include <string>

#include "ir/target/target_info.h"
#include "passes/lower/winograd_layer.h"

namespace backcast {

/// How the outputs are cut: tiles of m × m, blocks of tiles that go through all three stages
/// before the next block begins.
struct WinogradForm {
  int m = 2;
  int64_t tile_rows = 0, tile_columns = 0;      // of an image; the last ones may stick out
  int64_t block_rows = 0, block_columns = 0;    // tiles of a block; they divide the above
  int64_t input_stride = 0, output_stride = 0;  // elements between two frequencies' planes

  int64_t frequencies() const { return int64_t{m + 2} * (m + 2); }
  int64_t blocks_across() const { return tile_columns / block_columns; }
  int64_t blocks() const { return tile_rows / block_rows * blocks_across(); }  // of an image
  int64_t block_tiles() const { return block_rows * block_columns; }
  int64_t scratch_bytes(const WinogradConv& conv) const {
    return frequencies() * (input_stride * byte_size(loop::element_of(conv.spectrum())) +
                            output_stride * byte_size(loop::element_of(conv.scalar)));
  }
};

WinogradForm winograd_form(const WinogradConv& conv, int m, int64_t block_rows,
                           int64_t block_columns, const TargetInfo& target);

/// The layer's kernel written anew: a loop over blocks around the transform of the input, a
/// definition of the products and the transform back with the layer's epilogue. Parameters: the
/// layer's own without the weights; before the written one, kFilter (read), kSpectrum and kProducts
/// (to work in, undefined before and after).
loop::Kernel winograd_kernel(const WinogradConv& conv, const loop::Kernel& layer,
                             const WinogradForm& form, bool use_fma);

inline constexpr const char* kFilter = "filter";
inline constexpr const char* kSpectrum = "spectrum";
inline constexpr const char* kProducts = "products";

}  // namespace backcast
