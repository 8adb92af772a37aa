// What is counted as an instruction.
#include "ir/loop/instruction_counts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/loop/text.h"

namespace backcast::loop {
namespace {

InstructionCounts counts_of(const std::string& body) {
  return instruction_counts(
      parse_program("program @p\nbuffer %x : f32[8] input\nbuffer %y : f32[8] output\n"
                    "kernel @k(x: f32[8] read, y: f32[8] write) {" +
                    body +
                    "}\n"
                    "entry @run(%x) -> (%y) {\n  call @k(%x, %y)\n}\n"));
}

constexpr const char* kLine = "store y[i*2+1] = load f32 x[i*2] + load f32 x[i*2+1]";

TEST(InstructionCounts, KnowLoadsOperationsAndStoresButNoIndices) {
  const InstructionCounts one = counts_of("store y[0] = 1:f32");
  const InstructionCounts four = counts_of(fmt::format("let i = 3 {}", kLine));
  EXPECT_EQ(four.code - one.code, 3);
  EXPECT_EQ(four.executed - one.executed, 3);
}

TEST(InstructionCounts, TakeUnrolledBodiesAsOftenAsTheyStandThere) {
  const InstructionCounts two = counts_of(fmt::format("unrolled for i in 0 .. 2 {{ {} }}", kLine));
  const InstructionCounts three =
      counts_of(fmt::format("unrolled for i in 0 .. 3 {{ {} }}", kLine));
  EXPECT_EQ(three.code - two.code, 4);
  EXPECT_EQ(three.executed - two.executed, 4);
}

TEST(InstructionCounts, TakeLoopsOnceInCodeAndEveryTripInTime) {
  const InstructionCounts two = counts_of(fmt::format("for i in 0 .. 2 {{ {} }}", kLine));
  const InstructionCounts three = counts_of(fmt::format("for i in 0 .. 3 {{ {} }}", kLine));
  EXPECT_EQ(three.code, two.code);
  EXPECT_GT(three.executed - two.executed, 4);
}

TEST(InstructionCounts, KnowHowOftenLoopsRunFromSizesThatCallsPass) {
  const auto counts = [](int calls, int size) {
    std::string text =
        "program @p\nsymbol n in 0..4\nbuffer %x : f32[8] input\nbuffer %y : f32[8] output\n"
        "kernel @k(x: f32[8] read, y: f32[8] write) sizes(n) { for i in 0 .. n {";
    text += std::string(kLine) + "} }\nentry @run(%x) -> (%y) {\n";
    for (int c = 0; c < calls; ++c) text += fmt::format("  call @k(%x, %y) sizes({})\n", size);
    return instruction_counts(parse_program(text + "}\n"));
  };
  EXPECT_EQ(counts(1, 4).code, counts(1, 2).code);
  const int64_t trip = counts(1, 3).executed - counts(1, 2).executed;
  EXPECT_GT(trip, 4);
  EXPECT_EQ(counts(1, 4).executed - counts(1, 2).executed, 2 * trip);
  EXPECT_EQ(counts(2, 4).executed - counts(2, 2).executed, 4 * trip);
}

}  // namespace
}  // namespace backcast::loop
