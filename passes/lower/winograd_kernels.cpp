// See winograd_kernels.h. Transforms are written for one channel, in a loop over channels that the
// schedule vectorises; where the image ends is asked only in the rows and columns of a patch that
// some tile has outside.
#include "passes/lower/winograd_kernels.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <set>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/lower/winograd_transform.h"
#include "passes/lower/winograd_weights.h"
#include "passes/lower/winograd_words.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
using loop::Stmt;

constexpr int kPatch = kMostFrequencies * kMostFrequencies;
constexpr const char* kBlock = "block";

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Statements under construction; every value gets a name of its own.
class Body {
 public:
  Body(loop::Type type, bool use_fma, int& counter)
      : type_(type), use_fma_(use_fma), counter_(counter) {}

  Expr name(const Expr& value, const std::string& base = "t") {
    const std::string variable = fmt::format("{}{}", base, counter_++);
    statements.push_back(loop::let(variable, value));
    return loop::var(variable, value.type());
  }
  Expr add(const Expr& a, const Expr& b) { return name(a + b); }
  Expr sub(const Expr& a, const Expr& b) { return name(a - b); }
  Expr scaled(double k, const Expr& a, const Expr& b) {
    const Expr factor = loop::float_constant(type_, k);
    return name(use_fma_ ? loop::fma(factor, a, b) : factor * a + b);
  }

  std::vector<Stmt> statements;

 private:
  loop::Type type_;
  bool use_fma_;
  int& counter_;
};

/// What both transforms share: loops over the tiles of a block.
class TileLoops {
 public:
  TileLoops(const WinogradConv& conv, const WinogradForm& form, bool use_fma)
      : conv_(conv), form_(form), type_{conv.scalar, 1}, use_fma_(use_fma) {}

 protected:
  Body body() { return Body(type_, use_fma_, counter_); }

  /// `inner` writes one tile: its first output is at row y and column x of image n; `tile` counts
  /// within the block; `lane` runs over `lanes` channels.
  Stmt tiles(const std::string& lane, int64_t lanes) {
    Body outer = body();
    const Expr block = loop::var(kBlock);
    image_ = conv_.batch.empty() ? Expr(0) : loop::floor_div(block, Expr(form_.blocks()));
    const Expr in_image = loop::floor_mod(block, Expr(form_.blocks()));
    const Expr down = loop::floor_div(in_image, Expr(form_.blocks_across()));
    const Expr across = loop::floor_mod(in_image, Expr(form_.blocks_across()));
    image_ = outer.name(image_, "image");
    const Expr top = outer.name(down * Expr(form_.block_rows * form_.m), "top");
    const Expr left = outer.name(across * Expr(form_.block_columns * form_.m), "left");

    Body tile = body();
    const Expr row = loop::var("tile_row"), column = loop::var("tile_column");
    y_ = tile.name(top + row * Expr(form_.m), "y");
    x_ = tile.name(left + column * Expr(form_.m), "x");
    tile_ = row * Expr(form_.block_columns) + column;
    lane_ = loop::var(lane);
    Body inner = body();
    write_tile(inner);
    tile.statements.push_back(loop::for_loop(
        lane, Expr(0), Expr(lanes), loop::block(inner.statements), loop::ForKind::vectorized));
    Stmt loops = loop::for_loop("tile_column", Expr(0), Expr(form_.block_columns),
                                loop::block(tile.statements));
    loops = loop::for_loop("tile_row", Expr(0), Expr(form_.block_rows), loops);
    outer.statements.push_back(loops);
    return loop::block(outer.statements);
  }

  virtual void write_tile(Body& body) = 0;
  ~TileLoops() = default;

  /// Element of plane `frequency` for the tile and lane at hand.
  Expr plane_index(int64_t frequency, int64_t stride, int64_t lanes, const Expr& lane) const {
    return Expr(frequency * stride) + tile_ * Expr(lanes) + lane;
  }

  const WinogradConv& conv_;
  const WinogradForm& form_;
  loop::Type type_;
  bool use_fma_;
  int counter_ = 0;
  Expr image_, y_, x_, tile_, lane_;
};

class InputTransform : public TileLoops {
 public:
  InputTransform(const WinogradConv& conv, const Kernel& layer, const WinogradForm& form,
                 bool use_fma)
      : TileLoops(conv, form, use_fma),
        shape_(layer.find(conv.input)->shape),
        a_(frequencies(form.m)) {}

  Stmt run() { return tiles("channel", conv_.channels / conv_.word); }

 private:
  /// Whether row (or column) `at` of a patch lies inside; empty: for every tile.
  Expr inside(const WinogradSide& side, const Expr& origin, int64_t tiles, int at) const {
    const int64_t lowest = side.shift + at;
    const int64_t highest = (tiles - 1) * form_.m + lowest;
    const Expr position = origin + Expr(side.shift + at);
    Expr condition;
    if (lowest < side.first) condition = position >= Expr(side.first);
    if (highest >= side.end) {
      const Expr before_end = position < Expr(side.end);
      condition = condition ? condition && before_end : before_end;
    }
    return condition;
  }

  Expr load(int i, int j) const {
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

  /// Element of the spectrum for the frequency and what is at hand of the lane's channels.
  Expr place(int frequency) const {
    return plane_index(frequency, form_.input_stride, conv_.spectrum_elements(),
                       lane_ * Expr(parts()) + Expr(part_));
  }

  Expr stored(const Expr& value) const {
    if (!conv_.is_exact()) return value;
    return conv_.word == 1 ? loop::cast(loop::Type{conv_.spectrum(), 1}, value) : as_halves(value);
  }

  /// How often the transform runs for the channels of a lane, two at once.
  int parts() const { return conv_.word == 1 ? 1 : static_cast<int>(conv_.word / 2); }

  /// A register allocation that holds `values` where `condition` holds, zeros elsewhere.
  void guarded(Body& body, const std::string& name, const Expr& condition,
               const std::vector<std::pair<int, Expr>>& values) const {
    body.statements.push_back(loop::alloc(name, type_, Expr(a_), loop::Memory::registers));
    std::vector<Stmt> present, absent;
    for (const auto& [at, value] : values) {
      present.push_back(loop::store(name, Expr(at), value));
      absent.push_back(loop::store(name, Expr(at), loop::constant(type_, 0)));
    }
    body.statements.push_back(
        loop::if_branch(condition, loop::block(present), loop::block(absent)));
  }

  void write_tile(Body& body) override {
    for (part_ = 0; part_ < parts(); ++part_) write_part(body);
  }

  void write_part(Body& body) const {
    std::vector<Expr> row_in, column_in;
    for (int i = 0; i < a_; ++i) {
      row_in.push_back(inside(conv_.rows, y_, form_.tile_rows, i));
      column_in.push_back(inside(conv_.columns, x_, form_.tile_columns, i));
    }
    for (int i = 0; i < a_; ++i) {
      if (row_in[size_t(i)]) load_row(body, i, row_in[size_t(i)], column_in);
    }
    std::array<Expr, kPatch> half;
    for (int j = 0; j < a_; ++j) {
      std::array<Expr, kMostFrequencies> d, t;
      if (column_in[size_t(j)]) load_column(body, j, column_in[size_t(j)], row_in);
      for (int i = 0; i < a_; ++i) {
        if (row_in[size_t(i)]) {
          d[size_t(i)] = loop::load(type_, edge("row", i), Expr(j));
        } else if (column_in[size_t(j)]) {
          d[size_t(i)] = loop::load(type_, edge("column", j), Expr(i));
        } else {
          d[size_t(i)] = body.name(load(i, j), "d");
        }
      }
      input_transform(form_.m, d.data(), t.data(), body);
      for (int i = 0; i < a_; ++i) half[size_t(i * a_ + j)] = t[size_t(i)];
    }
    for (int i = 0; i < a_; ++i) {
      std::array<Expr, kMostFrequencies> t;
      input_transform(form_.m, half.data() + i * a_, t.data(), body);
      for (int j = 0; j < a_; ++j) {
        body.statements.push_back(loop::store(kSpectrum, place(i * a_ + j), stored(t[size_t(j)])));
      }
    }
  }

  std::string edge(const char* side, int at) const {
    return fmt::format("edge_{}{}{}", side, at, part_ == 0 ? "" : "_odd");
  }

  void load_row(Body& body, int i, const Expr& condition,
                const std::vector<Expr>& column_in) const {
    std::vector<std::pair<int, Expr>> values;
    for (int j = 0; j < a_; ++j) {
      Expr value = load(i, j);
      const Expr& inner = column_in[size_t(j)];
      if (inner) value = loop::if_then_else(inner, value, loop::constant(type_, 0));
      values.emplace_back(j, value);
    }
    guarded(body, edge("row", i), condition, values);
  }

  /// The rows that every tile has inside.
  void load_column(Body& body, int j, const Expr& condition,
                   const std::vector<Expr>& row_in) const {
    std::vector<std::pair<int, Expr>> values;
    for (int i = 0; i < a_; ++i) {
      if (!row_in[size_t(i)]) values.emplace_back(i, load(i, j));
    }
    if (!values.empty()) guarded(body, edge("column", j), condition, values);
  }

  const Dims& shape_;
  int a_;
  int part_ = 0;
};

class OutputTransform : public TileLoops {
 public:
  OutputTransform(const WinogradConv& conv, const Kernel& layer, const WinogradForm& form,
                  bool use_fma)
      : TileLoops(conv, form, use_fma), layer_(layer) {}

  Stmt run() { return tiles("feature", conv_.features); }

 private:
  void write_tile(Body& body) override {
    const int a = frequencies(form_.m), m = form_.m;
    std::array<Expr, kPatch> half;
    for (int j = 0; j < a; ++j) {
      std::array<Expr, kMostFrequencies> p, y;
      for (int i = 0; i < a; ++i) {
        const Expr index = plane_index(i * a + j, form_.output_stride, conv_.features, lane_);
        p[size_t(i)] = body.name(loop::load(type_, kProducts, index), "p");
      }
      output_transform(m, p.data(), y.data(), body);
      for (int i = 0; i < m; ++i) half[size_t(i * a + j)] = y[size_t(i)];
    }
    for (int i = 0; i < m; ++i) {
      std::array<Expr, kMostFrequencies> sums;
      output_transform(m, half.data() + i * a, sums.data(), body);
      for (int j = 0; j < m && conv_.is_exact(); ++j) {
        // Multiples of the weights' scale.
        sums[size_t(j)] = body.name(loop::binary(Op::shr, sums[size_t(j)], log2_scale()));
      }
      write_row(body, i, sums.data());
    }
  }

  Expr log2_scale() const {
    return loop::int_constant(type_, std::countr_zero(static_cast<unsigned>(weight_scale(conv_))));
  }

  /// What sticks out of the image is dropped.
  void write_row(Body& body, int i, const Expr* sums) {
    std::vector<Stmt> stores;
    for (int j = 0; j < form_.m; ++j) {
      Stmt store = write(i, j, sums[j]);
      const bool may_stick_out = (form_.tile_columns - 1) * form_.m + j >= conv_.columns.extent;
      if (may_stick_out) {
        store = loop::if_branch(x_ + Expr(j) < Expr(conv_.columns.extent), store);
      }
      stores.push_back(store);
    }
    Stmt row = loop::block(stores);
    if ((form_.tile_rows - 1) * form_.m + i >= conv_.rows.extent) {
      row = loop::if_branch(y_ + Expr(i) < Expr(conv_.rows.extent), row);
    }
    body.statements.push_back(row);
  }

  Stmt write(int i, int j, const Expr& sum) const {
    const loop::DefinitionOutput& output = conv_.definition.outputs[0];
    std::map<std::string, Expr> place{{conv_.rows.axis, y_ + Expr(i)},
                                      {conv_.columns.axis, x_ + Expr(j)},
                                      {conv_.definition.accumulators[0].name, sum}};
    if (!conv_.batch.empty()) place[conv_.batch] = image_;
    if (!conv_.feature.empty()) place[conv_.feature] = lane_;
    const Expr value = loop::rewrite(loop::substitute(output.value, place), [&](const Expr& e) {
      if (e->kind != ExprKind::access) return e;
      const Dims& shape = layer_.find(e->name)->shape;
      return loop::load(e.type(), e->name, loop::simplify(loop::flat_index(shape, e->args)));
    });
    std::vector<Expr> indices = output.indices;
    for (Expr& index : indices) index = loop::substitute(index, place);
    const Dims& shape = layer_.find(output.buffer)->shape;
    return loop::store(output.buffer, loop::simplify(loop::flat_index(shape, indices)), value);
  }

  const Kernel& layer_;
};

/// products[frequency, tile, feature] = Σ spectrum[frequency, tile, channel] · filter[…].
Stmt product(const WinogradConv& conv, const WinogradForm& form) {
  loop::Definition definition;
  const auto axis = [](std::vector<loop::Axis>& axes, const std::string& name, int64_t extent) {
    if (extent == 1) return Expr(0);
    axes.push_back({name, Expr(extent)});
    return loop::var(name);
  };
  const Expr frequency = axis(definition.axes, "f", form.frequencies());
  const Expr tile = axis(definition.axes, "tile", form.block_tiles());
  const Expr feature = axis(definition.axes, "o", conv.features);
  const int64_t channels = conv.spectrum_elements();
  const Expr channel = axis(definition.reduce_axes, "c", channels);
  const loop::Type type{conv.scalar, 1};
  const Expr left =
      loop::access(kSpectrum, conv.spectrum(), {frequency, tile * Expr(channels) + channel});
  const Expr right = loop::access(kFilter, conv.spectrum(), {frequency, channel, feature});
  Expr value;
  if (conv.word > 1) {
    value = loop::binary(Op::dot2, left, right);
  } else {
    value = conv.is_exact() ? loop::cast(type, left) * loop::cast(type, right) : left * right;
  }
  if (!definition.reduce_axes.empty()) {
    definition.accumulators = {{"acc", type, loop::Combine::sum, loop::constant(type, 0), value}};
    value = loop::var("acc", type);
  }
  definition.outputs = {{kProducts, {frequency, tile * Expr(conv.features) + feature}, value}};
  return loop::define(std::move(definition));
}

}  // namespace

WinogradForm winograd_form(const WinogradConv& conv, int m, int64_t block_rows,
                           int64_t block_columns, const TargetInfo& target) {
  WinogradForm form;
  form.m = m;
  form.tile_rows = ceil_div(conv.rows.extent, m);
  form.tile_columns = ceil_div(conv.columns.extent, m);
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

Kernel winograd_kernel(const WinogradConv& conv, const Kernel& layer, const WinogradForm& form,
                       bool use_fma) {
  Kernel kernel;
  kernel.name = layer.name;
  kernel.sizes = layer.sizes;
  kernel.locs = layer.locs;
  kernel.macs = layer.macs;  // those of the layer, whatever it is computed with
  std::set<std::string> read{conv.input};
  loop::visit(conv.definition.outputs[0].value, [&](const Expr& e) {
    if (e->kind == ExprKind::access) read.insert(e->name);
  });
  const Dim planes(form.frequencies());
  for (const loop::BufferParam& param : layer.buffers) {
    if (param.mode == AccessMode::read) {
      if (read.count(param.name)) kernel.buffers.push_back(param);
      continue;
    }
    const Dims filter{planes, Dim(conv.spectrum_elements()), Dim(conv.features)};
    const Dims spectrum{planes, Dim(form.input_stride)}, products{planes, Dim(form.output_stride)};
    kernel.buffers.push_back({kFilter, conv.spectrum(), filter, AccessMode::read, {}});
    kernel.buffers.push_back({kSpectrum, conv.spectrum(), spectrum, AccessMode::write, {}});
    kernel.buffers.push_back({kProducts, conv.scalar, products, AccessMode::write, {}});
    kernel.buffers.push_back(param);
  }
  const Stmt stages =
      loop::block({InputTransform(conv, layer, form, use_fma).run(), product(conv, form),
                   OutputTransform(conv, layer, form, use_fma).run()});
  const Expr blocks = loop::expr_of(conv.batches) * Expr(form.blocks());
  std::set<std::string> taken;
  kernel.body = loop::with_unique_names(loop::for_loop(kBlock, Expr(0), blocks, stages), taken);
  return kernel;
}

}  // namespace backcast
