// Normalisations. BatchNormalization has the form that its node or the import asks for: with the
// running statistics, or with the batch's own and updated running statistics as further outputs.
#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

ValueId inverse_root(Emitter& e, ValueId variance, double epsilon) {
  const ValueId root = e.unary(ops::sqrt, e.add(variance, epsilon));
  return e.div(e.like(root, 1), root);
}

/// A vector along axis 1 of x.
ValueId per_channel(Emitter& e, ValueId vector, ValueId x) {
  if (e.rank(vector) != 1) {
    throw CompileError(e.builder().loc(), "scale, bias, mean and variance have to be vectors");
  }
  return e.broadcast_in(vector, e.shape(x), {1});
}

/// Notes that input i holds a running statistic, and its new value in training.
void keep_statistic(NodeContext& n, size_t i, ValueId now) {
  const std::string name = n.initializer(i);
  if (name.empty()) return;
  const bool is_new = n.training().statistics.emplace(name, now).second;
  if (is_new || !now.valid()) return;
  n.fail(
      fmt::format("input {} (\"{}\") is the running statistic of another node too; in training "
                  "every node needs an initializer of its own",
                  i, name));
}

/// With the batch's mean and variance (of the population); outputs 1 and 2 are the new running
/// statistics, old * momentum + batch * (1 - momentum), and before opset 14 outputs 3 and 4 the
/// batch's.
void batch_normalization_in_training(NodeContext& n, ElementType compute) {
  const ValueId x = n.e.cast(n.input(0), compute);
  Ints axes = counting(n.rank(0));
  axes.erase(axes.begin() + 1);
  const ValueId mean = n.e.mean(x, axes);
  const ValueId centred = n.e.sub(x, per_channel(n.e, mean, x));
  const ValueId variance = n.e.mean(n.e.mul(centred, centred), axes);
  const ValueId inverse = inverse_root(n.e, variance, n.attr_float("epsilon", 1e-5f));
  const ValueId scale = n.e.mul(n.e.cast(n.input(1), compute), inverse);
  const ValueId shift = n.e.cast(n.input(2), compute);
  const ValueId y =
      n.e.add(n.e.mul(centred, per_channel(n.e, scale, x)), per_channel(n.e, shift, x));
  n.result(n.e.cast(y, n.element(0)));
  const double momentum = n.attr_float("momentum", 0.9f);
  const auto running = [&](size_t input, ValueId batch) {
    const ValueId old = n.e.cast(n.input(input), compute);
    const ValueId now = n.e.add(n.e.mul(old, momentum), n.e.mul(batch, 1 - momentum));
    return n.e.cast(now, n.element(input));
  };
  const bool keeps = n.training().mode == ImportMode::training;
  if (keeps && n.training().builder != &n.e.builder()) {
    n.fail(
        "inside of If, Loop and Scan is not supported in training: its running statistics would "
        "have to leave the graph");
  }
  const ValueId batch[] = {mean, variance};
  for (size_t k = 0; k < 2; ++k) {
    const bool wanted = keeps || n.wants(1 + k);
    const ValueId now = wanted ? running(3 + k, batch[k]) : ValueId();
    if (n.wants(1 + k)) n.set(1 + k, now);
    if (n.wants(3 + k)) n.set(3 + k, n.e.cast(batch[k], n.element(3 + k)));
    keep_statistic(n, 3 + k, keeps ? now : ValueId());
  }
}

/// Scale and shift are computed per channel first, so that they fold into one multiply-add.
void batch_normalization(NodeContext& n) {
  if (n.rank(0) < 2) n.fail("needs an input of rank 2 or more");
  if (n.attr_int("spatial", 1) != 1) n.fail("attribute \"spatial\" has to be 1");
  const ElementType element = n.element(0);
  const ElementType compute = element == ElementType::f64 ? element : n.element(4);
  const ImportMode mode = n.training().mode;
  // Before opset 14 the node trains when its further outputs are asked for.
  const bool written = n.opset() < 14 ? n.wants(1) : n.attr_int("training_mode", 0) != 0;
  if (mode == ImportMode::training || (mode == ImportMode::as_written && written)) {
    return batch_normalization_in_training(n, compute);
  }
  const auto in = [&](size_t i) { return n.e.cast(n.input(i), compute); };
  const ValueId scale = n.e.mul(in(1), inverse_root(n.e, in(4), n.attr_float("epsilon", 1e-5f)));
  const ValueId shift = n.e.sub(in(2), n.e.mul(in(3), scale));
  const ValueId x = in(0);
  const ValueId y = n.e.add(n.e.mul(x, per_channel(n.e, scale, x)), per_channel(n.e, shift, x));
  n.result(n.e.cast(y, element));
  for (size_t k = 0; k < 2; ++k) {
    keep_statistic(n, 3 + k, ValueId());
    if (n.wants(1 + k) && written) n.set(1 + k, n.input(3 + k));
    if (n.wants(3 + k)) n.set(3 + k, n.input(3 + k));
  }
}

struct Standardised {
  ValueId value, mean, inverse_deviation;
};

Standardised standardise(Emitter& e, ValueId x, const Ints& axes, double epsilon) {
  const ValueId mean = e.mean(x, axes, true);
  const ValueId centred = e.sub(x, mean);
  const ValueId variance = e.mean(e.mul(centred, centred), axes, true);
  const ValueId inverse = inverse_root(e, variance, epsilon);
  return {e.mul(centred, inverse), mean, inverse};
}

ElementType stash_type(const NodeContext& n) {
  const ElementType stash = n.attr_element("stash_type", ElementType::f32);
  if (!is_float(stash)) n.fail("attribute \"stash_type\" has to be a floating-point type");
  // Computing f64 in f32 would lose what the model has.
  return n.element(0) == ElementType::f64 ? ElementType::f64 : stash;
}

void layer_normalization(NodeContext& n) {
  const ElementType stash = stash_type(n);
  const int64_t axis = n.attr_axis("axis", -1, n.rank(0));
  const double epsilon = n.attr_float("epsilon", 1e-5f);
  const ValueId bias = n.has(2) ? n.input(2) : ValueId();
  n.result(layer_normalised(n, n.input(0), n.input(1), bias, {axis, epsilon, stash}));
  if (n.wants(1) || n.wants(2)) {
    const Ints axes = counting(n.rank(0) - axis, axis);
    const Standardised s = standardise(n.e, n.e.cast(n.input(0), stash), axes, epsilon);
    n.set(1, s.mean);
    n.set(2, s.inverse_deviation);
  }
}

void rms_normalization(NodeContext& n) {
  const int64_t axis = n.attr_axis("axis", -1, n.rank(0));
  n.result(rms_normalised(n, n.input(0), n.input(1),
                          {axis, n.attr_float("epsilon", 1e-5f), stash_type(n)}));
}

void instance_normalization(NodeContext& n) {
  if (n.rank(0) < 3) n.fail("needs an input of rank 3 or more");
  const ElementType compute = stash_of(n.element(0));
  const ValueId x = n.e.cast(n.input(0), compute);
  const Standardised s =
      standardise(n.e, x, counting(n.rank(0) - 2, 2), n.attr_float("epsilon", 1e-5f));
  const ValueId scale = per_channel(n.e, n.e.cast(n.input(1), compute), x);
  const ValueId bias = per_channel(n.e, n.e.cast(n.input(2), compute), x);
  n.result(n.e.cast(n.e.add(n.e.mul(s.value, scale), bias), n.element(0)));
}

/// [N, C, …] is seen as [N, groups, C / groups · …].
void group_normalization(NodeContext& n) {
  const Shape shape = n.shape(0);
  const int64_t groups = n.attr_int("num_groups", 0);
  if (shape.size() < 2) n.fail("needs an input of rank 2 or more");
  if (groups < 1 || !(Dim::mod(shape[1], groups) == Dim(0))) {
    n.fail(fmt::format("attribute \"num_groups\" ({}) has to divide the {} channels", groups,
                       shape[1].to_string()));
  }
  const ElementType compute = n.opset() < 21 ? stash_of(n.element(0)) : stash_type(n);
  const ValueId x = n.e.cast(n.input(0), compute);
  const Dim inner = Dim::floor_div(shape[1], groups) * product(shape, 2, n.rank(0));
  const ValueId grouped = n.e.reshape(x, {shape[0], Dim(groups), inner});
  const Standardised s = standardise(n.e, grouped, {2}, n.attr_float("epsilon", 1e-5f));
  const auto apply = [&](ValueId y, const OpDef& op, size_t i) {
    const ValueId vector = n.e.cast(n.input(i), compute);
    return n.e.binary(op, y, per_channel(n.e, vector, y));
  };
  ValueId y = s.value;
  // Scale and bias are per group before opset 21, per channel from then on.
  if (n.opset() >= 21) y = n.e.reshape(y, shape);
  y = apply(apply(y, ops::mul, 1), ops::add, 2);
  n.result(n.e.cast(n.e.reshape(y, shape), n.element(0)));
}

void lp_normalization(NodeContext& n) {
  const ValueId x = n.input(0);
  const int64_t axis = n.attr_axis("axis", -1, n.rank(0));
  const int64_t p = n.attr_int("p", 2);
  if (p != 1 && p != 2) n.fail("attribute \"p\" has to be 1 or 2");
  const ValueId sum =
      n.e.reduce(Reduction::sum, p == 1 ? n.e.unary(ops::abs, x) : n.e.mul(x, x), {axis}, true);
  const ValueId norm = p == 1 ? sum : n.e.unary(ops::sqrt, sum);
  // A vector of zeros stays one.
  const ValueId zero = n.e.compare(Comparison::eq, norm, 0.0);
  n.result(n.e.div(x, n.e.select(zero, n.e.like(norm, 1), norm)));
}

void mean_variance_normalization(NodeContext& n) {
  const ValueId x = n.input(0);
  const Ints axes = n.axes(n.attr_ints("axes").value_or(Ints{0, 2, 3}), n.rank(0));
  const ValueId mean = n.e.mean(x, axes, true);
  const ValueId square_mean = n.e.mean(n.e.mul(x, x), axes, true);
  const ValueId deviation = n.e.unary(ops::sqrt, n.e.sub(square_mean, n.e.mul(mean, mean)));
  n.result(n.e.div(n.e.sub(x, mean), n.e.add(deviation, 1e-9)));
}

/// x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta
void lrn(NodeContext& n) {
  const ValueId x = n.input(0);
  const int64_t size = n.attr_int("size", 0);
  if (size < 1 || size > INT32_MAX || n.rank(0) < 2)
    n.fail("attribute \"size\" has to be positive");
  ReduceWindowAttrs attrs;
  attrs.kind = Reduction::sum;
  attrs.window.assign(static_cast<size_t>(n.rank(0)), 1);
  attrs.strides = attrs.dilation = attrs.window;
  attrs.pad_low.assign(attrs.window.size(), Dim(0));
  attrs.pad_high = attrs.pad_low;
  attrs.window[1] = size;
  attrs.pad_low[1] = (size - 1) / 2;
  attrs.pad_high[1] = size / 2;
  const ValueId sum = n.e.emit(ops::reduce_window, {n.e.mul(x, x)}, std::move(attrs));
  const ValueId base =
      n.e.add(n.e.mul(sum, n.attr_float("alpha", 1e-4f) / static_cast<double>(size)),
              n.attr_float("bias", 1));
  n.result(n.e.div(x, n.e.binary(ops::pow, base, n.e.like(base, n.attr_float("beta", 0.75f)))));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"BatchNormalization", 7, 8, 5, 5, batch_normalization, "epsilon:f momentum:f spatial:i"},
    {"BatchNormalization", 9, 13, 5, 5, batch_normalization, "epsilon:f momentum:f"},
    {"BatchNormalization", 14, kNew, 5, 5, batch_normalization,
     "epsilon:f momentum:f training_mode:i"},
    // ONNX Runtime's optimiser writes it before opset 17 as well.
    {"LayerNormalization", 7, kNew, 2, 3, layer_normalization, "axis:i epsilon:f stash_type:i"},
    {"RMSNormalization", 23, kNew, 2, 2, rms_normalization, "axis:i epsilon:f stash_type:i"},
    // What ONNX Runtime's optimiser called it before ONNX had it.
    {"SimplifiedLayerNormalization", 7, kNew, 2, 2, rms_normalization,
     "axis:i epsilon:f stash_type:i"},
    {"InstanceNormalization", 7, kNew, 3, 3, instance_normalization, "epsilon:f"},
    {"GroupNormalization", 18, 20, 3, 3, group_normalization, "epsilon:f num_groups:i"},
    {"GroupNormalization", 21, kNew, 3, 3, group_normalization,
     "epsilon:f num_groups:i stash_type:i"},
    {"LpNormalization", 7, kNew, 1, 1, lp_normalization, "axis:i p:i"},
    {"MeanVarianceNormalization", 9, kNew, 1, 1, mean_variance_normalization, "axes:I"},
    {"LRN", 7, kNew, 1, 1, lrn, "alpha:f beta:f bias:f size:i"},
};

}  // namespace

ElementType stash_of(ElementType element) {
  return element == ElementType::f64 ? ElementType::f64 : ElementType::f32;
}

ValueId layer_normalised(NodeContext& n, ValueId x, ValueId scale, ValueId bias,
                         const Normalisation& by) {
  const ElementType element = n.e.element(x);
  const Ints axes = counting(n.e.rank(x) - by.axis, by.axis);
  std::vector<ValueId> operands = {x, scale};
  if (bias.valid()) operands.push_back(bias);
  return n.composite("layer_normalization", by.text(), operands,
                     [&](Emitter& e, const std::vector<ValueId>& p) {
                       const ValueId wide = e.cast(p[0], by.stash);
                       const Standardised s = standardise(e, wide, axes, by.epsilon);
                       const Shape& shape = e.shape(p[0]);
                       ValueId y = e.mul(e.cast(s.value, element), e.broadcast_to(p[1], shape));
                       if (p.size() > 2) y = e.add(y, e.broadcast_to(p[2], shape));
                       return y;
                     });
}

ValueId rms_normalised(NodeContext& n, ValueId x, ValueId scale, const Normalisation& by) {
  const ElementType element = n.e.element(x);
  const Ints axes = counting(n.e.rank(x) - by.axis, by.axis);
  return n.composite("rms_normalization", by.text(), {x, scale},
                     [&](Emitter& e, const std::vector<ValueId>& p) {
                       const ValueId wide = e.cast(p[0], by.stash);
                       const ValueId square = e.mean(e.mul(wide, wide), axes, true);
                       const ValueId root = inverse_root(e, square, by.epsilon);
                       const ValueId y = e.cast(e.mul(wide, root), element);
                       return e.mul(y, e.broadcast_to(p[1], e.shape(p[0])));
                     });
}

std::string Normalisation::text() const {
  return fmt::format("axis={} epsilon={} stash={}", axis, epsilon, name_of(stash));
}

std::span<const OperatorRule> normalization_rules() { return kRules; }

}  // namespace backcast
