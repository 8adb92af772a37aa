// Quantised operators of com.microsoft, which ONNX Runtime's quantisation tools write beside those
// of ONNX. An operand is a tensor, its scale and its zero point; scales are numbers unless said.
#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/quantization.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Input i, which has to be one number, as f32.
ValueId number(NodeContext& n, size_t i) {
  if (!(n.type(i).element_count() == Dim(1))) {
    n.fail(fmt::format("input {} has to be one number and is {}", i, to_string(n.type(i))));
  }
  return n.e.reshape(n.e.cast(scale_input(n, i), ElementType::f32), {});
}

/// An operand whose tensor is input i, less its zero point: whole numbers in f32.
ValueId whole(NodeContext& n, size_t i) {
  if (n.has(i + 2)) number(n, i + 2);
  return n.e.cast(centred(n, i, i + 2, 0), ElementType::f32);
}

ValueId dequantised(NodeContext& n, size_t i) { return n.e.mul(whole(n, i), number(n, i + 1)); }

/// Sets the output. `y` counts in steps of the output's scale; its zero point is input `zero`.
void set_steps(NodeContext& n, ValueId y, size_t zero, bool rounded = false) {
  Emitter& e = n.e;
  const ElementType to = n.has(zero) ? n.element(zero) : n.element(0);
  check_quantised(n, to);
  note_rounding(n);
  if (rounded) y = e.unary(ops::round_even, y);
  if (n.has(zero)) y = e.add(y, number(n, zero));
  // Rounding behind the zero point is what ONNX Runtime does here, ties included.
  n.result(saturate(e, rounded ? y : e.unary(ops::round_even, y), to));
}

/// Sets the output to `y` quantised with the scale and zero point from input `scale` on.
void set_quantised(NodeContext& n, ValueId y, size_t scale) {
  set_steps(n, n.e.div(y, number(n, scale)), scale + 1, true);
}

void qlinear_add(NodeContext& n) {
  Emitter& e = n.e;
  const ValueId step = number(n, 6);
  const auto term = [&](size_t i) { return e.mul(whole(n, i), e.div(number(n, i + 1), step)); };
  set_steps(n, e.add(term(0), term(3)), 7);
}

void qlinear_mul(NodeContext& n) {
  Emitter& e = n.e;
  const ValueId scale = e.div(e.mul(number(n, 1), number(n, 4)), number(n, 6));
  set_steps(n, e.mul(e.mul(whole(n, 0), whole(n, 3)), scale), 7);
}

void qlinear_sigmoid(NodeContext& n) {
  set_quantised(n, n.e.unary(ops::sigmoid, dequantised(n, 0)), 3);
}

void qlinear_leaky_relu(NodeContext& n) {
  const ValueId x = dequantised(n, 0);
  const ValueId below = n.e.mul(x, n.attr_float("alpha", 0.01f));
  set_quantised(n, n.e.select(n.e.compare(Comparison::lt, x, 0.0), below, x), 3);
}

/// Before opset 13 of Softmax the axes from `axis` on count as one.
void qlinear_softmax(NodeContext& n) {
  const ValueId x = dequantised(n, 0);
  const Shape shape = n.shape(0);
  const bool one_axis = n.attr_int("opset", 13) >= 13;
  const int64_t axis = n.attr_axis("axis", one_axis ? -1 : 1, n.rank(0));
  if (one_axis) return set_quantised(n, softmax(n, x, axis), 3);
  const Shape flat = {product(shape, 0, axis), product(shape, axis, n.rank(0))};
  set_quantised(n, n.e.reshape(softmax(n, n.e.reshape(x, flat), 1), shape), 3);
}

void qlinear_where(NodeContext& n) {
  set_quantised(n, n.e.select(n.input(0), dequantised(n, 1), dequantised(n, 4)), 7);
}

void qlinear_concat(NodeContext& n) {
  if (n.input_count() % 3 != 2) n.fail("takes a scale, a zero point, and three inputs per part");
  Emitter& e = n.e;
  std::vector<ValueId> parts;
  for (size_t i = 2; i < n.input_count(); i += 3) parts.push_back(dequantised(n, i));
  const int64_t axis = n.attr_axis("axis", 0, e.rank(parts[0]));
  set_quantised(n, e.concat(parts, axis), 0);
}

/// The axis of channels brought to 1, where the attribute channels_last says that it is the last.
ValueId channels_second(NodeContext& n, ValueId x) {
  const int64_t rank = n.e.rank(x);
  if (rank < 3) n.fail("needs an input of rank 3 or more");
  if (n.attr_int("channels_last", 0) == 0) return x;
  Ints order = counting(rank - 1);
  order.insert(order.begin() + 1, rank - 1);
  return n.e.transpose(x, order);
}
ValueId channels_back(NodeContext& n, ValueId y) {
  if (n.attr_int("channels_last", 0) == 0) return y;
  Ints order = counting(n.e.rank(y) - 1, 1);
  order[0] = 0;  // 0, 2, 3, …, 1
  order.push_back(1);
  return n.e.transpose(y, order);
}

void qlinear_average_pool(NodeContext& n) {
  const ValueId mean = channels_back(n, average_pool(n, channels_second(n, whole(n, 0))));
  set_steps(n, n.e.mul(mean, n.e.div(number(n, 1), number(n, 3))), 4);
}

/// The sum is exact in i32.
void qlinear_global_average_pool(NodeContext& n) {
  Emitter& e = n.e;
  if (n.rank(0) < 3) n.fail("needs an input of rank 3 or more");
  const Ints axes = counting(n.rank(0) - 2, n.attr_int("channels_last", 0) != 0 ? 1 : 2);
  const ValueId x = centred(n, 0, 2, 0);
  const ValueId sum = e.cast(e.reduce(Reduction::sum, x, axes, true), ElementType::f32);
  const ValueId count = e.cast(e.count(x, axes), ElementType::f32);
  const ValueId scale = e.div(number(n, 1), e.mul(number(n, 3), count));
  set_steps(n, e.mul(sum, scale), 4, true);
}

/// alpha·(A'·B' + C) in f32, or quantised where the output has a scale. B's scale may be a vector
/// with an element per column.
void qgemm(NodeContext& n) {
  Emitter& e = n.e;
  if (n.rank(0) != 2 || n.rank(3) != 2) n.fail("A and B have to be matrices");
  const int64_t trans_a = n.attr_int("transA", 0), trans_b = n.attr_int("transB", 0);
  const ValueId a = centred(n, 0, 2, 0), b = centred(n, 3, 5, trans_b ? 0 : 1);
  ValueId product = e.dot(a, b, {{}, {}, {trans_a ? 0 : 1}, {trans_b ? 1 : 0}});
  if (n.has(6) && n.element(6) != ElementType::i32) n.fail("C has to be i32");
  if (n.has(6)) product = e.add(product, e.broadcast_to(n.input(6), e.shape(product)));
  ValueId scale = e.mul(number(n, 1), matmul_scale(n, 4, false));
  const double alpha = n.attr_float("alpha", 1);
  if (alpha != 1) scale = e.mul(scale, alpha);
  if (n.has(8) != n.has(7)) n.fail("the output needs a scale and a zero point, or neither");
  n.result(n.has(8) ? requantise(n, product, scale, 7, 8)
                    : e.mul(e.cast(product, ElementType::f32), scale));
}

/// a·b in the scale's type, and a bias if there is one.
void set_float_product(NodeContext& n, ValueId a, ValueId b, ValueId scale, size_t bias) {
  Emitter& e = n.e;
  const ValueId y = e.mul(e.cast(matmul(n, a, b), e.element(scale)), scale);
  n.result(n.has(bias) ? e.add(y, n.input(bias)) : y);
}

void matmul_integer_to_float(NodeContext& n) {
  const ValueId a = centred(n, 0, 4, std::max<int64_t>(n.rank(0) - 2, 0));
  const ValueId b = centred(n, 1, 5, n.rank(1) - 1);
  const ValueId scale = n.e.mul(matmul_scale(n, 2, true), matmul_scale(n, 3, false));
  set_float_product(n, a, b, scale, 6);
}

void dynamic_quantize_matmul(NodeContext& n) {
  Emitter& e = n.e;
  const DynamicallyQuantised q = quantise_dynamically(e, n.input(0), is_training(n));
  note_rounding(n);
  const ValueId a = e.sub(e.cast(q.y, ElementType::i32), e.cast(q.zero, ElementType::i32));
  const ValueId b = centred(n, 1, 3, n.rank(1) - 1);
  set_float_product(n, a, b, e.mul(q.scale, matmul_scale(n, 2, false)), 4);
}

constexpr int64_t kNew = kMicrosoftOpset;

const OperatorRule kRules[] = {
    {"QLinearAdd", 1, kNew, 7, 8, qlinear_add, "", kMicrosoftDomain},
    {"QLinearMul", 1, kNew, 7, 8, qlinear_mul, "", kMicrosoftDomain},
    {"QLinearSigmoid", 1, kNew, 4, 5, qlinear_sigmoid, "", kMicrosoftDomain},
    {"QLinearLeakyRelu", 1, kNew, 4, 5, qlinear_leaky_relu, "alpha:f", kMicrosoftDomain},
    {"QLinearSoftmax", 1, kNew, 5, 5, qlinear_softmax, "axis:i opset:i", kMicrosoftDomain},
    {"QLinearWhere", 1, kNew, 9, 9, qlinear_where, "", kMicrosoftDomain},
    {"QLinearConcat", 1, kNew, 5, -1, qlinear_concat, "axis:i", kMicrosoftDomain},
    {"QLinearAveragePool", 1, kNew, 4, 5, qlinear_average_pool,
     "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:I pads:I strides:I",
     kMicrosoftDomain},
    {"QLinearGlobalAveragePool", 1, kNew, 5, 5, qlinear_global_average_pool, "channels_last:i",
     kMicrosoftDomain},
    {"QGemm", 1, kNew, 6, 9, qgemm, "alpha:f transA:i transB:i", kMicrosoftDomain},
    {"MatMulIntegerToFloat", 1, kNew, 4, 7, matmul_integer_to_float, "", kMicrosoftDomain},
    {"DynamicQuantizeMatMul", 1, kNew, 3, 5, dynamic_quantize_matmul, "", kMicrosoftDomain},
};

}  // namespace

std::span<const OperatorRule> quantization_contrib_rules() { return kRules; }

}  // namespace backcast
