// Lowering of dot_general, conv and reduce_window to definitions with a reduction. Conditions on
// padding guard whole products, so that scheduling can turn them into loop bounds.
#include <fmt/format.h>

#include "ir/ops/ops.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::Op;
using Indices = std::vector<Expr>;

/// Collects axes, leaving out those of extent 1 (their variable is 0).
class AxisList {
 public:
  Expr add(const std::string& name, const Dim& extent) {
    if (extent == Dim(1)) return Expr(0);
    axes.push_back({name, loop::expr_of(extent)});
    return loop::var(name);
  }
  std::vector<loop::Axis> axes;
};

/// A conjunction; empty means true.
struct Guard {
  Expr condition;
  void require(Expr c) { condition = condition ? (condition && c) : c; }
};

/// Position in the undilated, unpadded input of window element `k` of output `o`; adds what must
/// hold for it to exist.
Expr window_position(const Expr& o, const Expr& k, int64_t stride, int64_t kernel_dilation,
                     int64_t input_dilation, const Dim& low, const Dim& high, const Dim& extent,
                     Guard& guard) {
  Expr position = o * Expr(stride) + k * Expr(kernel_dilation) - loop::expr_of(low);
  bool padded = !(low == Dim(0) && high == Dim(0));
  Expr size = loop::expr_of(extent);
  if (padded || input_dilation > 1) {
    guard.require(position >= Expr(0));
    guard.require(position < (size - Expr(1)) * Expr(input_dilation) + Expr(1));
  }
  if (input_dilation > 1) {
    guard.require(loop::binary(Op::eq, loop::floor_mod(position, Expr(input_dilation)), Expr(0)));
    position = loop::floor_div(position, Expr(input_dilation));
  }
  return position;
}

void lower_dot_general(KernelBuilder& k) {
  const DotGeneralAttrs& attrs = k.attrs<DotGeneralAttrs>();
  const Shape& lhs = k.operand(0).shape;
  const Shape& rhs = k.operand(1).shape;
  AxisList out, reduce;
  Indices a(lhs.size()), b(rhs.size()), result;
  Dim macs = 1;
  for (size_t i = 0; i < attrs.lhs_batch.size(); ++i) {
    size_t l = static_cast<size_t>(attrs.lhs_batch[i]), r = static_cast<size_t>(attrs.rhs_batch[i]);
    a[l] = b[r] = out.add(fmt::format("b{}", i), lhs[l]);
    result.push_back(a[l]);
    macs = macs * lhs[l];
  }
  for (size_t i = 0; i < attrs.lhs_contract.size(); ++i) {
    size_t l = static_cast<size_t>(attrs.lhs_contract[i]);
    size_t r = static_cast<size_t>(attrs.rhs_contract[i]);
    a[l] = b[r] = reduce.add(fmt::format("k{}", i), lhs[l]);
    macs = macs * lhs[l];
  }
  for (size_t d = 0; d < lhs.size(); ++d) {
    if (a[d]) continue;
    a[d] = out.add(fmt::format("m{}", d), lhs[d]);
    result.push_back(a[d]);
    macs = macs * lhs[d];
  }
  for (size_t d = 0; d < rhs.size(); ++d) {
    if (b[d]) continue;
    b[d] = out.add(fmt::format("n{}", d), rhs[d]);
    result.push_back(b[d]);
    macs = macs * rhs[d];
  }
  loop::Type type = compute_type(k.result().element);
  Expr product = k.read(0, a) * k.read(1, b);
  loop::Definition definition;
  definition.axes = std::move(out.axes);
  if (reduce.axes.empty()) {  // an outer product: nothing is summed
    definition.outputs = {{"out0", result, k.stored(product)}};
  } else {
    definition.reduce_axes = std::move(reduce.axes);
    definition.accumulators = {{"acc", type, loop::Combine::sum, loop::constant(type, 0), product}};
    definition.outputs = {{"out0", result, k.stored(loop::var("acc", type))}};
  }
  k.set_macs(macs);
  k.define(std::move(definition));
}

void lower_conv(KernelBuilder& k) {
  const ConvAttrs& c = k.attrs<ConvAttrs>();
  const Shape& x = k.operand(0).shape;
  const Shape& w = k.operand(1).shape;
  const Shape& y = k.result().shape;
  const auto at = [](const Shape& shape, int64_t i) { return shape[static_cast<size_t>(i)]; };
  AxisList out, reduce;
  Indices xi(x.size()), wi(w.size()), yi(y.size());
  const auto set = [](Indices& indices, int64_t i, Expr e) {
    indices[static_cast<size_t>(i)] = std::move(e);
  };

  Expr n = out.add("n", at(y, c.output_batch));
  Guard guard;
  std::vector<Expr> spatial;
  for (size_t d = 0; d < c.output_spatial.size(); ++d) {
    spatial.push_back(out.add(fmt::format("y{}", d), at(y, c.output_spatial[d])));
    set(yi, c.output_spatial[d], spatial.back());
  }
  // Groups split the output features: feature = group · per_group + f.
  int64_t groups = c.feature_groups * c.batch_groups;
  Dim per_group = Dim::floor_div(at(y, c.output_feature), groups);
  Expr g = out.add("g", groups);
  Expr f = out.add("f", per_group);
  Expr feature = g * loop::expr_of(per_group) + f;
  for (size_t d = 0; d < c.kernel_spatial.size(); ++d) {
    Expr kd = reduce.add(fmt::format("k{}", d), at(w, c.kernel_spatial[d]));
    set(wi, c.kernel_spatial[d], kd);
    set(xi, c.input_spatial[d],
        window_position(spatial[d], kd, c.strides[d], c.kernel_dilation[d], c.input_dilation[d],
                        c.pad_low[d], c.pad_high[d], at(x, c.input_spatial[d]), guard));
  }
  Dim channels = at(w, c.kernel_input);
  Expr channel = reduce.add("c", channels);
  bool by_feature = c.feature_groups > 1;
  set(xi, c.input_feature, by_feature ? g * loop::expr_of(channels) + channel : channel);
  set(xi, c.input_batch, c.batch_groups > 1 ? g * loop::expr_of(at(y, c.output_batch)) + n : n);
  set(wi, c.kernel_input, channel);
  set(wi, c.kernel_output, feature);
  set(yi, c.output_batch, n);
  set(yi, c.output_feature, feature);

  loop::Type type = compute_type(k.result().element);
  Expr product = k.read(0, xi) * k.read(1, wi);
  if (guard.condition) {
    product = loop::if_then_else(guard.condition, product, loop::constant(type, 0));
  }
  loop::Definition definition;
  definition.axes = std::move(out.axes);
  definition.reduce_axes = std::move(reduce.axes);
  definition.accumulators = {{"acc", type, loop::Combine::sum, loop::constant(type, 0), product}};
  definition.outputs = {{"out0", yi, k.stored(loop::var("acc", type))}};
  Dim macs = k.result().element_count() * channels;
  for (int64_t d : c.kernel_spatial) macs = macs * at(w, d);
  // Products with the zeros of a dilated input are never computed.
  for (int64_t d : c.input_dilation) macs = Dim::floor_div(macs, d);
  k.set_macs(macs);
  k.define(std::move(definition));
}

void lower_reduce_window(KernelBuilder& k) {
  const ReduceWindowAttrs& attrs = k.attrs<ReduceWindowAttrs>();
  AxisList out, reduce;
  Indices from, result;
  Guard guard;
  for (size_t d = 0; d < attrs.window.size(); ++d) {
    Expr o = out.add(fmt::format("i{}", d), k.result().shape[d]);
    Expr w = reduce.add(fmt::format("k{}", d), attrs.window[d]);
    result.push_back(o);
    from.push_back(window_position(o, w, attrs.strides[d], attrs.dilation[d], 1, attrs.pad_low[d],
                                   attrs.pad_high[d], k.operand(0).shape[d], guard));
  }
  loop::Type type = compute_type(k.operand(0).element);
  loop::Accumulator acc = reduction_accumulator("acc", attrs.kind, type, k.read(0, from));
  if (guard.condition) acc.value = loop::if_then_else(guard.condition, acc.value, acc.init);
  loop::Definition definition;
  definition.axes = std::move(out.axes);
  definition.reduce_axes = std::move(reduce.axes);
  definition.accumulators = {acc};
  definition.outputs = {{"out0", result, k.stored(loop::var("acc", type))}};
  k.define(std::move(definition));
}

const LowerRow kRows[] = {
    {&ops::dot_general, lower_dot_general},
    {&ops::conv, lower_conv},
    {&ops::reduce_window, lower_reduce_window},
};

}  // namespace

std::span<const LowerRow> contraction_lowering() { return kRows; }

}  // namespace backcast
