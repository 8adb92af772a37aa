// The gradient of every operator: reverse mode against differences, reverse over reverse against
// differences of reverse, forward against reverse.
#include <gtest/gtest.h>

#include <set>

#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "passes/graph/differentiate.h"
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

class GradientTest : public testing::TestWithParam<GradientCase> {};

TEST_P(GradientTest, ReverseMode) {
  const GradientCase& c = GetParam();
  const Module module = add_vjp(gradient_module(c), "main");
  verify(module, "vjp");
  if (c.adjoints.empty()) {
    EXPECT_EQ(check_vjp(module, "main", c.operands), "");
    return;
  }
  const Value value = evaluate(module, module.function("main"), c.operands);
  std::vector<Value> arguments = c.operands;
  for (const Literal& result : float_leaves({value})) {
    const std::vector<double> ones(static_cast<size_t>(result.element_count()), 1);
    arguments.push_back(Literal::from_doubles(result.element(), result.shape(), ones));
  }
  const Value found = evaluate(module, module.function("main_vjp"), arguments);
  EXPECT_EQ(difference(found, Value::make_tuple(c.adjoints), 1e-12), "");
}

TEST_P(GradientTest, ReverseOverReverse) {
  const GradientCase& c = GetParam();
  const Module module = add_vjp(add_vjp(gradient_module(c), "main"), "main_vjp");
  verify(module, "vjp of vjp");
  if (!c.adjoints.empty()) return;
  const Value value = evaluate(module, module.function("main"), c.operands);
  std::vector<Value> arguments = c.operands;
  for (const Value& cotangent : random_like(float_leaves({value}), 5)) {
    arguments.push_back(cotangent);
  }
  EXPECT_EQ(check_vjp(module, "main_vjp", arguments), "");
}

TEST_P(GradientTest, ForwardMode) {
  const GradientCase& c = GetParam();
  const Module module = add_jvp(add_vjp(gradient_module(c), "main"), "main");
  verify(module, "jvp");
  if (c.adjoints.empty()) {
    EXPECT_EQ(check_jvp(module, "main", c.operands), "");
  }
}

std::string case_name(const testing::TestParamInfo<GradientCase>& info) {
  return identifier(info.param, info.index);
}

INSTANTIATE_TEST_SUITE_P(All, GradientTest, testing::ValuesIn(all_gradient_cases()), case_name);

TEST(Gradients, EveryOperatorHasACaseOrAReason) {
  std::set<std::string_view> covered = {"parameter"};  // it is in every case
  for (const GradientCase& c : all_gradient_cases()) covered.insert(c.op->name);
  for (const OpDef* op : all_ops()) {
    if (op->gradient.rule() != nullptr) {
      EXPECT_TRUE(covered.contains(op->name)) << op->name << " has a gradient and no case";
      continue;
    }
    EXPECT_GT(op->gradient.reason().size(), 5u) << op->name;
    EXPECT_NE(op->gradient.reason(), "not differentiated") << op->name;
  }
}

}  // namespace
}  // namespace backcast
