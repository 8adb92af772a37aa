// Pooling over windows and over everything.
#include <algorithm>
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

ValueId reduce_window(NodeContext& n, Reduction kind, ValueId x, const Window& w) {
  ReduceWindowAttrs attrs;
  attrs.kind = kind;
  attrs.window = {1, 1};
  attrs.strides = attrs.dilation = {1, 1};
  attrs.pad_low = attrs.pad_high = {Dim(0), Dim(0)};
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    attrs.window.push_back(w.kernel[i]);
    attrs.strides.push_back(w.strides[i]);
    attrs.dilation.push_back(w.dilations[i]);
    attrs.pad_low.push_back(w.pad_low[i]);
    // An output extent below what the padding allows is reached with less padding.
    const int64_t span = (w.kernel[i] - 1) * w.dilations[i] + 1;
    attrs.pad_high.push_back((w.output[i] - 1) * w.strides[i] + span -
                             n.e.extent(x, static_cast<int64_t>(i) + 2) - w.pad_low[i]);
  }
  return n.e.emit(ops::reduce_window, {x}, std::move(attrs));
}

/// Row-major (or column-major) numbers of x's elements, as i64 of x's shape.
ValueId element_numbers(NodeContext& n, const Shape& shape, bool column_major) {
  ValueId numbers = n.e.iota(ElementType::i64, shape, 0);
  const int64_t rank = static_cast<int64_t>(shape.size());
  numbers = n.e.mul(numbers, n.e.dimension(product(shape, 1, rank)));
  for (int64_t axis = 1; axis < rank; ++axis) {
    const Dim stride =
        !column_major || axis < 2 ? product(shape, axis + 1, rank) : product(shape, 2, axis);
    const ValueId along = n.e.iota(ElementType::i64, shape, axis);
    numbers = n.e.add(numbers, n.e.mul(along, n.e.dimension(stride)));
  }
  return numbers;
}

/// Where each window's maximum is: compares the window's positions one by one, first wins.
ValueId max_indices(NodeContext& n, ValueId x, const Window& w) {
  const size_t rank = w.kernel.size();
  Dims low = {Dim(0), Dim(0)}, high = {Dim(0), Dim(0)};
  int64_t positions = 1;
  for (size_t i = 0; i < rank; ++i) {
    positions *= w.kernel[i];
    if (positions > 4096) n.fail("output 1 (indices) is not supported for such a large window");
    const int64_t span = (w.kernel[i] - 1) * w.dilations[i] + 1;
    low.push_back(w.pad_low[i]);
    high.push_back((w.output[i] - 1) * w.strides[i] + span -
                   n.e.extent(x, static_cast<int64_t>(i) + 2) - w.pad_low[i]);
  }
  const bool column_major = n.attr_int("storage_order", 0) != 0;
  const ValueId numbers =
      n.e.pad(element_numbers(n, n.e.shape(x), column_major), n.e.integer(-1), low, high);
  const ValueId padded = n.e.pad(x, n.e.lowest({n.e.element(x), {}}), low, high);
  ValueId best, index;
  for (int64_t position = 0; position < positions; ++position) {
    ValueId value = padded, number = numbers;
    int64_t rest = position;
    for (size_t i = rank; i-- > 0;) {
      const int64_t start = rest % w.kernel[i] * w.dilations[i];
      rest /= w.kernel[i];
      const Dim limit = (w.output[i] - 1) * w.strides[i] + start + 1;
      const int64_t axis = static_cast<int64_t>(i) + 2;
      value = n.e.slice_axis(value, axis, start, limit, w.strides[i]);
      number = n.e.slice_axis(number, axis, start, limit, w.strides[i]);
    }
    if (position == 0) {
      best = value;
      index = number;
      continue;
    }
    // A padded position never wins over an element, even over -inf.
    const ValueId valid = n.e.compare(Comparison::ge, number, 0.0);
    const ValueId unset = n.e.compare(Comparison::lt, index, 0.0);
    const ValueId greater = n.e.compare(Comparison::gt, value, best);
    const ValueId wins = n.e.binary(ops::bit_and, valid, n.e.binary(ops::bit_or, greater, unset));
    best = n.e.select(wins, value, best);
    index = n.e.select(wins, number, index);
  }
  return index;
}

void max_pool(NodeContext& n) {
  const Window w = window_of(n, n.shape(0), std::nullopt);
  const ValueId x = n.input(0);
  n.result(reduce_window(n, Reduction::max, x, w));
  if (n.wants(1)) n.set(1, max_indices(n, x, w));
}

/// How many positions of window `output` along axis i count: those inside the input, and those in
/// the padding that the node asked for when `include_pad`; never those that ceil_mode added.
int64_t counted(const Window& w, size_t i, int64_t extent, int64_t output, bool include_pad) {
  const int64_t low = w.pad_low[i].constant(), high = w.pad_high[i].constant();
  int64_t count = 0;
  for (int64_t k = 0; k < w.kernel[i]; ++k) {
    const int64_t at = output * w.strides[i] + k * w.dilations[i] - low;
    const bool inside = at >= 0 && at < extent;
    const bool padding = at >= -low && at < extent + high;
    count += include_pad ? padding : inside;
  }
  return count;
}

/// The same of all windows along the axis, whose number run time tells: i64[output].
ValueId symbolic_counts(NodeContext& n, const Window& w, size_t i, const Dim& extent,
                        bool include_pad) {
  Emitter& e = n.e;
  const ValueId output = e.iota(ElementType::i64, {w.output[i]}, 0);
  const ValueId begin =
      e.sub(e.mul(output, static_cast<double>(w.strides[i])), e.dimension(w.pad_low[i]));
  const ValueId zero = e.like(begin, 0);
  // Taps before a position that is `distance` behind the window's first.
  const auto taps_before = [&](ValueId distance) {
    const double step = static_cast<double>(w.dilations[i]);
    const ValueId taps = e.div(e.add(e.max(distance, zero), step - 1), step);
    return e.min(taps, e.like(taps, static_cast<double>(w.kernel[i])));
  };
  const ValueId limit = e.dimension(include_pad ? extent + w.pad_high[i] : extent);
  const ValueId first = include_pad ? zero : taps_before(e.sub(zero, begin));
  return e.sub(taps_before(e.sub(limit, begin)), first);
}

/// The divisor of every window: a scalar when it is the same everywhere.
ValueId window_counts(NodeContext& n, ValueId x, const Window& w, bool include_pad) {
  const TensorType type = n.e.type(x);
  Shape shape(type.shape.size(), Dim(1));
  ValueId counts = n.e.scalar(type.element, 1);
  double uniform = 1;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const Dim& extent = type.shape[i + 2];
    if (w.output[i].is_constant() && extent.is_constant() && w.output[i].constant() <= 1 << 20) {
      std::vector<double> values;
      for (int64_t o = 0; o < w.output[i].constant(); ++o) {
        values.push_back(static_cast<double>(counted(w, i, extent.constant(), o, include_pad)));
      }
      if (std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; })) {
        uniform *= values.empty() ? 1 : values[0];
        continue;
      }
      Shape along = shape;
      along[i + 2] = w.output[i];
      const Literal vector = Literal::from_doubles(type.element, static_shape(along), values);
      counts = n.e.mul(counts, n.e.constant(vector));
      continue;
    }
    const bool none_beside = w.pad_low[i] == Dim(0) && w.high[i] == Dim(0);
    if (none_beside || (include_pad && w.high[i] == w.pad_high[i])) {
      uniform *= static_cast<double>(w.kernel[i]);
      continue;
    }
    Shape along = shape;
    along[i + 2] = w.output[i];
    const ValueId vector = symbolic_counts(n, w, i, extent, include_pad);
    counts = n.e.mul(counts, n.e.reshape(n.e.cast(vector, type.element), along));
  }
  return n.e.mul(counts, n.e.scalar(type.element, uniform));
}

}  // namespace

ValueId average_pool(NodeContext& n, ValueId x) {
  const Window w = window_of(n, n.e.shape(x), std::nullopt);
  const ValueId sum = reduce_window(n, Reduction::sum, x, w);
  return n.e.div(sum, window_counts(n, x, w, n.attr_int("count_include_pad", 0) != 0));
}

namespace {

void average_pool(NodeContext& n) { n.result(average_pool(n, n.input(0))); }

/// |x|^p, with whole p as products.
ValueId power_of_abs(Emitter& e, ValueId x, double p) {
  const ValueId a = e.unary(ops::abs, x);
  if (p == 1) return a;
  if (p == 2) return e.mul(x, x);
  return e.binary(ops::pow, a, e.like(a, p));
}

ValueId root(Emitter& e, ValueId x, double p) {
  if (p == 1) return x;
  if (p == 2) return e.unary(ops::sqrt, x);
  return e.binary(ops::pow, x, e.like(x, 1 / p));
}

void lp_pool(NodeContext& n) {
  const double p = static_cast<double>(n.attr_int("p", 2));
  if (p < 1) n.fail("attribute \"p\" has to be 1 or more");
  const Window w = window_of(n, n.shape(0), std::nullopt);
  const ValueId powers = power_of_abs(n.e, n.input(0), p);
  n.result(root(n.e, reduce_window(n, Reduction::sum, powers, w), p));
}

Ints spatial_axes(const NodeContext& n) {
  if (n.rank(0) < 2) n.fail("needs an input of rank 2 or more");
  return counting(n.rank(0) - 2, 2);
}

void global_average_pool(NodeContext& n) { n.result(n.e.mean(n.input(0), spatial_axes(n), true)); }

void global_max_pool(NodeContext& n) {
  n.result(n.e.reduce(Reduction::max, n.input(0), spatial_axes(n), true));
}

void global_lp_pool(NodeContext& n) {
  const double p = static_cast<double>(n.attr_int("p", 2));
  if (p < 1) n.fail("attribute \"p\" has to be 1 or more");
  const ValueId powers = power_of_abs(n.e, n.input(0), p);
  n.result(root(n.e, n.e.reduce(Reduction::sum, powers, spatial_axes(n), true), p));
}

/// Scatters each value to the flat position that MaxPool found it at.
void max_unpool(NodeContext& n) {
  const Shape input = n.shape(0);
  if (input.size() < 3) n.fail("needs an input of rank 3 or more");
  Shape output;
  if (n.has(2)) {
    output = n.dims(2);
    if (output.size() != input.size()) n.fail("output_shape has the wrong length");
  } else {
    const size_t rank = input.size() - 2;
    const Ints kernel = n.attr_ints("kernel_shape").value_or(Ints());
    const Ints strides = n.attr_ints("strides").value_or(Ints(rank, 1));
    const Ints pads = n.attr_ints("pads").value_or(Ints(rank * 2, 0));
    if (input.size() < 3 || kernel.size() != rank || strides.size() != rank ||
        pads.size() != rank * 2) {
      n.fail("kernel_shape, strides and pads do not fit the input's rank");
    }
    output = {input[0], input[1]};
    for (size_t i = 0; i < rank; ++i) {
      output.push_back((input[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank]);
    }
  }
  // With an explicit output_shape the indices still count in the tensor that was pooled.
  Shape indexed = output;
  if (n.has(2) && n.has_attr("kernel_shape")) {
    const size_t rank = input.size() - 2;
    const Ints kernel = n.attr_ints("kernel_shape").value_or(Ints());
    const Ints strides = n.attr_ints("strides").value_or(Ints(rank, 1));
    const Ints pads = n.attr_ints("pads").value_or(Ints(rank * 2, 0));
    if (kernel.size() != rank || strides.size() != rank || pads.size() != rank * 2) {
      n.fail("kernel_shape, strides and pads do not fit the input's rank");
    }
    for (size_t i = 0; i < rank; ++i) {
      indexed[i + 2] = (input[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank];
    }
  }
  const int64_t rank = n.rank(0);
  const Dim values = product(input, 0, rank), total = product(indexed, 0, rank);
  ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  const ValueId zeros = n.e.filled({n.element(0), {total}}, 0);
  ValueId y = n.e.emit(
      ops::scatter,
      {zeros, n.e.reshape(n.input(1), {values, Dim(1)}), n.e.reshape(n.input(0), {values})},
      std::move(attrs));
  y = n.e.reshape(y, indexed);
  Dims low(output.size(), Dim(0)), high;
  for (size_t i = 0; i < output.size(); ++i) high.push_back(output[i] - indexed[i]);
  n.result(n.e.pad(y, n.e.scalar(n.element(0), 0), low, high));
}

constexpr int64_t kNew = kNewestOpset;
#define POOL_ATTRIBUTES "auto_pad:s kernel_shape:I pads:I strides:I"

const OperatorRule kRules[] = {
    {"MaxPool", 7, 7, 1, 1, max_pool, POOL_ATTRIBUTES},
    {"MaxPool", 8, 9, 1, 1, max_pool, POOL_ATTRIBUTES " storage_order:i"},
    {"MaxPool", 10, kNew, 1, 1, max_pool,
     POOL_ATTRIBUTES " storage_order:i ceil_mode:i dilations:I"},
    {"AveragePool", 7, 9, 1, 1, average_pool, POOL_ATTRIBUTES " count_include_pad:i"},
    {"AveragePool", 10, 18, 1, 1, average_pool, POOL_ATTRIBUTES " count_include_pad:i ceil_mode:i"},
    {"AveragePool", 19, kNew, 1, 1, average_pool,
     POOL_ATTRIBUTES " count_include_pad:i ceil_mode:i dilations:I"},
    {"LpPool", 7, 17, 1, 1, lp_pool, POOL_ATTRIBUTES " p:i"},
    {"LpPool", 18, kNew, 1, 1, lp_pool, POOL_ATTRIBUTES " p:i ceil_mode:i dilations:I"},
    {"GlobalAveragePool", 7, kNew, 1, 1, global_average_pool},
    {"GlobalMaxPool", 7, kNew, 1, 1, global_max_pool},
    {"GlobalLpPool", 7, kNew, 1, 1, global_lp_pool, "p:i"},
    {"MaxUnpool", 9, kNew, 2, 3, max_unpool, "kernel_shape:I pads:I strides:I"},
};

}  // namespace

std::span<const OperatorRule> pooling_rules() { return kRules; }

}  // namespace backcast
