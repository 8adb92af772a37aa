// What passes for the same output.
#include "driver/compare.h"

#include <gtest/gtest.h>

namespace backcast {
namespace {

Literal numbers(ElementType element, const std::vector<double>& values) {
  return Literal::from_doubles(element, {static_cast<int64_t>(values.size())}, values);
}

TEST(Compare, IntegersHaveToBeEqual) {
  for (const ElementType element : {ElementType::i8, ElementType::u8, ElementType::i64}) {
    const Literal expected = numbers(element, {1, 2, 3});
    EXPECT_TRUE(compare(expected, expected).passed);
    const ComparedOutput other = compare(numbers(element, {1, 2, 4}), expected);
    EXPECT_FALSE(other.passed);
    EXPECT_EQ(other.message, "element 2 is 4, expected 3");
  }
}

TEST(Compare, BytesMayDifferByTheStepsThatAreAllowed) {
  const Literal expected = numbers(ElementType::i8, {1, -128, 127});
  const Literal near = numbers(ElementType::i8, {2, -127, 126});
  const Literal far = numbers(ElementType::i8, {3, -128, 127});
  EXPECT_TRUE(compare(near, expected, {.steps = 1}).passed);
  EXPECT_FALSE(compare(far, expected, {.steps = 1}).passed);
  EXPECT_EQ(compare(far, expected, {.steps = 2}).worst, 1);
}

TEST(Compare, StepsAreForBytesAlone) {
  const Literal expected = numbers(ElementType::i64, {5});
  EXPECT_FALSE(compare(numbers(ElementType::i64, {6}), expected, {.steps = 1}).passed);
  const Literal real = numbers(ElementType::f32, {5});
  EXPECT_FALSE(compare(numbers(ElementType::f32, {6}), real, {.steps = 1}).passed);
}

}  // namespace
}  // namespace backcast
