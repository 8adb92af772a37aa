// Words of Threefry-2x32, and where their key comes from.
#include "frontend/rules/random_words.h"

namespace backcast {
namespace {

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
  const ValueId parity = e.scalar(kRandomWord, static_cast<double>(kParity));
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
    y = e.add(y, e.add(keys[(group + 1) % 3], e.scalar(kRandomWord, static_cast<double>(group))));
  }
  return x;
}

}  // namespace

RandomSource trained_source(NodeContext& n) {
  const TrainingImport& training = n.training();
  if (training.builder != &n.e.builder()) {
    n.fail("random numbers inside of If, Loop and Scan are not supported in training");
  }
  return {training.generator, n.e.cast(training.step, kRandomWord)};
}

RandomSource fixed_source(NodeContext& n, uint32_t key) {
  const std::vector<double> words{static_cast<double>(key), 0};
  return {n.e.constant(Literal::from_doubles(kRandomWord, {2}, words)), n.e.scalar(kRandomWord, 0)};
}

ValueId random_words(NodeContext& n, const RandomSource& source, const Shape& shape) {
  const int64_t site = n.training().draws++;
  const Dim count = TensorType{kRandomWord, shape}.element_count();
  const std::string variant = fmt::format("{} {}", site, count.to_string());
  const ValueId words = n.composite(
      "threefry2x32", variant, {source.key, source.step},
      [&](Emitter& e, const std::vector<ValueId>& p) {
        const auto word = [&](int64_t i) { return e.reshape(e.slice_axis(p[0], 0, i, i + 1), {}); };
        // Spread over the word, so that neighbouring keys and sites do not meet.
        const double mark = static_cast<double>(uint32_t(site) * 0x9E3779B9u);
        const ValueId second = e.binary(ops::bit_xor, word(1), e.scalar(kRandomWord, mark));
        const ValueId key_words[] = {word(0), second};
        return threefry(e, key_words, e.iota(kRandomWord, {count}, 0), p[1]);
      });
  return n.e.reshape(words, shape);
}

}  // namespace backcast
