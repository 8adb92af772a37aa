// Programs run: symbols, views, copies, planned memory.
#include <gtest/gtest.h>

#include "ir/graph/error.h"
#include "tests/loop/kernels.h"

namespace backcast::loop {
namespace {

const char kText[] = R"(program @net
symbol N in 1..8
BUFFERS
kernel @scale(x: f32[N,2] read, w: f32[2] read, y: f32[N,2] write over(x)) sizes(N) {
  define [i in N, j in 2] {
    y[i, j] = x[i, j]*w[j]
  }
}
entry @run(%x) -> (%y) {
  call @scale(%x, %w, %a) sizes(N)
  call @scale(%a, %w, %b) sizes(N)
  copy %b, %y
}
)";

Program program_with(const std::string& arena) {
  std::string text = kText;
  text.replace(text.find("BUFFERS"), 7,
               arena +
                   "buffer %x : f32[N,2] input\nbuffer %y : f32[N,2] output\n"
                   "buffer %w : f32[2] constant {2, 3}\n");
  const Program program = parse_program(text);
  verify(program);
  return program;
}

std::vector<double> doubles(const Literal& literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.element_count(); ++i) values.push_back(literal.as_double(i));
  return values;
}

TEST(ProgramRun, BeforeAndAfterPlanning) {
  const std::string arenas[] = {
      "buffer %a : f32[N,2] arena\nbuffer %b : f32[N,2] arena\n",
      "arena 128 bound 128 align 16\nbuffer %a : f32[N,2] arena offset 0\n"
      "buffer %b : f32[N,2] arena offset 64\n",
      // b takes over a.
      "arena 64 bound 64 align 16\nbuffer %a : f32[N,2] arena offset 0\n"
      "buffer %b : f32[N,2] arena offset 0\n",
      // Both are parts of one buffer.
      "arena 128 bound 128 align 16\nbuffer %whole : f32[2,N,2] arena offset 0\n"
      "buffer %a : f32[N,2] arena view of %whole at 0\n"
      "buffer %b : f32[N,2] arena view of %whole at N*2\n"};
  const Literal x = Literal::from_doubles(ElementType::f32, {3, 2}, {1, 2, 3, 4, 5, 6});
  for (const std::string& arena : arenas) {
    const std::vector<Literal> y = interpret(program_with(arena), "run", {x});
    ASSERT_EQ(y.size(), 1u);
    EXPECT_EQ(y[0].shape(), (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(doubles(y[0]), (std::vector<double>{4, 18, 12, 36, 20, 54}));
  }
}

TEST(ProgramRun, UninitialisedMemoryShows) {
  Program program = program_with("buffer %a : f32[N,2] arena\nbuffer %b : f32[N,2] arena\n");
  program.entries[0].steps.erase(program.entries[0].steps.begin());
  const Literal x = Literal::from_doubles(ElementType::f32, {1, 2}, {1, 2});
  EXPECT_LT(interpret(program, "run", {x})[0].as_double(0), -1e30);
}

TEST(ProgramRun, ChecksItsInputs) {
  const Program program = program_with("buffer %a : f32[N,2] arena\nbuffer %b : f32[N,2] arena\n");
  EXPECT_THROW(interpret(program, "run", {}), CompileError);
  EXPECT_THROW(interpret(program, "walk", {}), CompileError);
  const Literal wide = Literal::from_doubles(ElementType::f32, {1, 3}, {1, 2, 3});
  EXPECT_THROW(interpret(program, "run", {wide}), CompileError);
  const Literal large = Literal::from_doubles(ElementType::f32, {9, 2}, std::vector<double>(18));
  EXPECT_THROW(interpret(program, "run", {large}), CompileError);
}

TEST(ProgramRun, StorageCountsTheMaximum) {
  const Program program = program_with("buffer %a : f32[N,2] arena\nbuffer %b : f32[N,2] arena\n");
  EXPECT_EQ(program.storage_bytes(0), 64);
}

}  // namespace
}  // namespace backcast::loop
