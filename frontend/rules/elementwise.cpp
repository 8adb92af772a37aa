// Arithmetic, comparisons, logic and casts: one core operator each, or a few.
#include <cmath>
#include <limits>

#include "frontend/operators.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

template <const OpDef& op>
void unary(NodeContext& n) {
  n.result(n.e.unary(op, n.input(0)));
}

template <const OpDef& op>
void binary(NodeContext& n) {
  n.result(n.e.binary(op, n.input(0), n.input(1)));
}

/// Left to right over any number of inputs.
template <const OpDef& op>
ValueId fold(NodeContext& n) {
  ValueId result = n.input(0);
  for (size_t i = 1; i < n.input_count(); ++i) result = n.e.binary(op, result, n.input(i));
  return result;
}

template <const OpDef& op>
void variadic(NodeContext& n) {
  n.result(fold<op>(n));
}

void mean(NodeContext& n) {
  n.result(n.e.div(fold<ops::add>(n), static_cast<double>(n.input_count())));
}

template <Comparison direction>
void compare(NodeContext& n) {
  n.result(n.e.compare(direction, n.input(0), n.input(1)));
}

void reciprocal(NodeContext& n) { n.result(n.e.div(n.e.like(n.input(0), 1), n.input(0))); }

/// No operator of ONNX: tf2onnx leaves TensorFlow's as it is, and Keras's gelu is made of it.
void complementary_erf(NodeContext& n) {
  n.result(n.e.sub(n.e.like(n.input(0), 1), n.e.unary(ops::erf, n.input(0))));
}

/// The result has the base's type. Mixed types meet in the wider floating-point one.
void pow(NodeContext& n) {
  const ValueId x = n.input(0);
  const ElementType element = n.element(0);
  const std::optional<double> exponent = n.known_number(1);
  const bool same_shape = n.rank(1) == 0 || broadcast_shapes(n.shape(0), n.shape(1)) == n.shape(0);
  if (exponent && same_shape && (*exponent == 1 || *exponent == 2 || *exponent == 3)) {
    ValueId power = x;
    for (double k = 1; k < *exponent; ++k) power = n.e.mul(power, x);
    n.result(power);
    return;
  }
  ElementType compute = element;
  if (is_float(n.element(1)) && !is_float(element)) {
    compute = n.element(1) == ElementType::f64 ? ElementType::f64 : ElementType::f32;
    if (byte_size(element) >= 4) compute = ElementType::f64;
  }
  const ValueId power = n.e.binary(ops::pow, n.e.cast(x, compute), n.e.cast(n.input(1), compute));
  n.result(n.e.cast(power, element));
}

void modulo(NodeContext& n) {
  const bool truncating = n.attr_int("fmod", 0) != 0;
  if (!truncating && is_float(n.element(0))) {
    n.fail("attribute \"fmod\" has to be 1 for floating-point inputs");
  }
  n.result(n.e.binary(truncating ? ops::rem : ops::mod, n.input(0), n.input(1)));
}

void clip_between(NodeContext& n, std::optional<ValueId> low, std::optional<ValueId> high) {
  const ValueId x = n.input(0);
  if (!low && !high) return n.result(x);
  const TensorType scalar{n.element(0), {}};
  const auto bound = [&](const std::optional<ValueId>& given, bool is_low) {
    if (!given) return is_low ? n.e.lowest(scalar) : n.e.highest(scalar);
    if (!(n.e.type(*given).element_count() == Dim(1))) n.fail("the bounds have to be scalars");
    return n.e.reshape(*given, {});
  };
  const ValueId from = bound(low, true);
  n.result(n.e.emit(ops::clamp, {x, from, bound(high, false)}));
}

void clip_attributes(NodeContext& n) {
  std::optional<ValueId> low, high;
  if (n.has_attr("min")) low = n.e.scalar(n.element(0), n.attr_float("min", 0));
  if (n.has_attr("max")) high = n.e.scalar(n.element(0), n.attr_float("max", 0));
  clip_between(n, low, high);
}

void clip_inputs(NodeContext& n) {
  std::optional<ValueId> low, high;
  if (n.has(1)) low = n.input(1);
  if (n.has(2)) high = n.input(2);
  clip_between(n, low, high);
}

void where(NodeContext& n) { n.result(n.e.select(n.input(0), n.input(1), n.input(2))); }

void cast(NodeContext& n) {
  if (!n.has_attr("to")) n.fail("attribute \"to\" is missing");
  n.result(n.e.cast(n.input(0), n.attr_element("to", ElementType::f32)));
}

void cast_like(NodeContext& n) { n.result(n.e.cast(n.input(0), n.element(1))); }

void identity(NodeContext& n) { n.result(n.input(0)); }

void is_inf(NodeContext& n) {
  n.result(n.e.emit(
      ops::is_inf, {n.input(0)},
      IsInfAttrs{n.attr_int("detect_positive", 1) != 0, n.attr_int("detect_negative", 1) != 0}));
}

void bit_shift(NodeContext& n) {
  const std::string direction = n.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    n.fail("attribute \"direction\" has to be LEFT or RIGHT");
  }
  n.result(
      n.e.binary(direction == "LEFT" ? ops::shift_left : ops::shift_right, n.input(0), n.input(1)));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Add", 7, kNew, 2, 2, binary<ops::add>},
    {"Sub", 7, kNew, 2, 2, binary<ops::sub>},
    {"Mul", 7, kNew, 2, 2, binary<ops::mul>},
    {"Div", 7, kNew, 2, 2, binary<ops::div>},
    {"Pow", 7, kNew, 2, 2, pow},
    {"Mod", 10, kNew, 2, 2, modulo, "fmod:i"},
    {"Neg", 7, kNew, 1, 1, unary<ops::neg>},
    {"Abs", 7, kNew, 1, 1, unary<ops::abs>},
    {"Sign", 9, kNew, 1, 1, unary<ops::sign>},
    {"Sqrt", 7, kNew, 1, 1, unary<ops::sqrt>},
    {"Reciprocal", 7, kNew, 1, 1, reciprocal},
    {"Exp", 7, kNew, 1, 1, unary<ops::exp>},
    {"Log", 7, kNew, 1, 1, unary<ops::log>},
    {"Erf", 9, kNew, 1, 1, unary<ops::erf>},
    {"Erfc", 9, kNew, 1, 1, complementary_erf},
    {"Sin", 7, kNew, 1, 1, unary<ops::sin>},
    {"Cos", 7, kNew, 1, 1, unary<ops::cos>},
    {"Tan", 7, kNew, 1, 1, unary<ops::tan>},
    {"Asin", 7, kNew, 1, 1, unary<ops::asin>},
    {"Acos", 7, kNew, 1, 1, unary<ops::acos>},
    {"Atan", 7, kNew, 1, 1, unary<ops::atan>},
    {"Sinh", 9, kNew, 1, 1, unary<ops::sinh>},
    {"Cosh", 9, kNew, 1, 1, unary<ops::cosh>},
    {"Asinh", 9, kNew, 1, 1, unary<ops::asinh>},
    {"Acosh", 9, kNew, 1, 1, unary<ops::acosh>},
    {"Atanh", 9, kNew, 1, 1, unary<ops::atanh>},
    {"Floor", 7, kNew, 1, 1, unary<ops::floor>},
    {"Ceil", 7, kNew, 1, 1, unary<ops::ceil>},
    {"Round", 11, kNew, 1, 1, unary<ops::round_even>},
    {"Min", 7, kNew, 1, -1, variadic<ops::min>},
    {"Max", 7, kNew, 1, -1, variadic<ops::max>},
    {"Sum", 7, kNew, 1, -1, variadic<ops::add>},
    {"Mean", 7, kNew, 1, -1, mean},
    {"Clip", 7, 10, 1, 1, clip_attributes, "min:f max:f"},
    {"Clip", 11, kNew, 1, 3, clip_inputs},
    {"Equal", 7, kNew, 2, 2, compare<Comparison::eq>},
    {"Greater", 7, kNew, 2, 2, compare<Comparison::gt>},
    {"GreaterOrEqual", 12, kNew, 2, 2, compare<Comparison::ge>},
    {"Less", 7, kNew, 2, 2, compare<Comparison::lt>},
    {"LessOrEqual", 12, kNew, 2, 2, compare<Comparison::le>},
    {"And", 7, kNew, 2, 2, binary<ops::bit_and>},
    {"Or", 7, kNew, 2, 2, binary<ops::bit_or>},
    {"Xor", 7, kNew, 2, 2, binary<ops::bit_xor>},
    {"Not", 7, kNew, 1, 1, unary<ops::bit_not>},
    {"BitwiseAnd", 18, kNew, 2, 2, binary<ops::bit_and>},
    {"BitwiseOr", 18, kNew, 2, 2, binary<ops::bit_or>},
    {"BitwiseXor", 18, kNew, 2, 2, binary<ops::bit_xor>},
    {"BitwiseNot", 18, kNew, 1, 1, unary<ops::bit_not>},
    {"BitShift", 11, kNew, 2, 2, bit_shift, "direction:s"},
    {"IsNaN", 9, kNew, 1, 1, unary<ops::is_nan>},
    {"IsInf", 10, kNew, 1, 1, is_inf, "detect_positive:i detect_negative:i"},
    {"Where", 9, kNew, 3, 3, where},
    {"Cast", 7, 18, 1, 1, cast, "to:i"},
    {"Cast", 19, kNew, 1, 1, cast, "to:i saturate:i round_mode:s"},
    {"CastLike", 15, 18, 2, 2, cast_like},
    {"CastLike", 19, kNew, 2, 2, cast_like, "saturate:i round_mode:s"},
    {.name = "Identity", .import = identity, .sequences = true},
};

}  // namespace

std::span<const OperatorRule> elementwise_rules() { return kRules; }

}  // namespace backcast
