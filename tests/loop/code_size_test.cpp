// What is counted as an instruction.
#include "ir/loop/code_size.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/loop/text.h"

namespace backcast::loop {
namespace {

int64_t size_of(const std::string& body) {
  Program program;
  const Kernel kernel = parse_kernel("kernel @k(x: f32[8] read, y: f32[8] write) {" + body + "}");
  program.kernels.emplace(kernel.name, kernel);
  return code_size(program);
}

const char* const kLine = "store y[i*2+1] = load f32 x[i*2] + load f32 x[i*2+1]";

TEST(CodeSize, CountsLoadsOperationsAndStoresButNoIndices) {
  const int64_t call = size_of("store y[0] = 1:f32") - 1;
  EXPECT_EQ(size_of(fmt::format("let i = 3 {}", kLine)) - call, 4);
}

TEST(CodeSize, TakesUnrolledBodiesAsOftenAsTheyStandThere) {
  const int64_t once = size_of(fmt::format("for i in 0 .. 3 {{ {} }}", kLine));
  const int64_t thrice = size_of(fmt::format("unrolled for i in 0 .. 3 {{ {} }}", kLine));
  EXPECT_EQ(size_of(fmt::format("for i in 0 .. 2 {{ {} }}", kLine)), once);
  EXPECT_EQ(thrice - size_of(fmt::format("unrolled for i in 0 .. 2 {{ {} }}", kLine)), 4);
  EXPECT_GT(thrice, once);
}

}  // namespace
}  // namespace backcast::loop
