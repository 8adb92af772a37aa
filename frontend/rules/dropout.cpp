// Dropout. Random bits come from Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011), which turns a key and a counter into bits with integer arithmetic alone: the
// same key gives the same mask on every target, in any order, and a mask can be computed again.
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr ElementType kWord = ElementType::u32;

/// The bits of x moved left; what falls out comes in on the right.
ValueId rotate_left(Emitter& e, ValueId x, int64_t bits) {
  const ValueId left = e.binary(ops::shift_left, x, e.like(x, static_cast<double>(bits)));
  const ValueId right = e.binary(ops::shift_right, x, e.like(x, static_cast<double>(32 - bits)));
  return e.binary(ops::bit_or, left, right);
}

/// The first word of Threefry-2x32 with 20 rounds of every counter (low[i], high).
ValueId threefry(Emitter& e, const ValueId (&key)[2], ValueId low, ValueId high) {
  constexpr int64_t kRotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  constexpr int64_t kParity = 0x1BD11BDA;
  const ValueId parity = e.scalar(kWord, static_cast<double>(kParity));
  const ValueId third = e.binary(ops::bit_xor, e.binary(ops::bit_xor, key[0], key[1]), parity);
  const ValueId keys[] = {key[0], key[1], third};
  ValueId x = e.add(low, key[0]);
  ValueId y = e.add(e.broadcast_to(high, e.shape(low)), key[1]);
  for (int64_t round = 0; round < 20; ++round) {
    x = e.add(x, y);
    y = e.binary(ops::bit_xor, rotate_left(e, y, kRotations[round % 8]), x);
    if (round % 4 != 3) continue;
    const int64_t group = round / 4 + 1;
    x = e.add(x, keys[group % 3]);
    y = e.add(y, e.add(keys[(group + 1) % 3], e.scalar(kWord, static_cast<double>(group))));
  }
  return x;
}

/// One random word per element of `shape`. Each dropout of a model has a counter range of its own.
ValueId random_words(NodeContext& n, ValueId key, ValueId step, const Shape& shape) {
  const int64_t site = n.training().dropouts++;
  const Dim count = TensorType{kWord, shape}.element_count();
  const std::string variant = fmt::format("{} {}", site, count.to_string());
  const ValueId words = n.composite(
      "threefry2x32", variant, {key, step}, [&](Emitter& e, const std::vector<ValueId>& p) {
        const auto word = [&](int64_t i) { return e.reshape(e.slice_axis(p[0], 0, i, i + 1), {}); };
        // Spread over the word, so that neighbouring keys and sites do not meet.
        const double mark = static_cast<double>(uint32_t(site) * 0x9E3779B9u);
        const ValueId second = e.binary(ops::bit_xor, word(1), e.scalar(kWord, mark));
        const ValueId key_words[] = {word(0), second};
        return threefry(e, key_words, e.iota(kWord, {count}, 0), p[1]);
      });
  return n.e.reshape(words, shape);
}

/// The words that are kept are those from ratio · 2^32 on.
ValueId first_kept(NodeContext& n, ValueId ratio) {
  const std::optional<Literal> known = n.known_literal_of(ratio);
  if (known) {
    const double bound = std::min(std::ceil(known->as_double(0) * 4294967296.0), 4294967295.0);
    return n.e.scalar(kWord, bound);
  }
  return n.e.cast(n.e.mul(n.e.cast(ratio, ElementType::f32), 4294967296.0), kWord);
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
Dropped drop(NodeContext& n, ValueId x, ValueId ratio, ValueId key, ValueId step) {
  Emitter& e = n.e;
  const Shape shape = e.shape(x);
  const ElementType element = e.element(x);
  const ValueId words = random_words(n, key, e.cast(step, kWord), shape);
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
  ValueId key = training.generator, step = training.step;
  if (!trains) {
    const double seed = static_cast<double>(static_cast<uint32_t>(n.attr_int("seed", 0)));
    key = n.e.constant(Literal::from_doubles(kWord, {2}, {seed, 0}));
    step = n.e.scalar(kWord, 0);
  }
  if (trains && training.builder != &n.e.builder()) {
    n.fail("dropout inside of If, Loop and Scan is not supported in training");
  }
  Dropped result = drop(n, n.input(0), ratio, key, step);
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
