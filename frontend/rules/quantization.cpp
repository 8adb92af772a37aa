// Quantisation to and from 8- and 16-bit integers, and products of quantised operands. Products are
// exact in i32; scales are applied in floating point.
#include "frontend/rules/quantization.h"

#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {

ValueId scale_input(NodeContext& n, size_t i) {
  const std::string name = n.initializer(i);
  if (name.empty() || !is_float(n.element(i))) return n.input(i);  // or it is a zero point
  n.training().scales.insert(name);
  const std::optional<Literal> scale = n.known_literal(i);
  for (int64_t k = 0; scale && k < scale->element_count(); ++k) {
    const double value = scale->as_double(k);
    if (std::isfinite(value) && value != 0) continue;
    n.note(
        fmt::format("the scale \"{}\" is {}: what it quantises is lost; calibrate with finite "
                    "values (masks often hold infinities)",
                    name, value));
    break;
  }
  return n.input(i);
}

bool is_training(NodeContext& n) { return n.training().mode == ImportMode::training; }

void note_rounding(NodeContext& n) {
  if (is_training(n)) n.training().rounding.push_back(n.loc().node);
}

ValueId saturate(Emitter& e, ValueId x, ElementType to) {
  return e.cast(e.clamp(x, lowest_value(to), largest_value(to)), to);
}

void check_quantised(const NodeContext& n, ElementType to) {
  if (!is_integer(to) || byte_size(to) > 2) {
    n.fail(fmt::format("quantisation to {} is not supported", name_of(to)));
  }
}

ValueId centred(NodeContext& n, size_t operand, size_t zero_point, int64_t axis) {
  const ValueId x = n.e.cast(n.input(operand), ElementType::i32);
  if (!n.has(zero_point)) return x;
  ValueId zero = n.e.cast(n.input(zero_point), ElementType::i32);
  if (n.e.type(zero).element_count() == Dim(1)) zero = n.e.reshape(zero, {});
  if (n.e.rank(zero) == 1) zero = n.e.broadcast_in(zero, n.e.shape(x), {axis});
  return n.e.sub(x, zero);
}

ValueId requantise(NodeContext& n, ValueId product, ValueId scale, size_t y_scale,
                   size_t y_zero_point) {
  Emitter& e = n.e;
  const auto scalar = [&](size_t i) {
    if (!(n.type(i).element_count() == Dim(1))) n.fail("the output's scale has to be a scalar");
    return e.reshape(e.cast(scale_input(n, i), ElementType::f32), {});
  };
  note_rounding(n);
  const ValueId factor = e.div(scale, scalar(y_scale));
  const ValueId y = e.unary(ops::round_even, e.mul(e.cast(product, ElementType::f32), factor));
  check_quantised(n, n.element(y_zero_point));
  return saturate(e, e.add(y, scalar(y_zero_point)), n.element(y_zero_point));
}

ValueId matmul_scale(NodeContext& n, size_t input, bool rows) {
  ValueId scale = n.e.cast(scale_input(n, input), ElementType::f32);
  if (n.e.type(scale).element_count() == Dim(1)) return n.e.reshape(scale, {});
  if (n.e.rank(scale) == 1 && rows) scale = n.e.unsqueeze(scale, 1);
  return scale;
}

ValueId repeat_blocks(Emitter& e, ValueId x, int64_t axis, int64_t block, const Dim& extent) {
  return e.slice_axis(e.repeat(x, axis, Dim(block)), axis, 0, extent);
}

/// The range is widened to hold 0, and 0 is hit exactly.
DynamicallyQuantised quantise_dynamically(Emitter& e, ValueId x, bool training) {
  if (training) x = e.unary(ops::stop_gradient, x);
  const Ints all = counting(e.rank(x));
  const ValueId zero = e.scalar(e.element(x), 0);
  const ValueId top = e.max(e.reduce(Reduction::max, x, all), zero);
  const ValueId bottom = e.min(e.reduce(Reduction::min, x, all), zero);
  const ValueId scale = e.div(e.sub(top, bottom), 255.0);
  const ValueId offset =
      e.unary(ops::round_even, e.clamp(e.div(e.unary(ops::neg, bottom), scale), 0, 255));
  const ValueId y = e.unary(ops::round_even, e.div(x, scale));
  return {saturate(e, e.add(y, offset), ElementType::u8), scale, offset};
}

ValueId dynamic_product(Emitter& e, ValueId x, ValueId w, ValueId scale, ValueId zero,
                        bool training) {
  const DynamicallyQuantised q = quantise_dynamically(e, x, training);
  const ValueId a = e.sub(e.cast(q.y, ElementType::i32), e.cast(q.zero, ElementType::i32));
  ValueId offset = e.cast(zero, ElementType::i32);
  if (e.rank(offset) == 1) offset = e.broadcast_in(offset, e.shape(w), {0});
  const ValueId b = e.sub(e.cast(w, ElementType::i32), offset);
  const ValueId product = e.dot(a, b, {{}, {}, {e.rank(a) - 1}, {1}});
  return e.mul(e.cast(product, e.element(x)), e.mul(q.scale, scale));
}

namespace {

/// A scale or zero point brought to x's shape: a scalar, a vector along `axis`, or blocks along it.
ValueId spread(NodeContext& n, ValueId parameter, const Shape& x, int64_t axis) {
  Emitter& e = n.e;
  const Shape shape = e.shape(parameter);
  if (e.type(parameter).element_count() == Dim(1)) {
    return e.broadcast_to(e.reshape(parameter, {}), x);
  }
  if (shape.size() == 1) return e.broadcast_in(parameter, x, {axis});
  if (shape.size() != x.size()) n.fail("scale and zero point have another rank than the input");
  if (shape == x) return parameter;
  const int64_t block = n.attr_int("block_size", 0);
  if (block < 1) n.fail("attribute \"block_size\" has to be positive for blocked quantisation");
  return repeat_blocks(e, parameter, axis, block, x[static_cast<size_t>(axis)]);
}

/// Of one scale for all there may be any axis in the file.
int64_t quantisation_axis(const NodeContext& n) {
  if (n.e.type(n.input(1)).element_count() == Dim(1)) return 0;
  return n.rank(0) == 0 ? 0 : n.attr_axis("axis", n.rank(0) == 1 ? 0 : 1, n.rank(0));
}

void quantize_linear(NodeContext& n) {
  Emitter& e = n.e;
  ElementType to = n.has(2) ? n.element(2) : ElementType::u8;
  if (n.attr_int("output_dtype", 0) != 0) to = n.attr_element("output_dtype", to);
  check_quantised(n, to);
  note_rounding(n);
  ElementType compute = n.element(1);
  if (n.attr_int("precision", 0) != 0) compute = n.attr_element("precision", compute);
  if (!is_float(compute)) n.fail("the scale has to be a floating-point number");
  const Shape shape = n.shape(0);
  const int64_t axis = quantisation_axis(n);
  const ValueId scale = spread(n, e.cast(scale_input(n, 1), compute), shape, axis);
  ValueId y = e.unary(ops::round_even, e.div(e.cast(n.input(0), compute), scale));
  // 16-bit integers and their sums need more than f16 has.
  if (byte_size(compute) < 4) y = e.cast(y, ElementType::f32);
  if (n.has(2)) {
    y = e.add(y, spread(n, e.cast(n.input(2), e.element(y)), shape, axis));
  }
  n.result(saturate(e, y, to));
}

void dequantize_linear(NodeContext& n) {
  Emitter& e = n.e;
  ElementType to = n.element(1);
  if (n.attr_int("output_dtype", 0) != 0) to = n.attr_element("output_dtype", to);
  const Shape shape = n.shape(0);
  const int64_t axis = quantisation_axis(n);
  ValueId x = e.cast(n.input(0), ElementType::i32);
  if (n.has(2)) x = e.sub(x, spread(n, e.cast(n.input(2), ElementType::i32), shape, axis));
  const ElementType compute = to == ElementType::f64 ? to : ElementType::f32;
  const ValueId scale = spread(n, e.cast(scale_input(n, 1), compute), shape, axis);
  n.result(e.cast(e.mul(e.cast(x, compute), scale), to));
}

void dynamic_quantize_linear(NodeContext& n) {
  const DynamicallyQuantised q = quantise_dynamically(n.e, n.input(0), is_training(n));
  note_rounding(n);
  n.set(0, q.y);
  n.set(1, q.scale);
  n.set(2, n.e.cast(q.zero, ElementType::u8));
}

void matmul_integer(NodeContext& n) {
  const ValueId a = centred(n, 0, 2, std::max<int64_t>(n.rank(0) - 2, 0));
  n.result(matmul(n, a, centred(n, 1, 3, n.rank(1) - 1)));
}

void conv_integer(NodeContext& n) {
  const ValueId x = centred(n, 0, 2, 1);
  n.result(convolve(n, x, centred(n, 1, 3, 0)));
}

void qlinear_matmul(NodeContext& n) {
  const ValueId a = centred(n, 0, 2, std::max<int64_t>(n.rank(0) - 2, 0));
  const ValueId product = matmul(n, a, centred(n, 3, 5, n.rank(3) - 1));
  const ValueId scale = n.e.mul(matmul_scale(n, 1, true), matmul_scale(n, 4, false));
  n.result(requantise(n, product, scale, 6, 7));
}

void qlinear_conv(NodeContext& n) {
  const ValueId x = centred(n, 0, 2, 1);
  ValueId product = convolve(n, x, centred(n, 3, 5, 0));
  const Shape shape = n.e.shape(product);
  if (n.has(8)) product = n.e.add(product, n.e.broadcast_in(n.input(8), shape, {1}));
  ValueId scale = n.e.mul(n.e.reshape(n.e.cast(scale_input(n, 1), ElementType::f32), {}),
                          n.e.cast(scale_input(n, 4), ElementType::f32));
  if (n.e.type(scale).element_count() == Dim(1)) scale = n.e.reshape(scale, {});
  if (n.e.rank(scale) == 1) scale = n.e.broadcast_in(scale, shape, {1});
  n.result(requantise(n, product, scale, 6, 7));
}

constexpr int64_t kNew = kNewestOpset;
#define CONV_ATTRIBUTES "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"

const OperatorRule kRules[] = {
    {"QuantizeLinear", 10, 12, 2, 3, quantize_linear},
    {"QuantizeLinear", 13, 18, 2, 3, quantize_linear, "axis:i"},
    {"QuantizeLinear", 19, 20, 2, 3, quantize_linear, "axis:i saturate:i"},
    {"QuantizeLinear", 21, kNew, 2, 3, quantize_linear,
     "axis:i saturate:i block_size:i output_dtype:i precision:i"},
    {"DequantizeLinear", 10, 12, 2, 3, dequantize_linear},
    {"DequantizeLinear", 13, 20, 2, 3, dequantize_linear, "axis:i"},
    {"DequantizeLinear", 21, kNew, 2, 3, dequantize_linear, "axis:i block_size:i output_dtype:i",
     "", true},
    // Written for 16-bit integers before the operators of ONNX took them.
    {"QuantizeLinear", 1, kMicrosoftOpset, 2, 3, quantize_linear, "axis:i", kMicrosoftDomain},
    {"DequantizeLinear", 1, kMicrosoftOpset, 2, 3, dequantize_linear, "axis:i", kMicrosoftDomain,
     true},
    {"DynamicQuantizeLinear", 11, kNew, 1, 1, dynamic_quantize_linear},
    {"MatMulInteger", 10, kNew, 2, 4, matmul_integer},
    {"ConvInteger", 10, kNew, 2, 4, conv_integer, CONV_ATTRIBUTES},
    {"QLinearMatMul", 10, kNew, 8, 8, qlinear_matmul},
    {"QLinearConv", 10, kNew, 8, 9, qlinear_conv, CONV_ATTRIBUTES},
};

}  // namespace

std::span<const OperatorRule> quantization_rules() { return kRules; }

}  // namespace backcast
