// Transfer rules of sums of products, reductions and windows. A contraction with a constant is
// evaluated on the middle and on half the width of its operand's bounds; of a convolution's
// positions only those that differ in what the border cuts off are computed.
#include <algorithm>
#include <cmath>
#include <map>

#include "ir/ops/interval.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

// Multiplications one convolution's bounds may take; beyond, all positions are taken together.
constexpr int64_t kMaxWork = int64_t{1} << 26;
// Constants with more elements are not looked into.
constexpr int64_t kMaxWeights = int64_t{1} << 22;

/// Nothing is lost by leaving such a contraction alone.
bool is_hopeless(const Literal* weights, const Bounds& x) {
  if (weights == nullptr || weights->element_count() == 0) return true;
  if (weights->element_count() > kMaxWeights) return true;
  const std::vector<double>& high = x.planes[Bounds::high];
  return std::none_of(high.begin(), high.end(), [](double h) { return std::isfinite(h); });
}

std::vector<double> map_values(const Literal& literal, double (*f)(double)) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.element_count(); ++i) values.push_back(f(literal.as_double(i)));
  return values;
}

/// The operator on operand `side` within `x` and the constant `weights` on the other side.
Bounds contract(const IntervalContext& context, const Attrs& attrs, size_t side, const Bounds& x,
                const Literal& weights, int64_t terms) {
  const std::vector<double> plain = map_values(weights, [](double w) { return w; });
  const std::vector<double> size = map_values(weights, [](double w) { return std::abs(w); });
  const std::vector<double> used = map_values(weights, [](double w) { return w != 0 ? 1.0 : 0.0; });
  std::vector<std::vector<int64_t>> shapes(2);
  shapes[side] = x.shape;
  shapes[1 - side] = weights.shape();
  const auto apply = [&](const std::vector<double>& of_x, const std::vector<double>& of_weights) {
    std::vector<const std::vector<double>*> planes(2);
    planes[side] = &of_x;
    planes[1 - side] = &of_weights;
    return evaluate_planes(context, attrs, shapes, planes);
  };
  std::vector<double> middle = x.planes[Bounds::low], half = middle;
  for (size_t i = 0; i < middle.size(); ++i) {
    const double low = x.planes[Bounds::low][i], high = x.planes[Bounds::high][i];
    middle[i] = (low + high) / 2;  // NaN where nothing is known
    half[i] = (high - low) / 2;
  }
  const std::vector<double> center = apply(middle, plain), radius = apply(half, size);
  Bounds result;
  result.shape = infer_plane_shape(context, attrs, shapes);
  result.terms = terms;
  const ElementType element = context.node.type.tensor().element;
  if (is_float(element)) {
    result.planes[Bounds::reach] = apply(x.planes[Bounds::reach], size);
    result.planes[Bounds::varies] = apply(x.planes[Bounds::varies], used);
  } else {
    // Nothing is rounded: no partial sum matters, and what has no width is fixed.
    result.planes[Bounds::varies] = radius;
    for (size_t i = 0; i < center.size(); ++i) {
      result.planes[Bounds::reach].push_back(std::abs(center[i]) + radius[i]);
    }
  }
  for (size_t i = 0; i < center.size(); ++i) {
    result.planes[Bounds::low].push_back(center[i] - radius[i]);
    result.planes[Bounds::high].push_back(center[i] + radius[i]);
    double& varies = result.planes[Bounds::varies][i];
    varies = varies == 0 ? 0 : 1;
  }
  widen_sums(result, element);
  return result;
}

/// One spatial dimension of a convolution cut down to the positions that differ; nothing where the
/// window leaves the operand in other ways than through pads.
struct CutDimension {
  int64_t extent = 0, positions = 0;
};
std::optional<CutDimension> cut(const Dim& input, const Dim& output, int64_t kernel,
                                const ConvAttrs& attrs, size_t i) {
  const Dim &low = attrs.pad_low[i], &high = attrs.pad_high[i];
  const bool known = input.is_constant() && output.is_constant() && low.is_constant() &&
                     high.is_constant() && low.constant() >= 0 && high.constant() >= 0;
  if (!known || attrs.input_dilation[i] != 1) return std::nullopt;
  const int64_t stride = attrs.strides[i], pad = low.constant(), extent = input.constant();
  int64_t inside = 0;
  for (int64_t p = 0; p < output.constant(); ++p) {
    inside += p * stride >= pad && p * stride - pad + kernel <= extent ? 1 : 0;
  }
  const int64_t dropped = std::max<int64_t>(0, inside - 1);
  return CutDimension{extent - stride * dropped, output.constant() - dropped};
}

/// Sums of so many products of two bounded values.
std::optional<Bounds> sum_of_products(const IntervalContext& context, const Dim& terms) {
  double reach = terms.is_constant() ? static_cast<double>(terms.constant()) : std::nan("");
  for (const Bounds* operand : context.operands) {
    double largest = 0;
    for (const double r : operand->planes[Bounds::reach]) largest = std::max(largest, r);
    reach *= largest;
  }
  if (!std::isfinite(reach)) return {};
  Bounds result = Bounds::between(context.node.type.tensor().rank(), -reach, reach);
  result.terms = terms.constant();
  widen_sums(result, context.node.type.tensor().element);
  return result;
}

std::optional<Bounds> conv_interval(const IntervalContext& context) {
  ConvAttrs attrs = context.node.attrs.as<ConvAttrs>();
  const Literal* weights = context.constants[1];
  const TensorType& x = *context.types[0];
  if (is_hopeless(weights, *context.operands[0]) || attrs.batch_groups != 1) {
    const Shape& kernel = context.types[1]->shape;
    Dim terms = kernel[static_cast<size_t>(attrs.kernel_input)];
    for (const int64_t axis : attrs.kernel_spatial) {
      terms = terms * kernel[static_cast<size_t>(axis)];
    }
    return sum_of_products(context, terms);
  }
  const Dim& features = x.shape[static_cast<size_t>(attrs.input_feature)];
  if (!features.is_constant()) return {};
  std::vector<bool> others(x.shape.size(), true);
  others[static_cast<size_t>(attrs.input_feature)] = false;
  Bounds operand = merge_along(*context.operands[0], others);
  std::vector<int64_t> shape(x.shape.size(), 1);
  shape[static_cast<size_t>(attrs.input_feature)] = features.constant();

  const Shape& output = context.node.type.tensor().shape;
  bool regular = true, border = false;
  int64_t work = weights->element_count(), terms = weights->shape()[size_t(attrs.kernel_input)];
  std::vector<int64_t> windows;
  for (size_t i = 0; i < attrs.strides.size(); ++i) {
    const int64_t kernel = weights->shape()[size_t(attrs.kernel_spatial[i])];
    terms *= kernel;
    windows.push_back((kernel - 1) * attrs.kernel_dilation[i] + 1);
    const size_t d = static_cast<size_t>(attrs.input_spatial[i]);
    border = border || !(attrs.pad_low[i] == Dim(0)) || !(attrs.pad_high[i] == Dim(0)) ||
             attrs.input_dilation[i] != 1;
    const std::optional<CutDimension> dimension =
        cut(x.shape[d], output[size_t(attrs.output_spatial[i])], windows[i], attrs, i);
    regular = regular && dimension && dimension->positions <= 64;
    if (!regular) continue;
    shape[d] = dimension->extent;
    work *= dimension->positions;
  }
  if (!regular || work > kMaxWork) {
    // One position, at which any tap may lie outside.
    for (size_t i = 0; i < attrs.strides.size(); ++i) {
      shape[size_t(attrs.input_spatial[i])] = windows[i];
      attrs.strides[i] = attrs.input_dilation[i] = 1;
      attrs.pad_low[i] = attrs.pad_high[i] = 0;
    }
    for (size_t i = 0; border && i < operand.planes[Bounds::low].size(); ++i) {
      double& low = operand.planes[Bounds::low][i];
      double& high = operand.planes[Bounds::high][i];
      if (low != 0 || high != 0) operand.planes[Bounds::varies][i] = 1;
      low = std::min(low, 0.0);
      high = std::max(high, 0.0);
    }
  }
  const Bounds result = contract(context, attrs, 0, expand(operand, shape), *weights, terms);
  others.assign(x.shape.size(), true);
  others[static_cast<size_t>(attrs.output_feature)] = false;
  return merge_along(result, others);
}

std::optional<Bounds> dot_interval(const IntervalContext& context) {
  const DotGeneralAttrs& attrs = context.node.attrs.as<DotGeneralAttrs>();
  const size_t side = context.constants[1] != nullptr ? 0 : 1;
  const Literal* weights = context.constants[1 - side];
  const Shape& shape = context.types[side]->shape;
  if (is_hopeless(weights, *context.operands[side])) {
    Dim terms = 1;
    for (const int64_t axis : side == 0 ? attrs.lhs_contract : attrs.rhs_contract) {
      terms = terms * shape[static_cast<size_t>(axis)];
    }
    return sum_of_products(context, terms);
  }
  std::vector<bool> free(shape.size(), true);
  std::vector<int64_t> wide(shape.size(), 1);
  int64_t terms = 1;
  for (const Ints* axes : {side == 0 ? &attrs.lhs_batch : &attrs.rhs_batch,
                           side == 0 ? &attrs.lhs_contract : &attrs.rhs_contract}) {
    for (const int64_t axis : *axes) {
      const Dim& extent = shape[static_cast<size_t>(axis)];
      if (!extent.is_constant()) return {};
      free[static_cast<size_t>(axis)] = false;
      wide[static_cast<size_t>(axis)] = extent.constant();
      terms *= extent.constant();
    }
  }
  const Bounds x = expand(merge_along(*context.operands[side], free), wide);
  return contract(context, context.node.attrs, side, x, *weights, terms);
}

std::optional<Bounds> reduce_interval(const IntervalContext& context) {
  const ReduceAttrs& attrs = context.node.attrs.as<ReduceAttrs>();
  const bool sums = attrs.kind == Reduction::sum;
  if (!sums && attrs.kind != Reduction::max && attrs.kind != Reduction::min) return {};
  const Bounds& x = *context.operands[0];
  int64_t repeats = 1;
  Bounds result;
  result.terms = x.terms;
  for (const int64_t axis : attrs.axes) {
    const Dim& extent = context.types[0]->shape[static_cast<size_t>(axis)];
    if (!extent.is_constant() || extent.constant() == 0) return {};
    if (x.shape[static_cast<size_t>(axis)] == 1) repeats *= extent.constant();
    if (sums) result.terms *= extent.constant();
  }
  const std::vector<std::vector<int64_t>> shapes{x.shape};
  result.shape = infer_plane_shape(context, attrs, shapes);
  ReduceAttrs largest = attrs;
  largest.kind = Reduction::max;
  for (size_t p = 0; p < x.planes.size(); ++p) {
    const bool by_kind = p == Bounds::low || p == Bounds::high || (sums && p == Bounds::reach);
    const std::vector<const std::vector<double>*> planes{&x.planes[p]};
    result.planes[p] = evaluate_planes(context, by_kind ? attrs : largest, shapes, planes);
    if (!sums || p == Bounds::varies) continue;
    for (double& value : result.planes[p]) value *= static_cast<double>(repeats);
  }
  if (sums) widen_sums(result, context.node.type.tensor().element);
  return result;
}

std::optional<Bounds> window_interval(const IntervalContext& context) {
  const ReduceWindowAttrs& attrs = context.node.attrs.as<ReduceWindowAttrs>();
  const bool sums = attrs.kind == Reduction::sum;
  if (!sums && attrs.kind != Reduction::max && attrs.kind != Reduction::min) return {};
  std::vector<bool> slides;
  bool padded = false;
  int64_t count = 1;
  for (size_t d = 0; d < attrs.window.size(); ++d) {
    const Dim &low = attrs.pad_low[d], &high = attrs.pad_high[d];
    if (!low.is_constant() || !high.is_constant()) return {};
    // A window that lies outside altogether gives the identity.
    if (low.constant() >= attrs.window[d] || high.constant() >= attrs.window[d]) return {};
    const bool pads = low.constant() > 0 || high.constant() > 0;
    padded = padded || pads;
    const bool crops = low.constant() < 0 || high.constant() < 0;
    slides.push_back(attrs.window[d] != 1 || attrs.strides[d] != 1 || pads || crops);
    count *= attrs.window[d];
  }
  Bounds result = merge_along(*context.operands[0], slides);
  if (!sums) return result;
  result.terms *= count;
  for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
    double& low = result.planes[Bounds::low][i];
    double& high = result.planes[Bounds::high][i];
    const double factor = static_cast<double>(count);
    if (padded && (low != 0 || high != 0)) result.planes[Bounds::varies][i] = 1;
    low = padded ? std::min(low * factor, low) : low * factor;
    high = padded ? std::max(high * factor, high) : high * factor;
    result.planes[Bounds::reach][i] *= factor;
  }
  widen_sums(result, context.node.type.tensor().element);
  return result;
}

}  // namespace

IntervalRule contraction_interval(const OpDef& op) {
  static const std::map<const OpDef*, IntervalRule> table{
      {&conv, conv_interval},
      {&dot_general, dot_interval},
      {&reduce, reduce_interval},
      {&reduce_window, window_interval},
  };
  const auto found = table.find(&op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace backcast::ops
