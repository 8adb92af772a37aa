// Complaints of the parser, and texts that must not crash it.
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/error.h"
#include "ir/loop/text.h"

namespace backcast::loop {
namespace {

std::string complaint(const std::string& body) {
  try {
    parse_kernel("kernel @k(x: f32[4] read, y: f32[4] write) sizes(N) {\n" + body + "}");
  } catch (const CompileError& error) {
    return error.what();
  }
  return "none";
}

TEST(ParserError, NamesLineAndColumn) {
  EXPECT_EQ(complaint("store y[0] = z\n"), "2:14: unknown name z");
  EXPECT_EQ(complaint("store y[0] = q[0]\n"), "2:14: unknown buffer q");
  EXPECT_EQ(complaint("let a = 1.5\n"), "2:9: no number of type index: 1.5");
  EXPECT_EQ(complaint("let a = 1:f32 + 1\n"), "2:15: add of f32 and index");
  EXPECT_EQ(complaint("let a = dot2(1:u32, 2:u32)\n"), "2:9: dot2 of u32");
  EXPECT_EQ(complaint("let a = dot2(1:i32, 2:i16)\n"), "2:9: dot2 of i32 and i16");
  EXPECT_EQ(complaint("let a = even_bytes(1:u32)\n"), "2:9: even_bytes of u32");
  EXPECT_EQ(complaint("let a = odd_bytes(1:i16)\n"), "2:9: odd_bytes of i16");
  EXPECT_EQ(complaint("let a = lane_bits(1:u8)\n"), "2:9: lane_bits of u8");
  EXPECT_EQ(complaint("let a = nearest(1:i32)\n"), "2:9: nearest of i32");
  EXPECT_EQ(complaint("let a = trailing_zeros(1:i32)\n"), "2:9: trailing_zeros of i32");
  EXPECT_EQ(complaint("let a = 300:u8\n"), "2:9: no number of type u8: 300");
  EXPECT_EQ(complaint("for i in 1 .. 4 { }\n"),
            "2:10: a loop that begins elsewhere than at 0 gives its extent: begin .. +extent");
  EXPECT_EQ(complaint("for i in 0 .. 4 { "), "2:20: expected \"}\"");
  EXPECT_EQ(complaint("while N { }"), "2:7: expected bool, found index");
  EXPECT_EQ(complaint("let a = load\n"), "3:1: expected a name");
  EXPECT_EQ(complaint("let a = select\n"), "2:9: unexpected \"select\"; as a name it needs quotes");
  EXPECT_EQ(complaint("jump\n"), "2:1: unexpected \"jump\"");
  EXPECT_EQ(complaint("let a = \"x\n"), "2:9: a string does not end on its line");
  EXPECT_EQ(complaint("let a = broadcast(1:f32, 9999)\n"), "2:26: a vector has 2 to 4096 lanes");
  EXPECT_EQ(complaint("let a = $\n"), "2:9: unexpected character");
}

TEST(ParserError, BoundsNestingAndDepth) {
  const std::string deep(100000, '(');
  EXPECT_NE(complaint("let a = " + deep), "none");
  EXPECT_NE(complaint("let a = " + std::string(100000, '-') + "N"), "none");
  std::string blocks;
  for (int i = 0; i < 100000; ++i) blocks += "block {";
  EXPECT_NE(complaint(blocks), "none");
  std::string sum = "let a = N";
  for (int i = 0; i < 100000; ++i) sum += " + N";
  EXPECT_NE(complaint(sum), "none");
  EXPECT_THROW(parse_kernel("kernel @k(x: f32[" + deep + "] read) {}"), CompileError);
}

TEST(ParserError, Programs) {
  const auto program_complaint = [](const std::string& text) {
    try {
      parse_program("program @p\n" + text);
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(program_complaint("buffer %a : f32[2] constant {1}"), "2:31: expected \",\"");
  EXPECT_EQ(program_complaint("buffer %a : f32[9999999999] constant {1}"),
            "2:38: a constant of this size needs the file of constants");
  EXPECT_EQ(program_complaint("buffer %a : f32[2] arena view of %b at 0"),
            "2:34: unknown buffer %b");
  EXPECT_EQ(program_complaint("entry @e(%x) -> () { }"), "2:10: unknown buffer %x");
  EXPECT_EQ(program_complaint("symbol N in 3..2"), "2:8: the range of N is empty");
  EXPECT_EQ(program_complaint("buffer %a : f32[1/0] arena"),
            "2:18: a dimension is divided by zero");
}

TEST(ParserError, MutilatedTextsDoNotCrash) {
  const std::string text =
      "program @net\nsymbol N in 1..8\nbuffer %x : f32[N,4] input\n"
      "buffer %w : f16[3] constant {1.5, -inf, nan(0x7e01)} loc(\"a\", \"b\", made)\n"
      "function @f(a: f32) { let b = a*2:f32 return fma(a, b, 1e-3:f32) }\n"
      "kernel @k(x: f32[N,4] read, y: f32[N,4] write over(x)) sizes(N) macs 3 {\n"
      "  define [i in N] reduce [k in 4] { s: f32 = sum(init 0:f32, x[i, k]) y[i, 0] = -s }\n"
      "  alloc t : f32x8[4] registers unrolled for j in 2 .. +min(N, 2) {\n"
      "    store t[j] = shuffle(load f32x8 t[0]; 0, 1, 2, 3, 4, 5, 6, 7) }\n"
      "  if ~(N < 2) & true { store y[ramp(0, 2, 4)] = broadcast(cast f32 (N), 4) } else { }\n"
      "}\nentry @run(%x) -> (%x) { copy %x, %x call @k(%x, %x) sizes(N + 1) }\n";
  EXPECT_NO_THROW(parse_program(text));
  std::mt19937 random(3);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 6000; ++round) {
    std::string damaged = text;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(damaged.size());
      switch (below(4)) {
        case 0:
          damaged[at] = static_cast<char>(below(256));
          break;
        case 1:
          damaged.erase(at, 1 + below(12));
          break;
        case 2:
          damaged.insert(at, damaged.substr(below(damaged.size()), 1 + below(30)));
          break;
        default:
          damaged.insert(at, std::string(1 + below(20), "0123456789(-\"%#@"[below(16)]));
      }
      if (damaged.empty()) damaged = " ";
    }
    try {
      const Program program = parse_program(damaged);
      EXPECT_TRUE(equal(program, parse_program(print(program), print_constants(program))));
    } catch (const CompileError&) {
    }
  }
}

}  // namespace
}  // namespace backcast::loop
