// Loops over the tiles of a block, within which minimal filtering transforms, and the transform of
// the input that forward products and gradients begin with. Internal to the pass `winograd`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/loop/stmt.h"
#include "ir/target/target_info.h"
#include "passes/winograd/layer.h"
#include "passes/winograd/transform.h"

namespace backcast {

/// How the outputs are cut: tiles of m × m, blocks of tiles that go through all stages before the
/// next block begins.
struct WinogradForm {
  int m = 2;
  int64_t tile_rows = 0, tile_columns = 0;  // of an image; the last ones may stick out
  // Tiles of a block; they divide the above. Of several images only if it has all of theirs.
  int64_t block_images = 1, block_rows = 0, block_columns = 0;
  int64_t input_stride = 0, output_stride = 0;  // elements between two frequencies' planes
  // Parts with scratch of their own, which threads may share out: equal numbers of blocks of
  // images, or else of rows of tiles. Only where blocks are as wide as an image.
  int64_t pieces = 1, piece_blocks = 0;
  bool pieces_of_images = false;

  int64_t frequencies() const { return int64_t{m + 2} * (m + 2); }
  int64_t blocks_across() const { return tile_columns / block_columns; }
  int64_t blocks() const { return tile_rows / block_rows * blocks_across(); }  // of an image
  int64_t block_tiles() const { return block_images * block_rows * block_columns; }
  int64_t scratch_bytes(const WinogradConv& conv) const {
    return pieces * frequencies() *
           (input_stride * byte_size(loop::element_of(conv.spectrum())) +
            output_stride * byte_size(loop::element_of(conv.scalar)));
  }
};

WinogradForm winograd_form(const WinogradConv& conv, int m, int64_t block_images,
                           int64_t block_rows, int64_t block_columns, const TargetInfo& target);

inline constexpr int kWinogradPatch = kMostFrequencies * kMostFrequencies;

/// Statements under construction; every value gets a name of its own.
class TileBody {
 public:
  TileBody(loop::Type type, bool use_fma, int& counter) : ops_{type, use_fma}, counter_(counter) {}

  loop::Expr name(const loop::Expr& value, const std::string& base = "t");
  // The arithmetic of transform.h.
  loop::Expr add(const loop::Expr& a, const loop::Expr& b) { return name(ops_.add(a, b)); }
  loop::Expr sub(const loop::Expr& a, const loop::Expr& b) { return name(ops_.sub(a, b)); }
  loop::Expr times(double k, const loop::Expr& a) { return name(ops_.times(k, a)); }
  loop::Expr scaled(double k, const loop::Expr& a, const loop::Expr& b) {
    return name(ops_.scaled(k, a, b));
  }

  std::vector<loop::Stmt> statements;

 private:
  ExprOps ops_;
  int& counter_;
};

inline constexpr const char* kPiece = "piece";

/// Loops over the tiles of a block, around what a stage does with each.
class TileLoops {
 public:
  TileLoops(const WinogradConv& conv, const WinogradForm& form, bool use_fma)
      : conv_(conv), form_(form), type_{conv.scalar, 1}, use_fma_(use_fma) {}

 protected:
  ~TileLoops() = default;
  /// `lane` runs over `lanes` channels.
  loop::Stmt tiles(const std::string& lane, int64_t lanes);
  /// Writes one tile, whose first output is at row y_ and column x_ of image image_, for a channel
  /// lane_; it is the tile_-th of the block.
  virtual void write_tile(TileBody& body) = 0;

  /// Element of plane `frequency` for the tile and lane at hand.
  loop::Expr plane_index(int64_t frequency, int64_t stride, int64_t lanes,
                         const loop::Expr& lane) const {
    const loop::Expr plane = loop::Expr(frequency * stride) + tile_ * loop::Expr(lanes) + lane;
    if (form_.pieces == 1) return plane;
    return loop::var(kPiece) * loop::Expr(form_.frequencies() * stride) + plane;
  }

  const WinogradConv& conv_;
  const WinogradForm& form_;
  loop::Type type_;
  bool use_fma_;
  loop::Expr image_, y_, x_, tile_, lane_;

 private:
  TileBody body() { return TileBody(type_, use_fma_, counter_); }
  int counter_ = 0;
};

/// Transforms square patches both ways, with zeros for what lies outside of a tensor.
class PatchTransform : public TileLoops {
 protected:
  PatchTransform(const WinogradConv& conv, const WinogradForm& form, int size, bool use_fma)
      : TileLoops(conv, form, use_fma), size_(size) {}
  ~PatchTransform() = default;

  /// Whether row (column) `at` of a patch lies inside of the tensor; empty: for every tile.
  virtual loop::Expr row_inside(int at) const = 0;
  virtual loop::Expr column_inside(int at) const = 0;
  virtual loop::Expr load(int i, int j) const = 0;
  virtual void transform(const loop::Expr* d, loop::Expr* t, TileBody& body) const = 0;
  virtual loop::Stmt store(int frequency, const loop::Expr& value) const = 0;

  /// Whether origin + shift is in [first, end), for an origin that goes by tiles.
  loop::Expr inside(const loop::Expr& origin, int64_t tiles, int64_t shift, int64_t first,
                    int64_t end) const;
  /// `suffix` keeps apart the names of patches of one tile.
  void write_patch(TileBody& body, const std::string& suffix = {}) const;

 private:
  /// A register allocation that holds `values` where `condition` holds, zeros elsewhere.
  void guarded(TileBody& body, const std::string& name, const loop::Expr& condition,
               const std::vector<std::pair<int, loop::Expr>>& values) const;
  std::string edge(const char* side, int at, const std::string& suffix) const;
  void load_row(TileBody& body, int i, const loop::Expr& condition,
                const std::vector<loop::Expr>& column_in, const std::string& suffix) const;
  void load_column(TileBody& body, int j, const loop::Expr& condition,
                   const std::vector<loop::Expr>& row_in, const std::string& suffix) const;

  int size_;  // of a side
};

/// Statements that transform the input's patches of a block into kSpectrum.
loop::Stmt input_transform_of(const WinogradConv& conv, const loop::Kernel& layer,
                              const WinogradForm& form, bool use_fma);
/// `stages` for all blocks, as the body of a kernel.
loop::Stmt for_all_blocks(const WinogradConv& conv, const WinogradForm& form,
                          const std::vector<loop::Stmt>& stages);
/// Where a definition within finds what is `at` its own indices of the planes of its piece.
std::vector<loop::Expr> in_piece(const WinogradForm& form, std::vector<loop::Expr> at);
/// The planes of a buffer that holds so many elements for each frequency.
loop::BufferParam planes_param(const std::string& name, loop::Scalar element,
                               const WinogradForm& form, int64_t elements);
/// A matrix of channels × features for each frequency.
loop::BufferParam matrices_param(const std::string& name, const WinogradConv& conv,
                                 const WinogradForm& form, loop::AccessMode mode);

/// The index along an axis that is added unless its extent is 1.
loop::Expr add_axis(std::vector<loop::Axis>& axes, const std::string& name, int64_t extent);
/// The values of a definition's reduction, if it has one, added up.
loop::Expr sum_of(loop::Definition& definition, const loop::Expr& value);

inline constexpr const char* kSpectrum = "spectrum";

}  // namespace backcast
