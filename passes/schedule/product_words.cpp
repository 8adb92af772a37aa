#include "passes/schedule/product_words.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "ir/graph/type.h"
#include "ir/loop/visit.h"

namespace backcast {

int64_t per_word(Places places) {
  if (places == Places::nibbles) return 8;
  return places == Places::halves ? 2 : 4;
}

Places beside(Places form) {
  const bool in_bytes = form == Places::bytes || form == Places::nibbles;
  return in_bytes ? Places::bytes : Places::halves;
}

Literal as_words(const Literal& value, size_t dimension, Places places) {
  static constexpr int kBits[][8] = {
      {0, 16}, {0, 16, 8, 24}, {0, 8, 16, 24}, {12, 8, 28, 24, 4, 0, 20, 16}};
  const int* const bits = kBits[static_cast<size_t>(places)];
  const int64_t count = per_word(places);
  const uint32_t mask = (uint32_t{1} << (32 / count)) - 1;
  std::vector<int64_t> shape = value.shape();
  int64_t inner = 1;
  for (size_t d = dimension + 1; d < shape.size(); ++d) inner *= shape[d];
  shape[dimension] /= count;
  std::vector<uint32_t> words(static_cast<size_t>(value.element_count() / count));
  for (size_t w = 0; w < words.size(); ++w) {
    const int64_t row = static_cast<int64_t>(w) / inner, column = static_cast<int64_t>(w) % inner;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t element = value.as_int((count * row + i) * inner + column);
      words[w] |= (static_cast<uint32_t>(element) & mask) << bits[i];
    }
  }
  std::vector<std::byte> bytes(words.size() * sizeof(uint32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return Literal(ElementType::i32, shape, std::move(bytes));
}

Literal as_shared_words(const Literal& value, size_t result, size_t dimension) {
  const std::vector<int64_t>& extents = value.shape();
  const std::vector<int64_t> strides = row_major_strides(extents);
  std::vector<int64_t> shape{extents[result] / 2}, steps{2 * strides[result]};
  for (size_t d = 0; d < extents.size(); ++d) {
    if (d == result || d == dimension) continue;
    shape.push_back(extents[d]);
    steps.push_back(strides[d]);
  }
  shape.insert(shape.end(), {extents[dimension] / 4, 2});
  steps.insert(steps.end(), {4 * strides[dimension], strides[dimension]});
  const std::vector<int64_t> places = row_major_strides(shape);
  std::vector<double> words(static_cast<size_t>(value.element_count() / 4));
  for (size_t w = 0; w < words.size(); ++w) {
    int64_t rest = static_cast<int64_t>(w), from = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      from += rest / places[d] * steps[d];
      rest %= places[d];
    }
    const auto half = [&](int64_t at) {
      const int64_t both = 256 * value.as_int(at) + value.as_int(at + strides[result]);
      return static_cast<uint32_t>(both) & 0xffffu;
    };
    const uint32_t word = half(from) | half(from + 2 * strides[dimension]) << 16;
    words[w] = static_cast<double>(static_cast<int32_t>(word));
  }
  return Literal::from_doubles(ElementType::i32, shape, words);
}

Literal as_half_words(const Literal& words) {
  std::vector<int64_t> shape = words.shape();
  const auto lanes = static_cast<size_t>(shape.back());
  shape.erase(shape.end() - 2);
  std::vector<double> halves(static_cast<size_t>(words.element_count() / 2));
  for (size_t i = 0; i < halves.size(); ++i) {
    const auto from = static_cast<int64_t>(i / lanes * 2 * lanes + i % lanes);
    const auto first = static_cast<uint32_t>(words.as_int(from));
    const auto second = static_cast<uint32_t>(words.as_int(from + static_cast<int64_t>(lanes)));
    const uint32_t both = (first << 4 & 0xf0f0f0f0u) | (second & 0x0f0f0f0fu);
    halves[i] = static_cast<double>(static_cast<int32_t>(both));
  }
  return Literal::from_doubles(ElementType::i32, shape, halves);
}

Literal as_half_bytes(const Literal& value, size_t dimension) {
  std::vector<int64_t> shape = value.shape();
  const int64_t inner = row_major_strides(shape)[dimension];
  shape[dimension] /= 2;
  std::vector<double> bytes(static_cast<size_t>(value.element_count() / 2));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / inner, column = static_cast<int64_t>(i) % inner;
    const int64_t first = value.as_int(2 * row * inner + column);
    const int64_t second = value.as_int((2 * row + 1) * inner + column);
    bytes[i] = static_cast<double>(16 * second + (first & 15));
  }
  return Literal::from_doubles(ElementType::i8, shape, bytes);
}

bool are_nibbles(const Literal& words) {
  return std::ranges::all_of(words.bytes(), [](std::byte byte) {
    const auto value = static_cast<int8_t>(byte);
    return value >= -8 && value <= 7;
  });
}

bool fits_signed_nibbles(const Literal& value) {
  if (!is_integer(value.element())) return false;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (value.as_int(i) < -8 || value.as_int(i) > 7) return false;
  }
  return true;
}

int64_t largest_sum(const Literal& value, const std::vector<bool>& is_summed) {
  const std::vector<int64_t> strides = row_major_strides(value.shape());
  std::map<int64_t, int64_t> sums;  // by the place of the first element
  for (int64_t i = 0; i < value.element_count(); ++i) {
    int64_t first = i;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (is_summed[d]) first -= i / strides[d] % value.shape()[d] * strides[d];
    }
    sums[first] += std::abs(value.as_int(i));
  }
  int64_t largest = 0;
  for (const auto& [first, sum] : sums) largest = std::max(largest, sum);
  return largest;
}

void shift_sum(loop::Definition& definition, int64_t places) {
  const loop::Accumulator& sum = definition.accumulators[0];
  const loop::Expr shifted = loop::binary(loop::Op::shr, loop::var(sum.name, sum.type),
                                          loop::int_constant(sum.type, places));
  const std::map<std::string, loop::Expr> values{{sum.name, shifted}};
  for (loop::DefinitionOutput& output : definition.outputs) {
    output.value = loop::substitute(output.value, values);
  }
}

}  // namespace backcast
