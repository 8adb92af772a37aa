// Convolutions and products of many rows behind rectifiers that leave out factors of zero: the
// evaluator's results whatever the factors, row by row and in blocks, and both emitters' the same.
// Small caches make blocks of small shapes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "tests/passes/random_convolution.h"
#include "tests/passes/zero_factors.h"

namespace backcast {
namespace {

struct Conv {
  ConvShape shape;
  Form form;
};

// Words whole and in part, one and several; primes; borders; rows and blocks that do not divide.
const Conv kConvs[] = {
    {{1, 5, 5, 64, 64, 1, 1}, Form::blocks},  {{1, 7, 7, 96, 64, 1, 1}, Form::blocks},
    {{2, 3, 5, 67, 96, 1, 1}, Form::rows},    {{1, 11, 13, 32, 128, 1, 1}, Form::rows},
    {{1, 8, 8, 64, 64, 3, 1}, Form::blocks},  {{1, 9, 7, 48, 64, 3, 2}, Form::blocks},
    {{2, 6, 6, 33, 64, 3, 1}, Form::blocks},  {{1, 5, 17, 24, 80, 3, 1}, Form::none},
    {{1, 6, 5, 128, 64, 1, 1}, Form::blocks}, {{1, 4, 4, 8, 64, 5, 1}, Form::none},
    {{1, 2, 2, 64, 64, 3, 1}, Form::blocks},  {{0, 7, 7, 64, 64, 3, 1}, Form::none},
    {{0, 7, 7, 64, 64, 1, 1}, Form::none},    {{1, 6, 5, 128, 67, 1, 1}, Form::rows},
};

Module module_of(const Conv& conv, const std::string& type) {
  return residual_convolution(conv.shape, type, true);
}

std::vector<Literal> inputs_of(const Module& module, Factors kind) {
  std::vector<Literal> inputs = random_inputs(module);
  inputs[0] = rectifiable(inputs[0], kind);
  return inputs;
}

class NonzeroRows : public testing::TestWithParam<Conv> {};

TEST_P(NonzeroRows, LikeTheEvaluator) {
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    const bool wide = type == ElementType::f64;
    const Module module = module_of(GetParam(), wide ? "f64" : "f32");
    for (const char* name : {"x86-64", "x86-64-v3", "x86-64-v4", "wasm32"}) {
      for (const bool small : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name, wide ? "f64" : "f32", small));
        const TargetInfo& target = *find_target(name);
        const PipelineResult compiled = compile(module, small ? small_caches(target) : target);
        for (const Factors kind : {Factors::mixed, Factors::none, Factors::all, Factors::special}) {
          const std::vector<Literal> inputs = inputs_of(module, kind);
          const Literal found = loop::interpret(compiled.program, "run", inputs).at(0);
          expect_like(found, evaluate_main(module, inputs).at(0), wide ? 1e-12 : 2e-5);
        }
      }
    }
  }
}

TEST_P(NonzeroRows, AreChosen) {
  const Form form = GetParam().form;
  const Module module = module_of(GetParam(), "f32");
  const PipelineResult compiled = compile(module, small_caches(*find_target("x86-64-v3")));
  EXPECT_EQ(compiled.notes.skipping.size(), form != Form::none);
  const bool in_blocks = loop::print(compiled.program).find("alloc totals") != std::string::npos;
  EXPECT_EQ(in_blocks, form == Form::blocks);
  // Two instructions for a product and its sum weigh more than one that loads, and narrow vectors
  // make more of both.
  const size_t on_wasm = compile(module, *find_target("wasm32")).notes.skipping.size();
  EXPECT_TRUE(on_wasm == 1 || form == Form::none);
  // Tiles of rows take fewer instructions where loads are instructions of their own.
  EXPECT_EQ(compile(module, *find_target("cortex-a76")).notes.skipping.size(), 0);
  EXPECT_EQ(compile(module, *find_target("cortex-m4")).notes.skipping.size(), 0);
}

TEST_P(NonzeroRows, AreTheSameFromBothEmitters) {
  const Module module = module_of(GetParam(), "f32");
  for (const bool small : {false, true}) {
    const TargetInfo native = resolve_target("native");
    expect_close_and_equal(
        compiled_case(module, small ? "blocks" : "rows", small ? small_caches(native) : native, {}),
        2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Convolutions, NonzeroRows, testing::ValuesIn(kConvs),
                         [](const auto& info) { return info.param.shape.name(); });

/// What a residual that is never negative is added to is seldom zero.
TEST(NonzeroRowsOf, ResidualsAreFew) {
  const auto network = [](const std::string& shortcut) {
    std::mt19937 random(5);
    const std::string numbers = random_numbers(64 * 64, random);
    return parse_module(fmt::format(R"(
entry "run" @main
func @main(%x: f32[50,64]) -> f32[50,64] {{
  %w = constant {{value=f32[64,64] [{}]}}
  %p = dot_general %x, %w {{lhs_contract=[1], rhs_contract=[0]}}
  {}
  %q = dot_general %x, %w {{lhs_contract=[1], rhs_contract=[1]}}
  %a = add %q, %s
  %r = relu %a
  %y = dot_general %r, %w {{lhs_contract=[1], rhs_contract=[0]}}
  return %y
}})",
                                    numbers, shortcut));
  };
  const TargetInfo& target = *find_target("x86-64-v3");
  EXPECT_EQ(compile(network("%s = add %p, %p"), target).notes.skipping.size(), 1);
  EXPECT_EQ(compile(network("%s = relu %p"), target).notes.skipping.size(), 0);
}

}  // namespace
}  // namespace backcast
