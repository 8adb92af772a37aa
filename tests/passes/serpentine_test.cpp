// Weights that a loop reads in every trip, walked through in turns: the same bits in either order,
// by the interpreter, C and LLVM.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

/// h = tanh(row + h·w/units) for every row, with all h; `reversed`: from the last row on.
Module recurrence(int64_t units, bool reversed) {
  std::mt19937 random(5);
  return parse_module(fmt::format(
      R"(
entry "run" @main
func @cell(%h: f32[1,{0}], %row: f32[1,{0}], %w: f32[{0},{0}]) -> (f32[1,{0}], f32[1,{0}]) {{
  %p = dot_general %h, %w {{lhs_contract=[1], rhs_contract=[0]}}
  %c = constant {{value=f32[] {0}}}
  %u = broadcast %c {{shape=[1,{0}], dims=[]}}
  %q = div %p, %u
  %s = add %q, %row
  %n = tanh %s
  %r = tuple %n, %n
  return %r
}}
func @main(%x: f32[5,1,{0}], %h: f32[1,{0}]) -> f32[5,1,{0}] {{
  %trips = constant {{value=i64[] 5}}
  %w = constant {{value=f32[{0},{0}] [{1}]}}
  %s = scan %trips, %h, %x, %w {{body=@cell, carries=1, xs=1, length=5{2}}}
  %y = get %s {{index=1}}
  return %y
}})",
      units, random_numbers(units * units, random), reversed ? ", reverse=true" : ""));
}

TargetInfo host_with_second_cache(int64_t bytes) {
  TargetInfo target = resolve_target("native");
  target.l2_bytes = bytes;
  return target;
}

bool takes_turns(const loop::Program& program) {
  return std::ranges::any_of(program.kernels, [](const auto& kernel) {
    return kernel.first.find("_turns") != std::string::npos;
  });
}

TEST(Serpentine, TheSameBitsInEitherOrder) {
  for (const int64_t units : {256, 401}) {
    for (const bool reversed : {false, true}) {
      const Module module = recurrence(units, reversed);
      PipelineOptions options;
      options.round_trip = true;
      const NodeCase small =
          compiled_case(module, "small", host_with_second_cache(16 << 10), options);
      const NodeCase large =
          compiled_case(module, "large", host_with_second_cache(64 << 20), options);
      ASSERT_TRUE(takes_turns(small.model.result.program)) << units;
      ASSERT_FALSE(takes_turns(large.model.result.program)) << units;
      expect_close_and_equal(small, 1e-5);
      const CaseResult turned = run_llvm(small, small.sets[0]);
      const CaseResult straight = run_llvm(large, large.sets[0]);
      ASSERT_EQ(turned.error + straight.error, "");
      EXPECT_EQ(turned.outputs, straight.outputs) << units;
    }
  }
}

}  // namespace
}  // namespace backcast
