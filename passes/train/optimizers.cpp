// The order of operations follows PyTorch's, so that single precision agrees closely.
#include "passes/train/optimizers.h"

#include <cmath>
#include <numbers>

#include "ir/graph/error.h"

namespace backcast {
namespace {

/// A scalar in the shape of `like`.
Val spread(const Val& scalar, const Val& like) {
  return like.shape().empty() ? scalar : broadcast(scalar, like.shape());
}

double momentum_of(const OptimizerSpec& spec) {
  const bool own = spec.kind == OptimizerKind::momentum || spec.kind == OptimizerKind::nesterov;
  return spec.momentum.value_or(own ? 0.9 : 0);
}

double epsilon_of(const OptimizerSpec& spec) {
  return spec.epsilon.value_or(spec.kind == OptimizerKind::adagrad ? 1e-10 : 1e-8);
}

double decoupled_decay_of(const OptimizerSpec& spec) {
  return spec.decoupled_decay.value_or(spec.kind == OptimizerKind::adamw ? 0.01 : 0);
}

void require(bool holds, const std::string& message) {
  if (!holds) throw CompileError("optimizer: " + message);
}

}  // namespace

std::vector<Slot> slots_of(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::sgd:
      return {};
    case OptimizerKind::momentum:
    case OptimizerKind::nesterov:
      return {{"momentum"}};
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return {{"mean"}, {"square"}};
    case OptimizerKind::rmsprop: {
      std::vector<Slot> slots = {{"square"}};
      if (spec.centered) slots.push_back({"mean"});
      if (momentum_of(spec) != 0) slots.push_back({"momentum"});
      return slots;
    }
    case OptimizerKind::adagrad:
      return {{"square", spec.initial_accumulator}};
  }
  internal_error(__FILE__, __LINE__, "unknown optimizer");
}

void check_optimizer(const OptimizerSpec& spec) {
  const auto fraction = [](double value) { return value >= 0 && value < 1; };
  require(spec.rate >= 0 && std::isfinite(spec.rate), "the rate must be a number of 0 or more");
  require(momentum_of(spec) >= 0, "the momentum must not be negative");
  require(fraction(spec.beta1) && fraction(spec.beta2), "beta1 and beta2 must be in [0, 1)");
  require(fraction(spec.alpha), "alpha must be in [0, 1)");
  require(epsilon_of(spec) >= 0, "epsilon must not be negative");
  require(spec.weight_decay >= 0 && decoupled_decay_of(spec) >= 0,
          "the weight decay must not be negative");
  require(spec.clip_value.value_or(1) > 0 && spec.clip_norm.value_or(1) > 0,
          "the bounds of clipping must be positive");
  const Schedule& schedule = spec.schedule;
  require(schedule.warmup >= 0, "the warm-up must not be negative");
  require(schedule.kind != ScheduleKind::step || schedule.every > 0,
          "the schedule \"step\" needs every=, the updates between two steps");
  require(schedule.kind != ScheduleKind::cosine || schedule.total > 0,
          "the schedule \"cosine\" needs total=, the number of updates");
}

Optimizer::Optimizer(const OptimizerSpec& spec, const Val& rate, const Val& done)
    : spec_(spec), number_(cast(done + 1.0, rate.element())), rate_(scheduled(rate, done)) {
  if (spec.kind != OptimizerKind::adam && spec.kind != OptimizerKind::adamw) return;
  corrected_rate_ = rate_ / bias_correction(spec.beta1);
  correction_root_ = sqrt(bias_correction(spec.beta2));
}

Val Optimizer::scheduled(const Val& rate, const Val& done) const {
  const Schedule& schedule = spec_.schedule;
  Val result = rate;
  if (schedule.kind == ScheduleKind::step) {
    const Val steps = cast(done / static_cast<double>(schedule.every), rate.element());
    result = result * pow(rate.like(schedule.factor), steps);
  }
  if (schedule.kind == ScheduleKind::cosine) {
    const double total = static_cast<double>(schedule.total);
    const Val part = cast(min(done, done.like(total)), rate.element()) * (std::numbers::pi / total);
    result = result * ((cos(part) + 1.0) * (0.5 * (1 - schedule.least)) + schedule.least);
  }
  if (schedule.warmup > 0) {
    result = result * min(number_ / static_cast<double>(schedule.warmup), rate.like(1));
  }
  return result;
}

std::vector<Val> Optimizer::clip(std::vector<Val> gradients) const {
  if (spec_.clip_value) {
    for (Val& gradient : gradients) {
      gradient =
          max(min(gradient, gradient.like(*spec_.clip_value)), gradient.like(-*spec_.clip_value));
    }
  }
  if (spec_.clip_norm && !gradients.empty()) {
    Val square = sum(gradients[0] * gradients[0]);
    for (size_t i = 1; i < gradients.size(); ++i) {
      square = square + sum(gradients[i] * gradients[i]);
    }
    const Val norm = sqrt(square);
    const Val factor = min(norm.like(*spec_.clip_norm) / (norm + 1e-6), norm.like(1));
    for (Val& gradient : gradients) gradient = gradient * spread(factor, gradient);
  }
  return gradients;
}

/// 1 - beta^n without cancellation: -2 t / (1 - t) with t = tanh(n log(beta) / 2).
Val Optimizer::bias_correction(double beta) const {
  if (beta == 0) return number_.like(1);
  const Val t = tanh(number_ * (std::log(beta) / 2));
  return (t * -2.0) / (1.0 - t);
}

Optimizer::Update Optimizer::adam(const Val& parameter, const Val& gradient,
                                  const std::vector<Val>& slots) const {
  const Val mean = slots[0] + (gradient - slots[0]) * (1 - spec_.beta1);
  const Val square = slots[1] * spec_.beta2 + gradient * gradient * (1 - spec_.beta2);
  const Val divisor = sqrt(square) / spread(*correction_root_, square) + epsilon_of(spec_);
  return {parameter - spread(*corrected_rate_, mean) * (mean / divisor), {mean, square}};
}

Optimizer::Update Optimizer::rmsprop(const Val& parameter, const Val& gradient,
                                     const std::vector<Val>& slots) const {
  const Val square = slots[0] * spec_.alpha + gradient * gradient * (1 - spec_.alpha);
  std::vector<Val> now = {square};
  Val spreading = square;
  if (spec_.centered) {
    now.push_back(slots[1] + (gradient - slots[1]) * (1 - spec_.alpha));
    spreading = square - now[1] * now[1];
  }
  Val direction = gradient / (sqrt(spreading) + epsilon_of(spec_));
  if (momentum_of(spec_) != 0) {
    direction = slots.back() * momentum_of(spec_) + direction;
    now.push_back(direction);
  }
  return {parameter - spread(rate_, parameter) * direction, now};
}

Optimizer::Update Optimizer::momentum(const Val& parameter, const Val& gradient,
                                      const std::vector<Val>& slots) const {
  const Val velocity = slots[0] * momentum_of(spec_) + gradient;
  const bool ahead = spec_.kind == OptimizerKind::nesterov;
  const Val direction = ahead ? gradient + velocity * momentum_of(spec_) : velocity;
  return {parameter - spread(rate_, parameter) * direction, {velocity}};
}

Optimizer::Update Optimizer::update(const Val& parameter, const Val& gradient,
                                    const std::vector<Val>& slots) const {
  Val p = parameter;
  Val g = gradient;
  if (decoupled_decay_of(spec_) != 0) {
    p = p * spread(1.0 - rate_ * decoupled_decay_of(spec_), p);
  }
  if (spec_.weight_decay != 0) g = g + parameter * spec_.weight_decay;
  switch (spec_.kind) {
    case OptimizerKind::sgd:
      return {p - spread(rate_, p) * g, {}};
    case OptimizerKind::momentum:
    case OptimizerKind::nesterov:
      return momentum(p, g, slots);
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return adam(p, g, slots);
    case OptimizerKind::rmsprop:
      return rmsprop(p, g, slots);
    case OptimizerKind::adagrad: {
      const Val rate = rate_ / ((number_ - 1.0) * spec_.rate_decay + 1.0);
      const Val square = slots[0] + g * g;
      const Val direction = g / (sqrt(square) + epsilon_of(spec_));
      return {p - spread(rate, p) * direction, {square}};
    }
  }
  internal_error(__FILE__, __LINE__, "unknown optimizer");
}

}  // namespace backcast
