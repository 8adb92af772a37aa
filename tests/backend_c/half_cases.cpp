// Between f16 and f32, scalars and vectors.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tests/backend_c/cases.h"

namespace backcast::c_test {
namespace {

using loop::Expr;
using loop::Scalar;

constexpr int64_t kNumbers = 8192;

/// Every seventh number of the type; one NaN, whose payload is not lost anywhere.
uint16_t half(int64_t i) {
  const auto bits = static_cast<uint16_t>(7 * i);
  return (bits & 0x7fff) > 0x7c00 ? uint16_t{0x7e00} : bits;
}

template <class T>
Literal literal(ElementType element, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return Literal(element, {static_cast<int64_t>(values.size())}, std::move(bytes));
}

Literal halves() {
  std::vector<uint16_t> values;
  for (int64_t i = 0; i < kNumbers; ++i) values.push_back(half(i));
  return literal(ElementType::f16, values);
}

/// The same numbers, halfway to their neighbours, and next to that.
Literal floats() {
  std::vector<float> values;
  for (int64_t i = 0; i < kNumbers; ++i) {
    const uint16_t bits = half(i);
    const float low = f32_from_f16(bits);
    if (std::isnan(low) || std::isinf(low)) {
      values.push_back(std::isnan(low) || i % 2 == 0 ? low : std::copysign(65519.99F, low));
      continue;
    }
    const float high = (bits & 0x7fff) == 0x7bff ? std::copysign(65536.0F, low)
                                                 : f32_from_f16(static_cast<uint16_t>(bits + 1));
    const float tie = low + (high - low) / 2;
    const float near[] = {low, tie, std::nextafter(tie, low), std::nextafter(tie, high)};
    values.push_back(near[i % 4]);
  }
  return literal(ElementType::f32, values);
}

Case conversions(int32_t lanes) {
  ProgramBuilder builder(fmt::format("halves_{}", lanes));
  const Expr at = loop::var("i") * loop::index_constant(lanes);
  const Dims shape = {Dim(kNumbers)};
  builder.input("h", halves(), shape);
  builder.input("f", floats(), shape);
  builder.output("widened", ElementType::f32, shape);
  builder.output("narrowed", ElementType::f16, shape);
  builder.output("rounded", ElementType::f32, shape);
  const loop::Type narrow{Scalar::f16, lanes}, wide{Scalar::f32, lanes};
  const Expr rounded = loop::cast(narrow, loop::load(wide, "f", at));
  return builder.finish(loop::for_loop(
      "i", 0, kNumbers / lanes,
      loop::block({loop::store("widened", at, loop::cast(wide, loop::load(narrow, "h", at))),
                   loop::store("narrowed", at, rounded),
                   loop::store("rounded", at, loop::cast(wide, rounded))})));
}

}  // namespace

std::vector<Case> half_cases(std::span<const int32_t> lanes) {
  std::vector<Case> cases;
  for (const int32_t n : lanes) cases.push_back(conversions(n));
  return cases;
}

}  // namespace backcast::c_test
