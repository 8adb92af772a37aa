// Names of element types, and the 16-bit float conversions against exact search.
#include "ir/graph/element_type.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace backcast {
namespace {

TEST(ElementType, NamesAndSizes) {
  for (int i = 0; i < kElementTypeCount; ++i) {
    const ElementType type = static_cast<ElementType>(i);
    EXPECT_EQ(element_type_from_name(name_of(type)), type);
  }
  EXPECT_EQ(element_type_from_name("float"), std::nullopt);
  EXPECT_EQ(byte_size(ElementType::boolean), 1);
  EXPECT_EQ(byte_size(ElementType::bf16), 2);
  EXPECT_EQ(byte_size(ElementType::i64), 8);
  EXPECT_FALSE(is_integer(ElementType::boolean));
  EXPECT_TRUE(is_signed(ElementType::f16));
  EXPECT_FALSE(is_signed(ElementType::u32));
}

TEST(ElementType, EveryF16AndBf16RoundTrips) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    ASSERT_EQ(f16_from_f32(f32_from_f16(half)), half) << bits;
    ASSERT_EQ(bf16_from_f32(f32_from_bf16(half)), half) << bits;
    if (std::isnan(f32_from_f16(half))) continue;
    ASSERT_EQ(f16_from_f64(f32_from_f16(half)), half) << bits;
  }
}

TEST(ElementType, RoundsToNearestEven) {
  // Between neighbours: just below, at and just above the middle.
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const uint16_t low = static_cast<uint16_t>(bits);
    const double a = f32_from_f16(low);
    const double b = f32_from_f16(static_cast<uint16_t>(bits + 1));
    const double middle = (a + b) / 2;
    const uint16_t even = static_cast<uint16_t>(bits + (bits & 1));
    ASSERT_EQ(f16_from_f64(middle), even) << bits;
    ASSERT_EQ(f16_from_f64(std::nextafter(middle, 0.0)), low) << bits;
    ASSERT_EQ(f16_from_f64(std::nextafter(middle, INFINITY)), low + 1) << bits;
    ASSERT_EQ(f16_from_f64(-middle), even | 0x8000) << bits;
    ASSERT_EQ(f16_from_f32(static_cast<float>(middle)), even) << bits;
  }
}

TEST(ElementType, Bf16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const uint16_t low = static_cast<uint16_t>(bits);
    const double a = f32_from_bf16(low);
    const double b = f32_from_bf16(static_cast<uint16_t>(bits + 1));
    const double middle = (a + b) / 2;
    const uint16_t even = static_cast<uint16_t>(bits + (bits & 1));
    ASSERT_EQ(bf16_from_f64(middle), even) << bits;
    ASSERT_EQ(bf16_from_f32(static_cast<float>(middle)), even) << bits;
    ASSERT_EQ(bf16_from_f64(std::nextafter(middle, 0.0)), low) << bits;
    ASSERT_EQ(bf16_from_f64(std::nextafter(middle, INFINITY)), low + 1) << bits;
  }
}

TEST(ElementType, Extremes) {
  EXPECT_EQ(f16_from_f32(65504.0f), 0x7bff);
  EXPECT_EQ(f16_from_f32(65519.0f), 0x7bff);
  EXPECT_EQ(f16_from_f32(65520.0f), 0x7c00);
  EXPECT_EQ(f16_from_f64(1e300), 0x7c00);
  EXPECT_EQ(f16_from_f64(-INFINITY), 0xfc00);
  EXPECT_EQ(f16_from_f64(0x1p-25), 0);  // a tie, to even
  EXPECT_EQ(f16_from_f64(0x1.8p-25), 1);
  EXPECT_EQ(f16_from_f64(-0.0), 0x8000);
  EXPECT_EQ(f16_from_f64(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_TRUE(std::isnan(f32_from_f16(f16_from_f32(NAN))));
  EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f64(NAN))));
  // A NaN whose payload lies only in the dropped bits stays a NaN.
  EXPECT_TRUE(std::isnan(f32_from_f16(f16_from_f32(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f32(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(bf16_from_f32(std::numeric_limits<float>::max()), 0x7f80);
  // Rounded once: through f32 this would end one unit higher.
  EXPECT_EQ(f16_from_f64(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(bf16_from_f64(1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(bf16_from_f64(0x1p-134), 0);
}

}  // namespace
}  // namespace backcast
