// Dropout: a mask is made of random words, so that it can be computed again.
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/random_words.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// The words that are kept are those from ratio · 2^32 on.
ValueId first_kept(NodeContext& n, ValueId ratio) {
  const std::optional<Literal> known = n.known_literal_of(ratio);
  if (known) {
    const double bound = std::min(std::ceil(known->as_double(0) * 4294967296.0), 4294967295.0);
    return n.e.scalar(kRandomWord, bound);
  }
  return n.e.cast(n.e.mul(n.e.cast(ratio, ElementType::f32), 4294967296.0), kRandomWord);
}

/// 1 / (1 - ratio); a constant where the ratio is one, which is then nothing that could be trained.
ValueId scale_of(NodeContext& n, ValueId ratio, ElementType element) {
  const std::optional<Literal> known = n.known_literal_of(ratio);
  if (known) return n.e.scalar(element, 1 / (1 - known->as_double(0)));
  const ValueId one = n.e.like(ratio, 1);
  return n.e.cast(n.e.div(one, n.e.sub(one, ratio)), element);
}

ValueId scalar_of(NodeContext& n, ValueId x) { return n.e.reshape(x, {}); }

struct Dropped {
  ValueId value, mask;
};

/// Elements become zero with probability `ratio`; the others are scaled by 1 / (1 - ratio).
Dropped drop(NodeContext& n, ValueId x, ValueId ratio, const RandomSource& source) {
  Emitter& e = n.e;
  const Shape shape = e.shape(x);
  const ElementType element = e.element(x);
  const ValueId words = random_words(n, source, shape);
  const ValueId mask =
      e.compare(Comparison::ge, words, e.broadcast_to(first_kept(n, ratio), shape));
  const ValueId scaled = e.mul(x, e.broadcast_to(scale_of(n, ratio, element), shape));
  return {e.select(mask, scaled, e.filled({element, shape}, 0)), mask};
}

ValueId ratio_of(NodeContext& n) {
  if (n.has(1)) return scalar_of(n, n.input(1));
  return n.e.scalar(ElementType::f32, n.attr_float("ratio", 0.5));
}

void keep_all(NodeContext& n) {
  n.result(n.input(0));
  const ElementType mask = n.opset() < 10 ? n.element(0) : ElementType::boolean;
  if (n.wants(1)) n.set(1, n.e.filled({mask, n.shape(0)}, 1));
}

/// With the key and the step of the training form, or else, as the file says it, with the
/// attribute `seed` as the key.
void dropout(NodeContext& n) {
  const TrainingImport& training = n.training();
  const ValueId ratio = ratio_of(n);
  const std::optional<Literal> known_ratio = n.known_literal_of(ratio);
  if (known_ratio && !(known_ratio->as_double(0) >= 0 && known_ratio->as_double(0) < 1)) {
    n.fail(fmt::format("the ratio is {}; it must be at least 0 and less than 1",
                       known_ratio->as_double(0)));
  }
  const bool drops_nothing = known_ratio && known_ratio->as_double(0) == 0;
  if (training.mode == ImportMode::inference || drops_nothing) return keep_all(n);
  const bool trains = training.mode == ImportMode::training;
  const std::optional<double> asked = n.has(2) ? n.known_number(2) : std::optional<double>(0);
  if (!trains && asked && *asked == 0) return keep_all(n);
  const RandomSource source =
      trains ? trained_source(n) : fixed_source(n, static_cast<uint32_t>(n.attr_int("seed", 0)));
  Dropped result = drop(n, n.input(0), ratio, source);
  if (!trains && !asked) {  // only run time knows whether to drop
    const ValueId flag = scalar_of(n, n.input(2));
    const ValueId wide = n.e.broadcast_to(flag, n.shape(0));
    result.value = n.e.select(wide, result.value, n.input(0));
    result.mask = n.e.select(wide, result.mask, n.e.filled({ElementType::boolean, n.shape(0)}, 1));
  }
  n.result(result.value);
  if (n.wants(1)) n.set(1, n.opset() < 10 ? n.e.cast(result.mask, n.element(0)) : result.mask);
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Dropout", 7, 11, 1, 1, dropout, "ratio:f"},
    {"Dropout", 12, kNew, 1, 3, dropout, "seed:i"},
};

}  // namespace

std::span<const OperatorRule> dropout_rules() { return kRules; }

}  // namespace backcast
