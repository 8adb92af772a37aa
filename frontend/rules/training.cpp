// The optimizers of ai.onnx.preview.training 1, which update several tensors at once: inputs are
// the rate, the number of updates so far, then all tensors, all gradients, all of each moment.
#include "frontend/operators.h"
#include "frontend/rules/families.h"

namespace backcast {
namespace {

constexpr std::string_view kDomain = "ai.onnx.preview.training";

/// The inputs of one updated tensor.
struct Updated {
  ValueId x, gradient;  // the gradient with the regularisation added
  std::vector<ValueId> moments;
  ValueId rate, count;  // scalars of x's element type
};

/// Calls `update` for every tensor; it gives the new tensor and the new moments.
template <class Update>
void update_all(NodeContext& n, size_t moments, Update update) {
  const size_t per_tensor = 2 + moments;
  const size_t given = n.input_count();
  if (given < 2 + per_tensor || (given - 2) % per_tensor != 0) {
    n.fail(
        fmt::format("has {} inputs; two and then {} per tensor are expected", given, per_tensor));
  }
  const size_t count = (given - 2) / per_tensor;
  const double decay = n.attr_float("norm_coefficient", 0);
  for (size_t i = 0; i < count; ++i) {
    Updated u;
    u.x = n.input(2 + i);
    const ElementType element = n.e.element(u.x);
    const auto scalar = [&](size_t input) {
      return n.e.cast(n.e.reshape(n.input(input), {}), element);
    };
    u.rate = scalar(0);
    u.count = scalar(1);
    u.gradient = n.input(2 + count + i);
    if (decay != 0) u.gradient = n.e.add(n.e.mul(u.x, decay), u.gradient);
    for (size_t k = 0; k < moments; ++k) u.moments.push_back(n.input(2 + (2 + k) * count + i));
    const std::vector<ValueId> now = update(u);
    for (size_t k = 0; k < now.size(); ++k) n.set(k * count + i, now[k]);
  }
}

/// 1 - base^count
ValueId correction(Emitter& e, double base, ValueId count) {
  const ValueId power = e.binary(ops::pow, e.like(count, base), count);
  return e.sub(e.like(count, 1), power);
}

void adam(NodeContext& n) {
  const double alpha = n.attr_float("alpha", 0.9f), beta = n.attr_float("beta", 0.999f);
  const double epsilon = n.attr_float("epsilon", 1e-6f);
  const double shrink = 1 - n.attr_float("norm_coefficient_post", 0);
  Emitter& e = n.e;
  update_all(n, 2, [&](const Updated& u) {
    const ValueId square = e.mul(u.gradient, u.gradient);
    const ValueId v = e.add(e.mul(u.moments[0], alpha), e.mul(u.gradient, 1 - alpha));
    const ValueId h = e.add(e.mul(u.moments[1], beta), e.mul(square, 1 - beta));
    // Without a correction before the first update, where it would be 0 / 0.
    const ValueId first = e.compare(Comparison::le, u.count, 0.0);
    const ValueId safe = e.select(first, e.like(u.count, 1), u.count);
    const ValueId factor =
        e.div(e.unary(ops::sqrt, correction(e, beta, safe)), correction(e, alpha, safe));
    const ValueId rate = e.select(first, u.rate, e.mul(u.rate, factor));
    const ValueId root = e.add(e.unary(ops::sqrt, h), epsilon);
    ValueId x = e.sub(u.x, e.mul(rate, e.div(v, root)));
    if (shrink != 1) x = e.mul(x, shrink);
    return std::vector<ValueId>{x, v, h};
  });
}

void adagrad(NodeContext& n) {
  const double decay = n.attr_float("decay_factor", 0);
  const double epsilon = n.attr_float("epsilon", 1e-6f);
  Emitter& e = n.e;
  update_all(n, 1, [&](const Updated& u) {
    const ValueId rate = e.div(u.rate, e.add(e.mul(u.count, decay), 1.0));
    const ValueId h = e.add(u.moments[0], e.mul(u.gradient, u.gradient));
    const ValueId root = e.add(e.unary(ops::sqrt, h), epsilon);
    return std::vector<ValueId>{e.sub(u.x, e.div(e.mul(rate, u.gradient), root)), h};
  });
}

void momentum(NodeContext& n) {
  const double alpha = n.attr_float("alpha", 0), beta = n.attr_float("beta", 0);
  const std::string mode = n.attr_string("mode", "standard");
  if (mode != "standard" && mode != "nesterov") {
    n.fail(fmt::format("attribute \"mode\" is \"{}\"; standard and nesterov are possible", mode));
  }
  Emitter& e = n.e;
  update_all(n, 1, [&](const Updated& u) {
    const ValueId first = e.compare(Comparison::le, u.count, 0.0);
    const ValueId share = e.select(first, e.like(u.count, 1), e.like(u.count, beta));
    const ValueId v = e.add(e.mul(u.moments[0], alpha), e.mul(share, u.gradient));
    const bool ahead = mode == "nesterov";
    const ValueId direction = ahead ? e.add(u.gradient, e.mul(v, alpha)) : v;
    return std::vector<ValueId>{e.sub(u.x, e.mul(u.rate, direction)), v};
  });
}

const OperatorRule kRules[] = {
    {"Adam", 1, 1, 6, -1, adam,
     "alpha:f beta:f epsilon:f norm_coefficient:f norm_coefficient_post:f", kDomain},
    {"Adagrad", 1, 1, 5, -1, adagrad, "decay_factor:f epsilon:f norm_coefficient:f", kDomain},
    {"Momentum", 1, 1, 5, -1, momentum, "alpha:f beta:f mode:s norm_coefficient:f", kDomain},
};

}  // namespace

std::span<const OperatorRule> training_rules() { return kRules; }

}  // namespace backcast
