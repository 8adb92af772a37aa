// Whatever only shifts a logarithm (the maximum) is hidden from differentiation: its contributions
// cancel, and the kinks would not.
#include "passes/train/losses.h"

#include "ir/graph/error.h"

namespace backcast {

int64_t class_axis(const TensorType& prediction) { return prediction.rank() == 1 ? 0 : 1; }

Val log_softmax(const Val& x, int64_t axis) {
  const Ints axes = {axis};
  const Shape shape = x.shape();  // a copy: emitting nodes moves what the builder holds
  const Val most = reduce_max(x, axes).emit(ops::stop_gradient);
  const Val shifted = x - broadcast_along(most, shape, axes);
  return shifted - broadcast_along(log(sum(exp(shifted), axes)), shape, axes);
}

namespace {

std::string_view name_of(const LossSpec& spec) { return enum_name(spec.kind); }

/// A dimension expression as a scalar.
Val number_of(const Val& like, const Dim& value) {
  Builder& builder = like.builder();
  if (value.is_constant()) {
    return Val(builder, builder.scalar(like.element(), static_cast<double>(value.constant())));
  }
  return cast(Val(builder, builder.emit(ops::dimension, {}, DimensionAttrs{value})),
              like.element());
}

Dim elements(const Shape& shape) { return TensorType{ElementType::f32, shape}.element_count(); }

/// All losses of elements as one number.
Val reduced(const LossSpec& spec, const Val& each) {
  const Val total = sum(each);
  if (spec.reduction == LossReduction::sum) return total;
  if (spec.reduction == LossReduction::batchmean) {
    return each.shape().empty() ? total : total / number_of(total, each.shape()[0]);
  }
  return total / number_of(total, elements(each.shape()));
}

/// The weights of the classes in the shape of the logits; ones when there are none.
Val class_weights(const LossSpec& spec, const Val& logits, int64_t axis) {
  if (spec.class_weights.empty()) return logits.like(1);
  Builder& builder = logits.builder();
  const int64_t count = static_cast<int64_t>(spec.class_weights.size());
  const Literal weights = Literal::from_doubles(logits.element(), {count}, spec.class_weights);
  const Val of_class(builder, builder.constant(weights));
  return broadcast(of_class, logits.shape(), {axis});
}

Val probability_cross_entropy(const LossSpec& spec, const Val& logits, const Val& target) {
  const int64_t axis = class_axis(logits.type());
  const Dim classes = logits.shape()[static_cast<size_t>(axis)];
  Val wanted = target;
  if (spec.label_smoothing != 0) {
    const double share = spec.label_smoothing / static_cast<double>(classes.constant());
    wanted = wanted * (1 - spec.label_smoothing) + share;
  }
  Val each = log_softmax(logits, axis) * wanted;
  if (!spec.class_weights.empty()) each = each * class_weights(spec, logits, axis);
  return -reduced(spec, sum(each, {axis}));
}

/// Sums over the examples, divided by the weight of those that count.
Val label_cross_entropy(const LossSpec& spec, const Val& logits, const Val& labels) {
  Builder& builder = logits.builder();
  const int64_t axis = class_axis(logits.type());
  const Shape shape = logits.shape();
  const Val log_probability = log_softmax(logits, axis);
  const Dims count = {shape[static_cast<size_t>(axis)]};
  const Val classes(builder, builder.emit(ops::iota, {}, IotaAttrs{labels.element(), count, 0}));
  const Val hit = compare(broadcast_along(labels, shape, {axis}), Comparison::eq,
                          broadcast(classes, shape, {axis}));
  const Val zero = zeros_like(logits);
  // A select, not a product: the logarithm of an impossible class is minus infinity.
  Val loss = -sum(select(hit, log_probability, zero), {axis});
  std::optional<Val> counts, weight;
  if (spec.ignore_index) {
    const Val label_counts =
        compare(labels, Comparison::ne, static_cast<double>(*spec.ignore_index));
    counts = select(label_counts, loss.like(1), loss.like(0));
  }
  if (!spec.class_weights.empty()) {
    weight = sum(select(hit, class_weights(spec, logits, axis), zero), {axis});
  }
  if (counts) weight = weight ? *weight * *counts : *counts;
  if (weight) loss = loss * *weight;
  Val total = sum(loss);
  if (spec.label_smoothing != 0) {
    Val smooth = log_probability;
    if (!spec.class_weights.empty()) smooth = smooth * class_weights(spec, logits, axis);
    smooth = -sum(smooth, {axis});
    if (counts) smooth = smooth * *counts;
    const double share =
        spec.label_smoothing / static_cast<double>(shape[static_cast<size_t>(axis)].constant());
    total = total * (1 - spec.label_smoothing) + sum(smooth) * share;
  }
  if (spec.reduction == LossReduction::sum) return total;
  return total / (weight ? sum(*weight) : number_of(total, elements(labels.shape())));
}

/// log(1 + e^x), whose gradient is sigmoid(x) everywhere.
Val softplus(const Val& x) {
  const Val most = relu(x).emit(ops::stop_gradient);
  return most + log(exp(-most) + exp(x - most));
}

Val binary_cross_entropy(const LossSpec& spec, const Val& logits, const Val& target) {
  return reduced(spec, (1.0 - target) * logits + softplus(-logits));
}

Val huber(const LossSpec& spec, const Val& prediction, const Val& target) {
  const Val distance = abs(prediction - target);
  const Val line = (distance - 0.5 * spec.delta) * spec.delta;
  const Val near = compare(distance, Comparison::lt, spec.delta);
  return reduced(spec, select(near, distance * distance * 0.5, line));
}

/// target * (log target - prediction), where 0 log 0 = 0.
Val kl_divergence(const LossSpec& spec, const Val& prediction, const Val& target) {
  const Val positive = compare(target, Comparison::gt, 0.0);
  const Val entropy = target * log(select(positive, target, target.like(1)));
  return reduced(spec, entropy - target * prediction);
}

void check_classes(const LossSpec& spec, const Dim& classes) {
  if (!classes.is_constant()) {
    throw CompileError(
        fmt::format("loss cross-entropy: the number of classes is {}; it must be "
                    "known, bind it with --dim",
                    classes.to_string()));
  }
  const int64_t count = static_cast<int64_t>(spec.class_weights.size());
  if (count != 0 && count != classes.constant()) {
    throw CompileError(fmt::format("loss cross-entropy: {} class weights are given for {} classes",
                                   count, classes.constant()));
  }
}

LossTarget cross_entropy_target(const LossSpec& spec, const TensorType& prediction) {
  if (prediction.rank() < 1) {
    throw CompileError("loss cross-entropy: the output is a scalar; it needs logits [N,C,…]");
  }
  if (spec.label_smoothing < 0 || spec.label_smoothing > 1) {
    throw CompileError(
        fmt::format("loss cross-entropy: the label smoothing is {}; it must be "
                    "between 0 and 1",
                    spec.label_smoothing));
  }
  const int64_t axis = class_axis(prediction);
  const Dim& classes = prediction.shape[static_cast<size_t>(axis)];
  check_classes(spec, classes);
  if (spec.probabilities) {
    if (spec.ignore_index) {
      throw CompileError(
          "loss cross-entropy: targets that are probabilities have no label to "
          "ignore");
    }
    return {prediction, std::nullopt};
  }
  TensorType labels{ElementType::i32, prediction.shape};
  labels.shape.erase(labels.shape.begin() + axis);
  return {labels, InputRange{0, classes.constant() - 1, spec.ignore_index}};
}

}  // namespace

std::optional<LossTarget> target_of(const LossSpec& spec, const TensorType& prediction) {
  if (!is_float(prediction.element)) {
    throw CompileError(fmt::format("loss {}: the output is {}; a loss needs a floating-point one",
                                   name_of(spec), to_string(prediction)));
  }
  if (spec.kind == LossKind::cross_entropy) return cross_entropy_target(spec, prediction);
  if (spec.kind != LossKind::output) return LossTarget{prediction, std::nullopt};
  if (!(prediction.element_count() == Dim(1))) {
    throw CompileError(
        fmt::format("loss output: the output is {} and must be a scalar; reduce it "
                    "in the model, or choose a loss that compares it with a target",
                    to_string(prediction)));
  }
  return std::nullopt;
}

Val loss_of(const LossSpec& spec, const Val& prediction, const std::optional<Val>& target) {
  if (spec.kind == LossKind::output) return reshape(prediction, {});
  BC_CHECK(target.has_value(), "loss {} has no target", name_of(spec));
  switch (spec.kind) {
    case LossKind::cross_entropy:
      return spec.probabilities ? probability_cross_entropy(spec, prediction, *target)
                                : label_cross_entropy(spec, prediction, *target);
    case LossKind::binary_cross_entropy:
      return binary_cross_entropy(spec, prediction, *target);
    case LossKind::mse: {
      const Val difference = prediction - *target;
      return reduced(spec, difference * difference);
    }
    case LossKind::l1:
      return reduced(spec, abs(prediction - *target));
    case LossKind::huber:
      return huber(spec, prediction, *target);
    case LossKind::kl_divergence:
      return kl_divergence(spec, prediction, *target);
    case LossKind::output:
      break;
  }
  internal_error(__FILE__, __LINE__, "unknown loss");
}

}  // namespace backcast
