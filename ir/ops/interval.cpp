// Bounds and what the families of transfer rules share: repeating and merging entries, running an
// operator's evaluation on bounds, rounding.
#include "ir/ops/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Entries of one value; larger constants are known by their extremes only.
constexpr int64_t kMaxEntries = int64_t{1} << 16;

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

/// What values of the type lie within; doubles hold integers exactly up to 2^53 only.
std::pair<double, double> range_of(ElementType element) {
  if (is_integer(element)) return {lowest_value(element), largest_value(element)};
  if (element == ElementType::boolean) return {0, 1};
  if (element == ElementType::f16) return {-65504.0, 65504.0};
  return element == ElementType::f64 ? std::pair{-1e300, 1e300} : std::pair{-3e38, 3e38};
}

/// What overflows is not known: a float may be infinite or NaN, an integer wraps around. Nor is an
/// integer that rounding before it may have made one of two.
void settle(Bounds& bounds, ElementType element) {
  const auto [lowest, largest] = range_of(element);
  const double limit = is_float(element) ? largest : std::min(largest, 0x1p53);
  const double least = is_float(element) ? -limit : std::max(lowest, -0x1p53);
  for (size_t i = 0; i < bounds.planes[Bounds::low].size(); ++i) {
    double& low = bounds.planes[Bounds::low][i];
    double& high = bounds.planes[Bounds::high][i];
    double& reach = bounds.planes[Bounds::reach][i];
    if (low <= high && low >= least && high <= limit && reach <= std::max(limit, -lowest)) {
      double& varies = bounds.planes[Bounds::varies][i];
      varies = low == high ? 0 : is_float(element) ? varies : 1;
      continue;
    }
    low = is_float(element) ? -kInfinity : lowest;
    high = is_float(element) ? kInfinity : largest;
    reach = is_float(element) ? kInfinity : std::max(-lowest, largest);
    bounds.planes[Bounds::varies][i] = 1;
  }
}

}  // namespace

Bounds Bounds::between(int64_t rank, double low, double high) {
  Bounds bounds;
  bounds.shape.assign(static_cast<size_t>(rank), 1);
  bounds.planes = {std::vector<double>{low}, std::vector<double>{high},
                   std::vector<double>{std::max(std::abs(low), std::abs(high))},
                   std::vector<double>{low == high ? 0.0 : 1.0}};
  return bounds;
}

Bounds Bounds::of(const TensorType& type) {
  const auto [lowest, largest] = range_of(type.element);
  if (is_float(type.element)) return between(type.rank(), -kInfinity, kInfinity);
  return between(type.rank(), lowest, largest);
}

Bounds Bounds::of(const Literal& literal) {
  const int64_t count = literal.element_count();
  if (count == 0) return of(literal.type());
  if (count > kMaxEntries) {
    double low = kInfinity, high = -kInfinity;
    for (int64_t i = 0; i < count; ++i) {
      const double value = literal.as_double(i);
      low = std::isnan(value) ? -kInfinity : std::min(low, value);
      high = std::isnan(value) ? kInfinity : std::max(high, value);
    }
    Bounds bounds = between(literal.type().rank(), low, high);
    settle(bounds, literal.element());
    return bounds;
  }
  Bounds bounds;
  bounds.shape = literal.shape();
  for (int64_t i = 0; i < count; ++i) {
    const double value = literal.as_double(i);
    bounds.planes[low].push_back(value);
    bounds.planes[high].push_back(value);
    bounds.planes[reach].push_back(std::abs(value));
    bounds.planes[varies].push_back(0);
  }
  settle(bounds, literal.element());
  return bounds;
}

Bounds interval_of(const IntervalContext& context) {
  const TensorType& type = context.node.type.tensor();
  for (const auto family :
       {ops::elementwise_interval, ops::movement_interval, ops::contraction_interval}) {
    const ops::IntervalRule rule = family(*context.node.op);
    if (rule == nullptr) continue;
    std::optional<Bounds> bounds = rule(context);
    if (!bounds || bounds->count() == 0) break;
    settle(*bounds, type.element);
    return std::move(*bounds);
  }
  return Bounds::of(type);
}

std::optional<SharedValue> shared_value(const Bounds& bounds, int64_t axis, int64_t index) {
  const int64_t extent = bounds.shape[static_cast<size_t>(axis)];
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < bounds.shape.size(); ++d) {
    inner *= bounds.shape[d];
  }
  const int64_t step = inner * extent;
  std::optional<SharedValue> shared;
  for (int64_t i = extent == 1 ? 0 : index * inner; i < bounds.count(); i += step) {
    for (int64_t at = i; at < i + inner; ++at) {
      const size_t k = static_cast<size_t>(at);
      const bool exact = bounds.planes[Bounds::low][k] == bounds.planes[Bounds::high][k];
      if (!bounds.is_fixed(at) || (shared && shared->value != bounds.value(at))) return {};
      shared = SharedValue{bounds.value(at), exact && (!shared || shared->exact)};
    }
  }
  return shared;
}

namespace ops {

Bounds expand(const Bounds& bounds, const std::vector<int64_t>& shape) {
  if (bounds.shape == shape) return bounds;
  Bounds wide;
  wide.shape = shape;
  wide.terms = bounds.terms;
  const int64_t count = product(shape);
  const std::vector<int64_t> strides = row_major_strides(bounds.shape);
  for (std::vector<double>& plane : wide.planes) plane.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      if (bounds.shape[d] != 1) from += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    for (size_t p = 0; p < wide.planes.size(); ++p) {
      wide.planes[p][static_cast<size_t>(i)] = bounds.planes[p][static_cast<size_t>(from)];
    }
  }
  return wide;
}

Bounds merge_along(const Bounds& bounds, const std::vector<bool>& drop) {
  std::vector<int64_t> shape = bounds.shape;
  bool same = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    same = same && (!drop[d] || shape[d] == 1);
    if (drop[d]) shape[d] = 1;
  }
  if (same) return bounds;
  Bounds merged;
  merged.shape = shape;
  merged.terms = bounds.terms;
  const size_t count = static_cast<size_t>(product(shape));
  merged.planes = {std::vector<double>(count, kInfinity), std::vector<double>(count, -kInfinity),
                   std::vector<double>(count, 0.0), std::vector<double>(count, 0.0)};
  std::vector<char> seen(count, 0);
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (int64_t i = 0; i < bounds.count(); ++i) {
    int64_t rest = i, to = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      if (!drop[d]) to += rest % bounds.shape[d] * strides[d];
      rest /= bounds.shape[d];
    }
    const size_t at = static_cast<size_t>(to), from = static_cast<size_t>(i);
    double& low = merged.planes[Bounds::low][at];
    double& high = merged.planes[Bounds::high][at];
    double& varies = merged.planes[Bounds::varies][at];
    const bool differs = seen[at] && (low != bounds.planes[Bounds::low][from] ||
                                      high != bounds.planes[Bounds::high][from]);
    if (differs || !bounds.is_fixed(i)) varies = 1;
    low = std::min(low, bounds.planes[Bounds::low][from]);
    high = std::max(high, bounds.planes[Bounds::high][from]);
    merged.planes[Bounds::reach][at] =
        std::max(merged.planes[Bounds::reach][at], bounds.planes[Bounds::reach][from]);
    seen[at] = 1;
  }
  return merged;
}

namespace {

Type inferred(const IntervalContext& context, const Attrs& attrs,
              std::span<const std::vector<int64_t>> shapes) {
  std::vector<Type> types;
  for (size_t i = 0; i < shapes.size(); ++i) {
    // Conditions stay what they are.
    const bool condition = context.types[i]->element == ElementType::boolean;
    types.push_back(TensorType{condition ? ElementType::boolean : ElementType::f64,
                               Shape(shapes[i].begin(), shapes[i].end())});
  }
  return context.node.op->infer({context.module, types, attrs});
}

}  // namespace

std::vector<int64_t> infer_plane_shape(const IntervalContext& context, const Attrs& attrs,
                                       std::span<const std::vector<int64_t>> shapes) {
  return static_shape(inferred(context, attrs, shapes).tensor().shape);
}

std::vector<double> evaluate_planes(const IntervalContext& context, const Attrs& attrs,
                                    std::span<const std::vector<int64_t>> shapes,
                                    std::span<const std::vector<double>* const> planes) {
  Node node{context.node.op, {}, attrs, inferred(context, attrs, shapes), context.node.loc};
  std::vector<Value> operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const bool condition = context.types[i]->element == ElementType::boolean;
    operands.push_back(Literal::from_doubles(condition ? ElementType::boolean : ElementType::f64,
                                             shapes[i], *planes[i]));
  }
  const SymbolValues none;
  const Value value = node.op->evaluate({context.module, none, node, operands});
  std::vector<double> result(static_cast<size_t>(value.tensor.element_count()));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = value.tensor.as_double(static_cast<int64_t>(i));
  }
  return result;
}

double rounding_unit(ElementType element) {
  return element == ElementType::bf16  ? 0x1p-8
         : element == ElementType::f16 ? 0x1p-11
         : is_float(element)           ? 0x1p-24
                                       : 0;
}

double flushed_below(ElementType element) {
  return element == ElementType::f16 ? 0x1p-14 : 0x1p-125;
}

void widen_sums(Bounds& bounds, ElementType element) {
  if (!is_float(element)) return;
  const double unit =
      kRoundingSlack * static_cast<double>(bounds.terms + 8) * rounding_unit(element);
  for (size_t i = 0; i < bounds.planes[Bounds::low].size(); ++i) {
    const double reach = bounds.planes[Bounds::reach][i];
    if (reach == 0) continue;  // all terms are zero
    // What is subnormal may be flushed to zero.
    const double error = unit * reach + static_cast<double>(bounds.terms) * flushed_below(element);
    bounds.planes[Bounds::low][i] -= error;
    bounds.planes[Bounds::high][i] += error;
  }
}

}  // namespace ops
}  // namespace backcast
