// Activation functions, softmax among them. Forms are chosen so that neither value nor gradient
// overflows: the branch that `select` does not take stays finite.
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

void relu(NodeContext& n) {
  const ValueId x = n.input(0);
  n.result(is_float(n.element(0)) ? n.e.unary(ops::relu, x) : n.e.max(x, n.e.like(x, 0)));
}

template <const OpDef& op>
void unary(NodeContext& n) {
  n.result(n.e.unary(op, n.input(0)));
}

ValueId positive(Emitter& e, ValueId x) { return e.compare(Comparison::gt, x, 0.0); }
ValueId negative(Emitter& e, ValueId x) { return e.compare(Comparison::lt, x, 0.0); }

/// exp(x) - 1 where x <= 0, and 0 elsewhere.
ValueId negative_expm1(Emitter& e, ValueId x) {
  const ValueId safe = e.select(positive(e, x), e.like(x, 0), x);
  return e.sub(e.unary(ops::exp, safe), 1.0);
}

void leaky_relu(NodeContext& n) {
  const ValueId x = n.input(0);
  const ValueId scaled = n.e.mul(x, n.attr_float("alpha", 0.01f));
  n.result(n.e.select(negative(n.e, x), scaled, x));
}

void prelu(NodeContext& n) {
  const ValueId x = n.input(0);
  const ValueId slope = n.e.broadcast_to(n.input(1), n.shape(0));
  n.result(n.e.select(negative(n.e, x), n.e.mul(x, slope), x));
}

void elu(NodeContext& n) {
  const ValueId x = n.input(0);
  const ValueId low = n.e.mul(negative_expm1(n.e, x), n.attr_float("alpha", 1));
  n.result(n.e.select(positive(n.e, x), x, low));
}

void selu(NodeContext& n) {
  const ValueId x = n.input(0);
  const double alpha = n.attr_float("alpha", 1.67326319217681884765625f);
  const ValueId low = n.e.mul(negative_expm1(n.e, x), alpha);
  n.result(n.e.mul(n.e.select(positive(n.e, x), x, low),
                   n.attr_float("gamma", 1.05070102214813232421875f)));
}

/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
void celu(NodeContext& n) {
  const ValueId x = n.input(0);
  const double alpha = n.attr_float("alpha", 1);
  if (alpha == 0) n.fail("attribute \"alpha\" must not be 0");
  const ValueId low = n.e.mul(negative_expm1(n.e, n.e.div(x, alpha)), alpha);
  n.result(n.e.select(positive(n.e, x), x, low));
}

void gelu(NodeContext& n) {
  const std::string approximate = n.attr_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    n.fail("attribute \"approximate\" has to be \"none\" or \"tanh\"");
  }
  n.result(gelu(n.e, n.input(0), approximate == "tanh"));
}

ValueId hard_sigmoid(Emitter& e, ValueId x, double alpha, double beta) {
  return e.clamp(e.add(e.mul(x, alpha), beta), 0, 1);
}

void hard_sigmoid(NodeContext& n) {
  n.result(hard_sigmoid(n.e, n.input(0), n.attr_float("alpha", 0.2f), n.attr_float("beta", 0.5f)));
}

void hard_swish(NodeContext& n) {
  n.result(n.e.mul(n.input(0), hard_sigmoid(n.e, n.input(0), 1.0 / 6, 0.5)));
}

/// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))
ValueId softplus(Emitter& e, ValueId x) {
  const ValueId decay = e.unary(ops::exp, e.unary(ops::neg, e.unary(ops::abs, x)));
  return e.add(e.max(x, e.like(x, 0)), e.unary(ops::log, e.add(decay, 1.0)));
}

void softplus(NodeContext& n) { n.result(softplus(n.e, n.input(0))); }

void mish(NodeContext& n) {
  n.result(n.e.mul(n.input(0), n.e.unary(ops::tanh, softplus(n.e, n.input(0)))));
}

void swish(NodeContext& n) {
  const ValueId x = n.input(0);
  const double alpha = n.attr_float("alpha", 1);
  n.result(n.e.mul(x, n.e.unary(ops::sigmoid, alpha == 1 ? x : n.e.mul(x, alpha))));
}

void softsign(NodeContext& n) {
  const ValueId x = n.input(0);
  n.result(n.e.div(x, n.e.add(n.e.unary(ops::abs, x), 1.0)));
}

void thresholded_relu(NodeContext& n) {
  const ValueId x = n.input(0);
  const ValueId above = n.e.compare(Comparison::gt, x, n.attr_float("alpha", 1));
  n.result(n.e.select(above, x, n.e.like(x, 0)));
}

/// x + bias below -lambd, x - bias above lambd, 0 between.
void shrink(NodeContext& n) {
  const ValueId x = n.input(0);
  const double lambd = n.attr_float("lambd", 0.5), bias = n.attr_float("bias", 0);
  const ValueId high =
      n.e.select(n.e.compare(Comparison::gt, x, lambd), n.e.sub(x, bias), n.e.like(x, 0));
  n.result(n.e.select(n.e.compare(Comparison::lt, x, -lambd), n.e.add(x, bias), high));
}

/// Before opset 13 the axes from `axis` on count as one.
void along_axis(NodeContext& n, ValueId (*f)(NodeContext&, ValueId, int64_t)) {
  const ValueId x = n.input(0);
  if (n.opset() >= 13) {
    const int64_t axis = n.rank(0) == 0 ? 0 : n.attr_axis("axis", -1, n.rank(0));
    return n.result(f(n, x, axis));
  }
  const Shape shape = n.shape(0);
  const int64_t axis = n.attr_axis("axis", 1, n.rank(0));
  if (axis == n.rank(0) - 1) return n.result(f(n, x, axis));
  const Shape flat = {product(shape, 0, axis), product(shape, axis, n.rank(0))};
  n.result(n.e.reshape(f(n, n.e.reshape(x, flat), 1), shape));
}

ValueId one_hot_of_max(NodeContext& n, ValueId x, int64_t axis) {
  const Shape shape = n.e.shape(x);
  const ValueId first = n.e.arg_reduce(Reduction::max, x, axis, false, true);
  const ValueId position = n.e.iota(ElementType::i64, shape, axis);
  return n.e.cast(n.e.compare(Comparison::eq, position, first), n.e.element(x));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Relu", 7, kNew, 1, 1, relu},
    {"Sigmoid", 7, kNew, 1, 1, unary<ops::sigmoid>},
    {"Tanh", 7, kNew, 1, 1, unary<ops::tanh>},
    {"LeakyRelu", 7, kNew, 1, 1, leaky_relu, "alpha:f"},
    {"PRelu", 7, kNew, 2, 2, prelu},
    {"Elu", 7, kNew, 1, 1, elu, "alpha:f"},
    {"Selu", 7, kNew, 1, 1, selu, "alpha:f gamma:f"},
    {"Celu", 12, kNew, 1, 1, celu, "alpha:f"},
    {"Gelu", 20, kNew, 1, 1, gelu, "approximate:s"},
    {"HardSigmoid", 7, kNew, 1, 1, hard_sigmoid, "alpha:f beta:f"},
    {"HardSwish", 14, kNew, 1, 1, hard_swish},
    {"Mish", 18, kNew, 1, 1, mish},
    {"Swish", 24, kNew, 1, 1, swish, "alpha:f"},
    {"Softplus", 7, kNew, 1, 1, softplus},
    {"Softsign", 7, kNew, 1, 1, softsign},
    {"ThresholdedRelu", 10, kNew, 1, 1, thresholded_relu, "alpha:f"},
    {"Shrink", 9, kNew, 1, 1, shrink, "lambd:f bias:f"},
    {"Softmax", 7, kNew, 1, 1, [](NodeContext& n) { along_axis(n, softmax); }, "axis:i"},
    {"LogSoftmax", 7, kNew, 1, 1, [](NodeContext& n) { along_axis(n, log_softmax); }, "axis:i"},
    {"Hardmax", 7, kNew, 1, 1, [](NodeContext& n) { along_axis(n, one_hot_of_max); }, "axis:i"},
};

/// x less its maximum along the axis, which leaves softmax unchanged and keeps exp in range. What
/// the maximum adds to a derivative cancels, so none passes through it.
ValueId shifted(Emitter& e, ValueId x, int64_t axis) {
  return e.sub(x, e.unary(ops::stop_gradient, e.reduce(Reduction::max, x, {axis}, true)));
}

}  // namespace

ValueId gelu(Emitter& e, ValueId x, bool by_tanh) {
  ValueId inner;
  if (by_tanh) {
    const ValueId cube = e.mul(e.mul(x, x), x);
    const ValueId sum = e.add(x, e.mul(cube, 0.044715));
    inner = e.unary(ops::tanh, e.mul(sum, std::sqrt(2 / M_PI)));
  } else {
    inner = e.unary(ops::erf, e.mul(x, M_SQRT1_2));
  }
  return e.mul(e.mul(x, 0.5), e.add(inner, 1.0));
}

ValueId softmax(NodeContext& n, ValueId x, int64_t axis) {
  if (n.e.rank(x) == 0) return n.e.like(x, 1);
  return n.composite("softmax", fmt::format("axis={}", axis), {x},
                     [axis](Emitter& e, const std::vector<ValueId>& p) {
                       const ValueId power = e.unary(ops::exp, shifted(e, p[0], axis));
                       const ValueId sum = e.reduce(Reduction::sum, power, {axis}, true);
                       if (byte_size(e.element(p[0])) < 4) return e.div(power, sum);
                       // The sum is 1 or more: one division for all that share it.
                       return e.mul(power, e.div(e.like(sum, 1), sum));
                     });
}

ValueId log_softmax(NodeContext& n, ValueId x, int64_t axis) {
  if (n.e.rank(x) == 0) return n.e.like(x, 0);
  return n.composite("log_softmax", fmt::format("axis={}", axis), {x},
                     [axis](Emitter& e, const std::vector<ValueId>& p) {
                       const ValueId s = shifted(e, p[0], axis);
                       const ValueId sum =
                           e.reduce(Reduction::sum, e.unary(ops::exp, s), {axis}, true);
                       return e.sub(s, e.unary(ops::log, sum));
                     });
}

std::span<const OperatorRule> activation_rules() { return kRules; }

}  // namespace backcast
