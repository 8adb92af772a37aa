// See tiles.h. Transforms are written for one channel, in a loop over channels that the
// schedule vectorises; where the image ends is asked only in the rows and columns of a patch that
// some tile has outside.
#include "passes/winograd/tiles.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

#include "ir/loop/visit.h"
#include "passes/winograd/words.h"

namespace backcast {

using loop::Expr;
using loop::Stmt;

namespace {

constexpr const char* kBlock = "block";
constexpr const char* kBlockImage = "block_image";
constexpr const char* kBlockRow = "block_row";

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Blocks of images in all.
Expr image_blocks(const WinogradConv& conv, const WinogradForm& form) {
  return conv.batches.is_constant() ? Expr(conv.batches.constant() / form.block_images)
                                    : loop::expr_of(conv.batches);
}

/// Which block it is, counted in blocks along each dimension, in the loops of for_all_blocks.
struct BlockPlace {
  Expr image, row, column;

  explicit BlockPlace(const WinogradForm& form) {
    if (form.pieces == 1) {
      const Expr block = loop::var(kBlock);
      image = loop::floor_div(block, Expr(form.blocks()));
      const Expr in_image = loop::floor_mod(block, Expr(form.blocks()));
      row = loop::floor_div(in_image, Expr(form.blocks_across()));
      column = loop::floor_mod(in_image, Expr(form.blocks_across()));
      return;
    }
    // Sums of loop variables show that pieces are independent.
    image = loop::var(kBlockImage);
    row = loop::var(kBlockRow);
    column = Expr(0);
    Expr& cut = form.pieces_of_images ? image : row;
    cut = loop::var(kPiece) * Expr(form.piece_blocks) + cut;
  }
};

}  // namespace

WinogradForm winograd_form(const WinogradConv& conv, int m, int64_t block_images,
                           int64_t block_rows, int64_t block_columns, const TargetInfo& target) {
  WinogradForm form;
  form.m = m;
  form.tile_rows = ceil_div(conv.rows.extent, m);
  form.tile_columns = ceil_div(conv.columns.extent, m);
  form.block_images = block_images;
  form.block_rows = block_rows;
  form.block_columns = block_columns;
  // Planes a power of two apart would share few sets of a cache.
  constexpr int64_t kLine = 64;
  const auto stride = [&](int64_t lanes, loop::Scalar scalar) {
    const int64_t elements = form.block_tiles() * lanes;
    const int64_t line = kLine / byte_size(loop::element_of(scalar));
    return target.vector_bits == 0 ? elements : ceil_div(elements, line) * line + line;
  };
  form.input_stride = stride(conv.spectrum_elements(), conv.spectrum());
  form.output_stride = stride(conv.features, conv.scalar);
  return form;
}

Expr TileBody::name(const Expr& value, const std::string& base) {
  const std::string variable = fmt::format("{}{}", base, counter_++);
  statements.push_back(loop::let(variable, value));
  return loop::var(variable, value.type());
}

Stmt TileLoops::tiles(const std::string& lane, int64_t lanes) {
  TileBody outer = body();
  const BlockPlace block(form_);
  image_ = conv_.batch.empty() ? Expr(0) : block.image;
  image_ = outer.name(image_ * Expr(form_.block_images), "image");
  const Expr top = outer.name(block.row * Expr(form_.block_rows * form_.m), "top");
  const Expr left = outer.name(block.column * Expr(form_.block_columns * form_.m), "left");

  TileBody tile = body();
  const Expr row = loop::var("tile_row"), column = loop::var("tile_column");
  tile_ = row * Expr(form_.block_columns) + column;
  if (form_.block_images > 1) {
    const Expr image = loop::var("tile_image");
    image_ = image_ + image;
    tile_ = image * Expr(form_.block_rows * form_.block_columns) + tile_;
  }
  y_ = tile.name(top + row * Expr(form_.m), "y");
  x_ = tile.name(left + column * Expr(form_.m), "x");
  lane_ = loop::var(lane);
  TileBody inner = body();
  write_tile(inner);
  tile.statements.push_back(loop::for_loop(
      lane, Expr(0), Expr(lanes), loop::block(inner.statements), loop::ForKind::vectorized));
  Stmt loops = loop::for_loop("tile_column", Expr(0), Expr(form_.block_columns),
                              loop::block(tile.statements));
  loops = loop::for_loop("tile_row", Expr(0), Expr(form_.block_rows), loops);
  if (form_.block_images > 1) {
    loops = loop::for_loop("tile_image", Expr(0), Expr(form_.block_images), loops);
  }
  outer.statements.push_back(loops);
  return loop::block(outer.statements);
}

void PatchTransform::guarded(TileBody& body, const std::string& name, const Expr& condition,
                             const std::vector<std::pair<int, Expr>>& values) const {
  body.statements.push_back(loop::alloc(name, type_, Expr(size_), loop::Memory::registers));
  std::vector<Stmt> present, absent;
  for (const auto& [at, value] : values) {
    present.push_back(loop::store(name, Expr(at), value));
    absent.push_back(loop::store(name, Expr(at), loop::constant(type_, 0)));
  }
  body.statements.push_back(loop::if_branch(condition, loop::block(present), loop::block(absent)));
}

Expr PatchTransform::inside(const Expr& origin, int64_t tiles, int64_t shift, int64_t first,
                            int64_t end) const {
  const int64_t highest = (tiles - 1) * form_.m + shift;
  const Expr position = origin + Expr(shift);
  Expr condition;
  if (shift < first) condition = position >= Expr(first);
  if (highest >= end) {
    const Expr before_end = position < Expr(end);
    condition = condition ? condition && before_end : before_end;
  }
  return condition;
}

void PatchTransform::write_patch(TileBody& body, const std::string& suffix) const {
  const int a = frequencies(form_.m);
  std::vector<Expr> row_in, column_in;
  for (int i = 0; i < size_; ++i) {
    row_in.push_back(row_inside(i));
    column_in.push_back(column_inside(i));
  }
  for (int i = 0; i < size_; ++i) {
    if (row_in[size_t(i)]) load_row(body, i, row_in[size_t(i)], column_in, suffix);
  }
  std::array<Expr, kWinogradPatch> half;
  for (int j = 0; j < size_; ++j) {
    std::array<Expr, kMostFrequencies> d, t;
    if (column_in[size_t(j)]) load_column(body, j, column_in[size_t(j)], row_in, suffix);
    for (int i = 0; i < size_; ++i) {
      if (row_in[size_t(i)]) {
        d[size_t(i)] = loop::load(type_, edge("row", i, suffix), Expr(j));
      } else if (column_in[size_t(j)]) {
        d[size_t(i)] = loop::load(type_, edge("column", j, suffix), Expr(i));
      } else {
        d[size_t(i)] = body.name(load(i, j), "d");
      }
    }
    transform(d.data(), t.data(), body);
    for (int i = 0; i < a; ++i) half[size_t(i * size_ + j)] = t[size_t(i)];
  }
  for (int i = 0; i < a; ++i) {
    std::array<Expr, kMostFrequencies> t;
    transform(half.data() + i * size_, t.data(), body);
    for (int j = 0; j < a; ++j) body.statements.push_back(store(i * a + j, t[size_t(j)]));
  }
}

std::string PatchTransform::edge(const char* side, int at, const std::string& suffix) const {
  return fmt::format("edge_{}{}{}", side, at, suffix);
}

void PatchTransform::load_row(TileBody& body, int i, const Expr& condition,
                              const std::vector<Expr>& column_in, const std::string& suffix) const {
  std::vector<std::pair<int, Expr>> values;
  for (int j = 0; j < size_; ++j) {
    Expr value = load(i, j);
    const Expr& inner = column_in[size_t(j)];
    if (inner) value = loop::if_then_else(inner, value, loop::constant(type_, 0));
    values.emplace_back(j, value);
  }
  guarded(body, edge("row", i, suffix), condition, values);
}

void PatchTransform::load_column(TileBody& body, int j, const Expr& condition,
                                 const std::vector<Expr>& row_in, const std::string& suffix) const {
  std::vector<std::pair<int, Expr>> values;
  for (int i = 0; i < size_; ++i) {
    if (!row_in[size_t(i)]) values.emplace_back(i, load(i, j));
  }
  if (!values.empty()) guarded(body, edge("column", j, suffix), condition, values);
}

namespace {

class InputTransform final : public PatchTransform {
 public:
  InputTransform(const WinogradConv& conv, const loop::Kernel& layer, const WinogradForm& form,
                 bool use_fma)
      : PatchTransform(conv, form, frequencies(form.m), use_fma),
        shape_(layer.find(conv.input)->shape) {}

  Stmt run() { return tiles("channel", conv_.channels / conv_.word); }

 private:
  Expr row_inside(int at) const override {
    const WinogradSide& side = conv_.rows;
    return inside(y_, form_.tile_rows, side.shift + at, side.first, side.end);
  }
  Expr column_inside(int at) const override {
    const WinogradSide& side = conv_.columns;
    return inside(x_, form_.tile_columns, side.shift + at, side.first, side.end);
  }

  Expr load(int i, int j) const override {
    std::map<std::string, Expr> place;
    if (!conv_.batch.empty()) place[conv_.batch] = image_;
    if (!conv_.channel.empty()) place[conv_.channel] = lane_;
    std::vector<Expr> indices = conv_.input_access->args;
    for (Expr& index : indices) index = loop::substitute(index, place);
    indices[conv_.rows.dimension] = y_ + Expr(conv_.rows.shift + i);
    indices[conv_.columns.dimension] = x_ + Expr(conv_.columns.shift + j);
    const Expr index = loop::simplify(loop::flat_index(shape_, indices));
    if (conv_.word == 1) {
      const Expr value = loop::load(loop::Type{conv_.stored, 1}, conv_.input, index);
      return conv_.is_exact() ? loop::cast(type_, value) : value;
    }
    return two_of_bytes(loop::load(type_, conv_.input, index), part_ == 1,
                        conv_.stored == loop::Scalar::i8);
  }

  void transform(const Expr* d, Expr* t, TileBody& body) const override {
    input_transform(form_.m, d, t, body);
  }

  Stmt store(int frequency, const Expr& value) const override {
    const Expr place = plane_index(frequency, form_.input_stride, conv_.spectrum_elements(),
                                   lane_ * Expr(parts()) + Expr(part_));
    return loop::store(kSpectrum, place, stored(value));
  }

  Expr stored(const Expr& value) const {
    if (!conv_.is_exact()) return value;
    return conv_.word == 1 ? loop::cast(loop::Type{conv_.spectrum(), 1}, value) : as_halves(value);
  }

  /// How often the transform runs for the channels of a lane, two at once.
  int parts() const { return conv_.word == 1 ? 1 : static_cast<int>(conv_.word / 2); }

  void write_tile(TileBody& body) override {
    for (part_ = 0; part_ < parts(); ++part_) write_patch(body, part_ == 0 ? "" : "_odd");
  }

  const Dims& shape_;
  int part_ = 0;
};

}  // namespace

Stmt input_transform_of(const WinogradConv& conv, const loop::Kernel& layer,
                        const WinogradForm& form, bool use_fma) {
  return InputTransform(conv, layer, form, use_fma).run();
}

Stmt for_all_blocks(const WinogradConv& conv, const WinogradForm& form,
                    const std::vector<Stmt>& stages) {
  const Expr images = image_blocks(conv, form);
  if (form.pieces == 1) {
    return loop::for_loop(kBlock, Expr(0), images * Expr(form.blocks()), loop::block(stages));
  }
  const Expr cut(form.piece_blocks), rows(form.tile_rows / form.block_rows);
  Stmt loops =
      loop::for_loop(kBlockRow, Expr(0), form.pieces_of_images ? rows : cut, loop::block(stages));
  loops = loop::for_loop(kBlockImage, Expr(0), form.pieces_of_images ? cut : images, loops);
  return loop::for_loop(kPiece, Expr(0), Expr(form.pieces), loops);
}

std::vector<Expr> in_piece(const WinogradForm& form, std::vector<Expr> at) {
  if (form.pieces > 1) at.insert(at.begin(), loop::var(kPiece));
  return at;
}

loop::BufferParam planes_param(const std::string& name, loop::Scalar element,
                               const WinogradForm& form, int64_t elements) {
  Dims shape{Dim(form.frequencies()), Dim(elements)};
  if (form.pieces > 1) shape.insert(shape.begin(), Dim(form.pieces));
  return {name, element, shape, loop::AccessMode::write, {}};
}

loop::BufferParam matrices_param(const std::string& name, const WinogradConv& conv,
                                 const WinogradForm& form, loop::AccessMode mode) {
  const Dims shape{Dim(form.frequencies()), Dim(conv.spectrum_elements()), Dim(conv.features)};
  return {name, conv.spectrum(), shape, mode, {}};
}

Expr add_axis(std::vector<loop::Axis>& axes, const std::string& name, int64_t extent) {
  if (extent == 1) return Expr(0);
  axes.push_back({name, Expr(extent)});
  return loop::var(name);
}

Expr sum_of(loop::Definition& definition, const Expr& value) {
  if (definition.reduce_axes.empty()) return value;
  const loop::Type type = value.type();
  definition.accumulators = {{"acc", type, loop::Combine::sum, loop::constant(type, 0), value}};
  return loop::var("acc", type);
}

}  // namespace backcast
