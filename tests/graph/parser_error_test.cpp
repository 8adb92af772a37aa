// The parser's complaints, and its calm in the face of arbitrary bytes.
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "tests/graph/test_module.h"

namespace backcast {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_module(text);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

/// The text of a function body on lines 2 and up, x being a f32[4].
std::string in_function(const std::string& body) {
  return "func @f(%x: f32[4]) -> f32[4] {\n" + body + "\n}";
}

TEST(ParserError, NamesLineAndColumn) {
  EXPECT_EQ(error_of("  hello"), "1:3: expected \"symbol\", \"state\", \"entry\" or \"func\"");
  EXPECT_EQ(error_of("state \"w\" toy = f32[] 1"), "1:7: \"toy\" is no role of a state variable");
  EXPECT_EQ(error_of("entry \"run\" @f"), "1:7: there is no function @f");
  EXPECT_EQ(error_of("symbol N in 3..2"), "1:8: the range of a symbol must be 0 <= min <= max");
  EXPECT_EQ(error_of("symbol N in 1..2\nsymbol N in 1..2"), "2:8: symbol N is declared twice");
  EXPECT_EQ(error_of("func @f(%x: f31[4])"), "1:13: expected an element type such as f32");
  EXPECT_EQ(error_of("func @f(%x: f32[N])"),
            "1:17: symbol N is not declared; write \"symbol N in 1..8\" above");
  EXPECT_EQ(error_of("func @f(%x: f32[4/0])"), "1:17: a dimension is divided by zero");
  EXPECT_EQ(error_of("func @f(%x: f32[4], %x: f32[4])"), "1:21: value %x is defined twice");
  EXPECT_EQ(error_of("func @f() -> ("), "1:15: expected an element type such as f32");
}

TEST(ParserError, InsideFunctions) {
  EXPECT_EQ(error_of(in_function("%0 = frobnicate %x")), "2:6: unknown operator \"frobnicate\"");
  EXPECT_EQ(error_of(in_function("%0 = relu %y")), "2:11: value %y is not defined above");
  EXPECT_EQ(error_of(in_function("%0 = relu %x {a=1}")),
            "2:15: relu has no attribute \"a\"; it has none");
  EXPECT_EQ(error_of(in_function("%0 = add %x")), "2:6: add takes 2 operands and has 1");
  EXPECT_EQ(error_of(in_function("%0 = relu %x : f32[5]\nreturn %x")),
            "2:6: relu gives f32[4] and the text says f32[5]");
  EXPECT_EQ(error_of(in_function("%0 = compare %x, %x {direction=near}")),
            "2:21: attribute \"direction\" has the wrong kind of value");
  EXPECT_EQ(error_of(in_function("%0 = compare %x, %x {direction=lt, direction=lt}")),
            "2:36: attribute direction is given twice");
  EXPECT_EQ(error_of(in_function("%0 = parameter")),
            "2:6: parameters belong into the head of the function");
  EXPECT_EQ(error_of(in_function("%x = relu %x")), "2:1: value %x is defined twice");
  EXPECT_EQ(error_of(in_function("%0 = compare %x, %x {direction=lt}\nreturn %0")),
            "3:8: the result is bool[4] and the function's head says f32[4]");
  EXPECT_EQ(error_of(in_function("%0 = call %x {function=@g} : f32[4]\nreturn %0")),
            "2:6: there is no function @g");
  EXPECT_EQ(error_of(in_function("%0 = call %x {function=@f} : f32[4]\nreturn %0")),
            "1:7: function @f calls itself");
  EXPECT_EQ(error_of(in_function("%0 = relu %x loc(\"a")),
            "2:18: a string does not end on its line");
  EXPECT_EQ(error_of(in_function("%0 = relu %x")), "3:1: expected a value such as %0, or return");
}

TEST(ParserError, Constants) {
  EXPECT_EQ(error_of(in_function("%0 = constant")), "3:1: a constant needs {value=…}");
  EXPECT_EQ(error_of(in_function("%0 = constant {value=f32[2] [1]}")),
            "2:22: a constant of 2 elements lists 1");
  EXPECT_EQ(error_of(in_function("%0 = constant {value=i8[1] [128]}")), "2:29: \"128\" is no i8");
  EXPECT_EQ(error_of(in_function("%0 = constant {value=f32[] 1.5.}")), "2:28: \"1.5.\" is no f32");
  EXPECT_EQ(error_of(in_function("%0 = constant {value=f32[] nan(0x1)}")),
            "2:28: \"nan(0x1)\" is no f32");
  EXPECT_EQ(error_of(in_function("%0 = constant {value=f64[4294967296,4294967296] [1]}")),
            "2:22: a constant is too big");
  EXPECT_EQ(error_of(in_function("%0 = constant {value=f32[-1] []}")),
            "2:22: the shape of a constant consists of natural numbers");
  EXPECT_EQ(error_of(in_function("%0 = constant {value=f32[2] #12ab}")),
            "2:22: constant #00000000000012ab is not in the file of constants");
}

TEST(ParserError, NestingIsBounded) {
  EXPECT_NE(error_of("func @f(%x: " + std::string(100000, '(')).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("func @f(%x: f32[" + std::string(100000, '(')).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("func @f(%x: f32[" + std::string(100000, '-')).find("nested too deeply"),
            std::string::npos);
}

TEST(ParserError, DamagedTextNeverCrashes) {
  const std::string text = print(doubling_module()) + R"(
func @g(%x: f32[N,2], %arg1 "a b": (i64[], u8[N/2,max(N, 3)])) -> (f32[], bool[2]) results("a", "b") {
  %0 = constant {value=f32[] nan(0x7f800001)} : f32[] loc("c", "", made)
  %1 = constant {value=bool[2] [true,false]} : bool[2]
  %2 = tuple %0, %1
  %3 = get %2 {index=1} : bool[2]
  return %2
})";
  ASSERT_EQ(error_of(text), "no error");
  std::mt19937 random(3);
  const std::string alphabet = "()[]{}%@\"\\#=,:.-+*/0123456789abcfNx \n";
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged.erase(at, 1 + random() % 8);
          break;
        case 1:
          damaged[at] = static_cast<char>(random());
          break;
        case 2:
          damaged.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), 20));
          break;
      }
    }
    try {
      const Module module = parse_module(damaged);
      ++accepted;
      ASSERT_TRUE(equal(module, parse_module(print(module)))) << damaged;
    } catch (const CompileError& error) {
      const std::string message = error.what();
      ASSERT_NE(message.find(':'), std::string::npos) << message;
      ASSERT_TRUE(message[0] >= '1' && message[0] <= '9') << message;
    }
  }
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 2000);
}

}  // namespace
}  // namespace backcast
