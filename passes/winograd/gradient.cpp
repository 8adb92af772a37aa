// See gradient.h.
#include "passes/winograd/gradient.h"

#include <array>
#include <map>
#include <set>

#include "ir/loop/visit.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Definition;
using loop::Expr;
using loop::Kernel;
using loop::Stmt;

/// Tiles of m × m outputs' gradients, zero where they stick out.
class OutputGradientTransform final : public PatchTransform {
 public:
  OutputGradientTransform(const WinogradConv& conv, const Kernel& layer, const WinogradForm& form,
                          bool use_fma)
      : PatchTransform(conv, form, form.m, use_fma), shape_(layer.find(conv.factor)->shape) {}

  Stmt run() { return tiles("feature", conv_.features); }

 private:
  Expr row_inside(int at) const override {
    return inside(y_, form_.tile_rows, at, 0, conv_.rows.extent);
  }
  Expr column_inside(int at) const override {
    return inside(x_, form_.tile_columns, at, 0, conv_.columns.extent);
  }

  Expr load(int i, int j) const override {
    std::map<std::string, Expr> place{{conv_.rows.axis, y_ + Expr(i)},
                                      {conv_.columns.axis, x_ + Expr(j)}};
    if (!conv_.batch.empty()) place[conv_.batch] = image_;
    if (!conv_.feature.empty()) place[conv_.feature] = lane_;
    std::vector<Expr> indices = conv_.factor_access->args;
    for (Expr& index : indices) index = loop::substitute(index, place);
    return loop::load(type_, conv_.factor, loop::simplify(loop::flat_index(shape_, indices)));
  }

  void transform(const Expr* d, Expr* t, TileBody& body) const override {
    output_gradient_transform(form_.m, d, t, body);
  }

  Stmt store(int frequency, const Expr& value) const override {
    return loop::store(kGradientSpectrum,
                       plane_index(frequency, form_.output_stride, conv_.features, lane_), value);
  }

  void write_tile(TileBody& body) override { write_patch(body); }

  const Dims& shape_;
};

/// A definition of kSums; returns the indices of its element.
std::vector<Expr> sums_place(Definition& definition, const WinogradConv& conv,
                             const WinogradForm& form) {
  return {add_axis(definition.axes, "f", form.frequencies()),
          add_axis(definition.axes, "c", conv.channels),
          add_axis(definition.axes, "o", conv.features)};
}

/// sums[f, c, o] (+)= Σ over tiles of spectrum[f, tile, c] · gradient_spectrum[f, tile, o].
Stmt sum_products(const WinogradConv& conv, const WinogradForm& form, bool accumulate) {
  Definition definition;
  const std::vector<Expr> place = sums_place(definition, conv, form);
  const Expr frequency = place[0], channel = place[1], feature = place[2];
  const Expr tile = add_axis(definition.reduce_axes, "tile", form.block_tiles());
  const Expr input =
      loop::access(kSpectrum, conv.scalar, {frequency, tile * Expr(conv.channels) + channel});
  const Expr gradient = loop::access(kGradientSpectrum, conv.scalar,
                                     {frequency, tile * Expr(conv.features) + feature});
  Expr sum = sum_of(definition, input * gradient);
  if (accumulate) sum = loop::access(kSums, conv.scalar, place) + sum;
  definition.outputs = {{kSums, place, sum}};
  return loop::define(std::move(definition));
}

Stmt clear_sums(const WinogradConv& conv, const WinogradForm& form) {
  Definition definition;
  const std::vector<Expr> place = sums_place(definition, conv, form);
  definition.outputs = {{kSums, place, loop::constant({conv.scalar, 1}, 0)}};
  return loop::define(std::move(definition));
}

}  // namespace

Kernel gradient_sums_kernel(const WinogradConv& conv, const Kernel& layer, const WinogradForm& form,
                            bool use_fma) {
  Kernel kernel;
  kernel.sizes = layer.sizes;
  kernel.locs = layer.locs;
  kernel.macs = layer.macs;
  for (const loop::BufferParam& param : layer.buffers) {
    if (param.name == conv.input || param.name == conv.factor) kernel.buffers.push_back(param);
  }
  kernel.buffers.push_back(planes_param(kSpectrum, conv.scalar, form, form.input_stride));
  kernel.buffers.push_back(planes_param(kGradientSpectrum, conv.scalar, form, form.output_stride));
  kernel.buffers.push_back(matrices_param(kSums, conv, form, AccessMode::write));
  const bool one_block = conv.batches == Dim(form.block_images) && form.blocks() == 1;
  std::vector<Stmt> body;
  if (!one_block) body.push_back(clear_sums(conv, form));
  body.push_back(for_all_blocks(conv, form,
                                {input_transform_of(conv, layer, form, use_fma),
                                 OutputGradientTransform(conv, layer, form, use_fma).run(),
                                 sum_products(conv, form, !one_block)}));
  std::set<std::string> taken;
  kernel.body = loop::with_unique_names(loop::block(body), taken);
  return kernel;
}

Definition gradient_definition(const WinogradConv& conv, int m, bool use_fma) {
  const int a = frequencies(m);
  Definition definition = conv.definition;
  definition.reduce_axes.clear();
  definition.accumulators.clear();
  definition.outputs.clear();
  std::erase_if(definition.axes, [&](const loop::Axis& axis) {
    return axis.name == conv.rows.kernel_axis || axis.name == conv.columns.kernel_axis;
  });
  const auto index = [](const std::string& axis) {
    return axis.empty() ? Expr(0) : loop::var(axis);
  };
  std::array<Expr, kWinogradPatch> sums, taps;
  for (int i = 0; i < a * a; ++i) {
    sums[size_t(i)] =
        loop::access(kSums, conv.scalar, {Expr(i), index(conv.channel), index(conv.feature)});
  }
  ExprOps ops{{conv.scalar, 1}, use_fma};
  both_ways(a, 3, sums.data(), taps.data(), ops,
            [&](const Expr* p, Expr* g, auto& o) { weight_gradient_transform(m, p, g, o); });
  for (const loop::DefinitionOutput& output : conv.definition.outputs) {
    for (int i = 0; i < 9; ++i) {
      const std::map<std::string, Expr> place{
          {conv.rows.kernel_axis, Expr(i / 3)},
          {conv.columns.kernel_axis, Expr(i % 3)},
          {conv.definition.accumulators[0].name, taps[size_t(i)]}};
      loop::DefinitionOutput tap = output;
      for (Expr& at : tap.indices) at = loop::simplify(loop::substitute(at, place));
      tap.value = loop::substitute(output.value, place);
      definition.outputs.push_back(std::move(tap));
    }
  }
  return definition;
}

}  // namespace backcast
