// Sections of an object that runs in this process lie side by side, however large they are.
#include "backend/llvm/address_area.h"

#include <gtest/gtest.h>

namespace backcast {
namespace {

TEST(AddressArea, PlacesFollowOneAnother) {
  const size_t page = whole_pages(1);
  AddressArea area(4 * page);
  std::byte* code = area.take(100);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(area.take(page + 1), code + page);
  EXPECT_EQ(area.take(page), code + 3 * page);
  EXPECT_TRUE(area.holds(code + 4 * page - 1));
  EXPECT_FALSE(area.holds(code + 4 * page));
  code[4 * page - 1] = std::byte{1};
}

TEST(AddressArea, GivesNoMoreThanItHas) {
  const size_t page = whole_pages(1);
  AddressArea area(2 * page);
  EXPECT_EQ(area.take(3 * page), nullptr);
  EXPECT_EQ(area.take(~size_t{0}), nullptr);
  EXPECT_NE(area.take(2 * page), nullptr);
  EXPECT_EQ(area.take(1), nullptr);
}

}  // namespace
}  // namespace backcast
