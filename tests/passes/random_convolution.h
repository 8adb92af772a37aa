// What tests of schedules for convolutions share: random weights and inputs, the judge, and a case
// compiled for this host.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "tests/onnx/case_runner.h"

namespace backcast {

/// `count` numbers between -1 and 1 as the text of a constant.
inline std::string random_numbers(int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<double> real(-1, 1);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}", i ? "," : "", static_cast<float>(real(random)));
  }
  return text;
}

/// A convolution with an odd kernel and as much padding as keeps the extents with stride 1.
struct ConvShape {
  int64_t batch, rows, columns, channels, features, kernel, stride;
  std::string name() const {
    return fmt::format("n{}_{}x{}_c{}_f{}_k{}_s{}", batch, rows, columns, channels, features,
                       kernel, stride);
  }
};

/// relu(conv(x, w) + r) with random weights w or, with `relu_first`, conv(relu(x), w) + r; channels
/// last.
inline Module residual_convolution(const ConvShape& c, const std::string& type,
                                   bool relu_first = false) {
  const int64_t pad = c.kernel / 2;
  const auto extent = [&](int64_t in) { return (in + 2 * pad - c.kernel) / c.stride + 1; };
  const std::string out =
      fmt::format("{}[{},{},{},{}]", type, c.batch, extent(c.rows), extent(c.columns), c.features);
  std::mt19937 random(7);
  return parse_module(fmt::format(
      R"(
entry "run" @main
func @main(%x: {0}[{1},{2},{3},{4}], %r: {5}) -> {5} {{
  {11}
  %w = constant {{value={0}[{6},{4},{7},{7}] [{8}]}}
  %c = conv %{12}, %w {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[{9},{9}], pad_low=[{10},{10}], pad_high=[{10},{10}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %s = add %c, %r
  {13}
}})",
      type, c.batch, c.rows, c.columns, c.channels, out, c.features, c.kernel,
      random_numbers(c.features * c.channels * c.kernel * c.kernel, random), c.stride, pad,
      relu_first ? "%z = relu %x" : "", relu_first ? "z" : "x",
      relu_first ? "return %s" : "%y = relu %s\n  return %y"));
}

using Sizes = std::map<std::string, int64_t>;

/// One value between -1 and 1 per element of each parameter of `main`.
inline std::vector<Literal> random_inputs(const Module& module, const Sizes& sizes = {}) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Literal> inputs;
  const Function& main = module.function("main");
  for (const ValueId id : main.params) {
    const TensorType& type = main.type(id).tensor();
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(dim.evaluate(sizes));
    std::vector<double> values(static_cast<size_t>(type.element_count().evaluate(sizes)));
    for (double& value : values) value = real(random);
    inputs.push_back(Literal::from_doubles(type.element, shape, values));
  }
  return inputs;
}

/// Relative to the largest expected element.
inline double error_of(const Literal& actual, const Literal& expected) {
  EXPECT_EQ(actual.shape(), expected.shape());
  double worst = 0, largest = 1e-30;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    largest = std::max(largest, std::fabs(expected.as_double(i)));
    worst = std::max(worst, std::fabs(actual.as_double(i) - expected.as_double(i)));
  }
  return worst / largest;
}

/// The module compiled for `target`, which this host runs, with random inputs and what the
/// evaluator makes of them.
inline NodeCase compiled_case(const Module& module, std::string name, TargetInfo target,
                              PipelineOptions options, const Sizes& sizes = {}) {
  NodeCase one;
  one.name = options.name = one.model.model_file = std::move(name);
  const std::vector<Literal> inputs = random_inputs(module, sizes);
  one.sets.push_back({"set", inputs, evaluate_main(module, inputs)});
  one.model.target = std::move(target);
  one.model.result = run_pipeline(module, one.model.target, options);
  one.model.abi = abi_of(one.model.result.program);
  return one;
}

/// LLVM's results within `bound` of the evaluator's, and C's the same to the bit.
inline void expect_close_and_equal(const NodeCase& one, double bound) {
  const auto from_c = run_c_batch({&one});
  const CaseResult llvm = run_llvm(one, one.sets[0]);
  ASSERT_EQ(llvm.error, "");
  ASSERT_EQ(from_c[0][0].error, "");
  for (size_t i = 0; i < llvm.outputs.size(); ++i) {
    EXPECT_LT(error_of(llvm.outputs[i], one.sets[0].outputs[i]), bound) << "result " << i;
  }
  EXPECT_EQ(llvm.outputs, from_c[0][0].outputs);
}

/// The program for `target`, interpreted, has the evaluator's results to the bit.
inline void expect_exact_on(const char* target, const Module& module,
                            const std::vector<Literal>& inputs) {
  PipelineOptions options;
  options.round_trip = true;
  const PipelineResult result = run_pipeline(module, *find_target(target), options);
  EXPECT_EQ(loop::interpret(result.program, "run", inputs), evaluate_main(module, inputs))
      << target;
}

/// Both emitters' code, run on this host, has the evaluator's results to the bit.
inline void expect_exact_when_compiled(const Module& module, std::vector<Literal> inputs) {
  NodeCase one = compiled_case(module, "exact", resolve_target("native"), {});
  one.sets[0].outputs = evaluate_main(module, inputs);
  one.sets[0].inputs = std::move(inputs);
  const auto from_c = run_c_batch({&one});
  const CaseResult llvm = run_llvm(one, one.sets[0]);
  ASSERT_EQ(llvm.error, "");
  ASSERT_EQ(from_c[0][0].error, "");
  EXPECT_EQ(llvm.outputs, one.sets[0].outputs);
  EXPECT_EQ(from_c[0][0].outputs, one.sets[0].outputs);
}

}  // namespace backcast
