// See kernels.h.
#include "passes/winograd/kernels.h"

#include <array>
#include <bit>
#include <map>
#include <set>

#include "ir/loop/visit.h"
#include "passes/winograd/weights.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
using loop::Stmt;

class OutputTransform : public TileLoops {
 public:
  OutputTransform(const WinogradConv& conv, const Kernel& layer, const WinogradForm& form,
                  bool use_fma)
      : TileLoops(conv, form, use_fma), layer_(layer) {}

  Stmt run() { return tiles("feature", conv_.features); }

 private:
  void write_tile(TileBody& body) override {
    const int a = frequencies(form_.m), m = form_.m;
    std::array<Expr, kWinogradPatch> half;
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
  void write_row(TileBody& body, int i, const Expr* sums) {
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
  const Expr frequency = add_axis(definition.axes, "f", form.frequencies());
  const Expr tile = add_axis(definition.axes, "tile", form.block_tiles());
  const Expr feature = add_axis(definition.axes, "o", conv.features);
  const int64_t channels = conv.spectrum_elements();
  const Expr channel = add_axis(definition.reduce_axes, "c", channels);
  const loop::Type type{conv.scalar, 1};
  const Expr left = loop::access(kSpectrum, conv.spectrum(),
                                 in_piece(form, {frequency, tile * Expr(channels) + channel}));
  const Expr right = loop::access(kFilter, conv.spectrum(), {frequency, channel, feature});
  Expr value;
  if (conv.word > 1) {
    value = loop::binary(Op::dot2, left, right);
  } else {
    value = conv.is_exact() ? loop::cast(type, left) * loop::cast(type, right) : left * right;
  }
  const Expr sum = sum_of(definition, value);
  definition.outputs = {
      {kProducts, in_piece(form, {frequency, tile * Expr(conv.features) + feature}), sum}};
  return loop::define(std::move(definition));
}

}  // namespace

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
  for (const loop::BufferParam& param : layer.buffers) {
    if (param.mode == AccessMode::read) {
      if (read.count(param.name)) kernel.buffers.push_back(param);
      continue;
    }
    kernel.buffers.push_back(matrices_param(kFilter, conv, form, AccessMode::read));
    kernel.buffers.push_back(planes_param(kSpectrum, conv.spectrum(), form, form.input_stride));
    kernel.buffers.push_back(planes_param(kProducts, conv.scalar, form, form.output_stride));
    kernel.buffers.push_back(param);
  }
  std::set<std::string> taken;
  kernel.body = loop::with_unique_names(
      for_all_blocks(conv, form,
                     {input_transform_of(conv, layer, form, use_fma), product(conv, form),
                      OutputTransform(conv, layer, form, use_fma).run()}),
      taken);
  return kernel;
}

}  // namespace backcast
