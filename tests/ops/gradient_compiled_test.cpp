// The gradients of gradient_cases.h as compiled libraries, in f32 and f64: the code generator in
// process, and the C emission of all cases in one shared object, against the evaluator.
#include <gtest/gtest.h>

#include "ir/graph/evaluator.h"
#include "passes/graph/differentiate.h"
#include "tests/onnx/case_runner.h"
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

struct Tolerance {
  double relative, absolute;
};
/// The evaluator rounds after every operation, compiled code keeps some intermediate results.
Tolerance tolerance_of(ElementType element) {
  return element == ElementType::f64 ? Tolerance{1e-11, 1e-12} : Tolerance{1e-4, 4e-6};
}

void flatten_into(const Value& value, std::vector<Literal>& leaves) {
  if (!value.is_tuple) leaves.push_back(value.tensor);
  for (const Value& element : value.elements) flatten_into(element, leaves);
}

std::vector<Literal> flat(const std::vector<Value>& values) {
  std::vector<Literal> leaves;
  for (const Value& value : values) flatten_into(value, leaves);
  return leaves;
}

Value with_element(Value value, ElementType element) {
  for (Value& part : value.elements) part = with_element(part, element);
  if (value.is_tuple || value.tensor.element() != ElementType::f64) return value;
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.tensor.element_count(); ++i) {
    numbers.push_back(value.tensor.as_double(i));
  }
  return Literal::from_doubles(element, value.tensor.shape(), numbers);
}

/// The vjp of the case as the only function, with cotangents of one on kinks.
NodeCase compile(const GradientCase& c, size_t index, ElementType element,
                 const TargetInfo& target) {
  NodeCase result;
  result.name = identifier(c, index);
  try {
    Module module = add_vjp(gradient_module(c, element), "main");
    std::vector<Value> arguments;
    for (const Value& operand : c.operands) arguments.push_back(with_element(operand, element));
    const Value value = evaluate(module, module.function("main"), arguments);
    for (const Value& cotangent : random_like(float_leaves({value}), 17)) {
      arguments.push_back(cotangent);
    }
    Function vjp = module.function("main_vjp");
    module.functions.erase("main");
    module.functions.erase("main_vjp");
    vjp.name = "main";
    module.functions.emplace("main", std::move(vjp));
    const Value adjoints = evaluate(module, module.function("main"), arguments);
    result.sets.push_back({"set", flat(arguments), flat({adjoints})});
    CompiledModel& model = result.model;
    model.model_file = result.name;
    model.target = target;
    PipelineOptions pipeline;
    pipeline.name = result.name;
    model.result = run_pipeline(module, target, pipeline);
    model.abi = abi_of(model.result.program);
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

std::vector<NodeCase> compile_all(ElementType element) {
  const TargetInfo target = resolve_target("native");
  const GradientCases cases = all_gradient_cases();
  std::vector<NodeCase> compiled;
  for (size_t i = 0; i < cases.size(); ++i) {
    NodeCase one = compile(cases[i], i, element, target);
    if (one.error.empty() && one.sets[0].outputs.empty()) continue;  // only integers
    compiled.push_back(std::move(one));
  }
  return compiled;
}

bool close(double actual, double expected, const Tolerance& allowed) {
  if (std::isnan(expected) || std::isinf(expected) || std::isnan(actual)) {
    return actual == expected || (std::isnan(actual) && std::isnan(expected));
  }
  return std::fabs(actual - expected) <= allowed.absolute + allowed.relative * std::fabs(expected);
}

void expect(const NodeCase& c, const CaseResult& result, ElementType element) {
  const std::vector<Literal>& expected = c.sets[0].outputs;
  if (!result.error.empty() || result.outputs.size() != expected.size()) {
    ADD_FAILURE() << c.name << ": " << result.error;
    return;
  }
  for (size_t t = 0; t < expected.size(); ++t) {
    ASSERT_EQ(result.outputs[t].shape(), expected[t].shape()) << c.name;
    for (int64_t i = 0; i < expected[t].element_count(); ++i) {
      const double is = result.outputs[t].as_double(i), should = expected[t].as_double(i);
      EXPECT_TRUE(close(is, should, tolerance_of(element)))
          << c.name << ": adjoint " << t << "[" << i << "] is " << is << " instead of " << should;
    }
  }
}

class CompiledGradients : public testing::TestWithParam<ElementType> {};

TEST_P(CompiledGradients, AgreeWithTheEvaluator) {
  const std::vector<NodeCase> cases = compile_all(GetParam());
  std::vector<const NodeCase*> compiled;
  for (const NodeCase& c : cases) {
    if (!c.error.empty()) {
      ADD_FAILURE() << c.name << ": " << c.error;
      continue;
    }
    compiled.push_back(&c);
    expect(c, run_llvm(c, c.sets[0]), GetParam());
  }
  const std::vector<std::vector<CaseResult>> results = run_c_batch(compiled);
  for (size_t i = 0; i < compiled.size(); ++i) expect(*compiled[i], results[i][0], GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, CompiledGradients,
                         testing::Values(ElementType::f32, ElementType::f64),
                         [](const testing::TestParamInfo<ElementType>& info) {
                           return std::string(name_of(info.param));
                         });

}  // namespace
}  // namespace backcast
