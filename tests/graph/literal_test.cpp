// Literals: conversion, hashing, comparison; attributes built on them.
#include "ir/graph/literal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/graph/error.h"
#include "ir/ops/op_attrs.h"

namespace backcast {
namespace {

TEST(Literal, ConvertsEveryElementType) {
  for (int i = 0; i < kElementTypeCount; ++i) {
    const ElementType element = static_cast<ElementType>(i);
    const Literal literal = Literal::from_doubles(element, {2}, {1, 0});
    EXPECT_EQ(literal.as_double(0), 1) << name_of(element);
    EXPECT_EQ(literal.as_int(1), 0) << name_of(element);
    EXPECT_EQ(literal.element_count(), 2);
    EXPECT_EQ(literal.type(), (TensorType{element, {2}}));
  }
}

TEST(Literal, SaturatesAndTruncates) {
  EXPECT_EQ(Literal::scalar(ElementType::i8, 300).as_int(0), 127);
  EXPECT_EQ(Literal::scalar(ElementType::i8, -300).as_int(0), -128);
  EXPECT_EQ(Literal::scalar(ElementType::u8, -1).as_int(0), 0);
  EXPECT_EQ(Literal::scalar(ElementType::i64, 1e30).as_int(0), INT64_MAX);
  EXPECT_EQ(Literal::scalar(ElementType::i32, NAN).as_int(0), 0);
  EXPECT_EQ(Literal::scalar(ElementType::i32, -1.9).as_int(0), -1);
  EXPECT_EQ(Literal::scalar(ElementType::u64, 0x1p63).as_double(0), 0x1p63);
  EXPECT_EQ(Literal::scalar(ElementType::boolean, 0.5).as_int(0), 1);
  EXPECT_EQ(Literal::scalar(ElementType::f32, -2.7).as_int(0), -2);
}

TEST(Literal, IntegersStayExact) {
  const std::vector<int64_t> values = {INT64_MAX, INT64_MIN, (int64_t{1} << 53) + 1};
  EXPECT_EQ(Literal::from_ints({3}, values).as_ints(), values);
}

TEST(Literal, HashSeesTypeShapeAndEveryByte) {
  const Literal a = Literal::from_doubles(ElementType::f64, {2}, {1, 2});
  EXPECT_EQ(a.hash(), Literal::from_doubles(ElementType::f64, {2}, {1, 2}).hash());
  EXPECT_EQ(a, Literal::from_doubles(ElementType::f64, {2}, {1, 2}));
  // Two flipped signs must not cancel out.
  EXPECT_NE(a.hash(), Literal::from_doubles(ElementType::f64, {2}, {-1, -2}).hash());
  EXPECT_NE(a.hash(), Literal::from_doubles(ElementType::f64, {2, 1}, {1, 2}).hash());
  EXPECT_NE(a, Literal::from_doubles(ElementType::f64, {1, 2}, {1, 2}));
  EXPECT_NE(Literal::scalar(ElementType::i32, 1).hash(),
            Literal::scalar(ElementType::u32, 1).hash());
  EXPECT_NE(a, Literal::from_doubles(ElementType::f64, {2}, {1, 3}));
}

TEST(Literal, RefersToForeignMemoryAndAlignsIt) {
  const std::shared_ptr<std::vector<std::byte>> memory =
      std::make_shared<std::vector<std::byte>>(17);
  const float value = 2.5f;
  std::memcpy(memory->data() + 1, &value, sizeof(value));
  std::memcpy(memory->data() + 8, &value, sizeof(value));
  const std::span<const std::byte> all(*memory);
  const Literal mapped(ElementType::f32, {}, all.subspan(8, 4), memory);
  EXPECT_EQ(static_cast<const void*>(mapped.bytes().data()), memory->data() + 8);
  const Literal moved(ElementType::f32, {}, all.subspan(1, 4), memory);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(moved.data<float>()) % alignof(float), 0u);
  EXPECT_EQ(*moved.data<float>(), 2.5f);
  EXPECT_EQ(moved, mapped);
}

TEST(Literal, ChecksItsSize) {
  EXPECT_THROW(Literal(ElementType::f32, {2}, std::vector<std::byte>(4)), InternalError);
  EXPECT_THROW(Literal(ElementType::f32, {-1}, std::vector<std::byte>(4)), InternalError);
  EXPECT_EQ(Literal(ElementType::f32, {0, INT64_MAX, INT64_MAX}, {}).element_count(), 0);
  EXPECT_THROW(Literal::scalar(ElementType::f32, 1).as_double(1), InternalError);
}

TEST(Literal, RecognisesSplats) {
  EXPECT_TRUE(Literal::from_doubles(ElementType::f16, {3}, {0.5, 0.5, 0.5}).is_splat(0.5));
  EXPECT_FALSE(Literal::from_doubles(ElementType::f16, {3}, {0.5, 0.5, 1}).is_splat(0.5));
}

TEST(Attrs, ReplaceSubstituteCompare) {
  const Attrs attrs = BroadcastAttrs{{Dim::symbol("N"), 3}, {1}};
  EXPECT_EQ(attrs.substitute({{"N", 5}}), Attrs(BroadcastAttrs{{5, 3}, {1}}));
  EXPECT_EQ(attrs.with({{"dims", Ints{0}}}), Attrs(BroadcastAttrs{{Dim::symbol("N"), 3}, {0}}));
  EXPECT_EQ(attrs.hash(), Attrs(BroadcastAttrs{{Dim::symbol("N"), 3}, {1}}).hash());
  EXPECT_NE(attrs.hash(), attrs.with({{"dims", Ints{0}}}).hash());
  EXPECT_THROW(attrs.with({{"colour", int64_t{1}}}), CompileError);
  EXPECT_THROW(attrs.with({{"dims", true}}), CompileError);
  EXPECT_THROW(Attrs().with({{"dims", Ints{0}}}), CompileError);
  EXPECT_EQ(Attrs().with({}), Attrs());
  EXPECT_NE(attrs, Attrs());
  EXPECT_THROW(attrs.as<GetAttrs>(), InternalError);
}

TEST(Attrs, EnumsAreNames) {
  const Attrs attrs = Attrs(CompareAttrs{}).with({{"direction", std::string("le")}});
  EXPECT_EQ(attrs.as<CompareAttrs>().direction, Comparison::le);
  EXPECT_THROW(attrs.with({{"direction", std::string("near")}}), CompileError);
}

}  // namespace
}  // namespace backcast
