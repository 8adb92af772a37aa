// Kernels that meet subnormal numbers take them for zero where they are slow, and only there; the
// caller's floating-point environment stays.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

constexpr int64_t kSum = 24, kColumns = 20, kFaint = 3;

/// x·w, where column kFaint of w is `weight` and all else is one.
Module product(double weight) {
  std::string numbers;
  for (int64_t i = 0; i < kSum * kColumns; ++i) {
    numbers += fmt::format("{}{}", i ? "," : "", i % kColumns == kFaint ? weight : 1);
  }
  return parse_module(fmt::format(R"(
entry "run" @main
func @main(%x: f32[2,{0}]) -> f32[2,{1}] {{
  %w = constant {{value=f32[{0},{1}] [{2}]}}
  %y = dot_general %x, %w {{lhs_contract=[1], rhs_contract=[0]}}
  return %y
}})",
                                  kSum, kColumns, numbers));
}

bool flushes(const Module& module, const char* target) {
  PipelineOptions options;
  options.round_trip = true;
  const PipelineResult result = run_pipeline(module, *find_target(target), options);
  bool any = false;
  for (const auto& [name, kernel] : result.program.kernels) any = any || kernel.flushes;
  return any;
}

TEST(FlushSubnormals, WhereConstantsAreFaint) {
  for (const char* target : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
    EXPECT_TRUE(flushes(product(1e-39), target)) << target;
    EXPECT_TRUE(flushes(product(-1e-31), target)) << target;
    EXPECT_FALSE(flushes(product(1e-20), target)) << target;
    EXPECT_FALSE(flushes(product(0), target)) << target;
  }
  for (const char* target : {"aarch64", "cortex-m4", "rv64gcv-256"}) {
    EXPECT_FALSE(flushes(product(1e-39), target)) << target;
  }
}

TEST(FlushSubnormals, FaintColumnsAreZeroAndTheEnvironmentStays) {
  const TargetInfo host = resolve_target("native");
  NodeCase one = compiled_case(product(1e-39), "faint", host, {});
  Literal& expected = one.sets[0].outputs[0];
  std::vector<double> values;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const bool is_zero = host.slow_subnormals && i % kColumns == kFaint;
    values.push_back(is_zero ? 0 : expected.as_double(i));
  }
  EXPECT_NE(expected.as_double(kFaint), 0);
  const CaseResult llvm = run_llvm(one, one.sets[0]);
  volatile float smallest = 0x1p-126f;
  EXPECT_NE(smallest / 2, 0) << "the library left the environment changed";
  const auto from_c = run_c_batch({&one});
  ASSERT_EQ(llvm.error, "");
  ASSERT_EQ(from_c[0][0].error, "");
  EXPECT_EQ(llvm.outputs, from_c[0][0].outputs);
  for (size_t i = 0; i < values.size(); ++i) {
    const double found = llvm.outputs[0].as_double(static_cast<int64_t>(i));
    EXPECT_NEAR(found, values[i], 1e-5 * std::fabs(values[i])) << i;
  }
}

}  // namespace
}  // namespace backcast
