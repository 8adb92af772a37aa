// Every operator has documentation and at least one case, and every case infers and evaluates as
// worked out by hand.
#include <gtest/gtest.h>

#include <set>

#include "ir/graph/evaluator.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

class OpCaseTest : public testing::TestWithParam<OpCase> {};

TEST_P(OpCaseTest, InfersAndEvaluates) {
  const OpCase& c = GetParam();
  std::vector<Type> types;
  for (const Value& operand : c.operands) types.push_back(type_of(operand));
  const Type inferred = infer(*c.op, types, c.attrs, c.module);
  if (c.module.symbols.empty()) {
    EXPECT_EQ(inferred.to_string(), type_of(c.expected).to_string());
  } else {  // the value tells how large it is
    SymbolValues symbols;
    EXPECT_EQ(inferred.tensor().element, c.expected.tensor.element());
    EXPECT_TRUE(bind_symbols(inferred.tensor(), c.expected.tensor.shape(), symbols));
    EXPECT_EQ(symbols.size(), c.module.symbols.size());
  }
  EXPECT_EQ(difference(run(*c.op, c.operands, c.attrs, c.module), c.expected, c.tolerance), "");
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  std::string name = fmt::format("{}_{}_{}", info.index, info.param.op->name, info.param.what);
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, OpCaseTest, testing::ValuesIn(all_cases()), case_name);

TEST(Ops, EveryOperatorHasACase) {
  std::set<std::string_view> covered = {"parameter"};  // below: it is never evaluated
  for (const OpCase& c : all_cases()) covered.insert(c.op->name);
  for (const OpDef* op : all_ops()) EXPECT_TRUE(covered.contains(op->name)) << op->name;
}

TEST(Ops, EveryOperatorIsDocumentedAndFound) {
  std::set<std::string_view> names;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_GT(op->documentation.size(), 10u) << op->name;
    EXPECT_EQ(op->documentation.back(), '.') << op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->evaluate, nullptr) << op->name;
    EXPECT_GE(op->min_operands, 0) << op->name;
    EXPECT_TRUE(op->max_operands == -1 || op->max_operands >= op->min_operands) << op->name;
    EXPECT_EQ(find_op(op->name), op);
  }
  EXPECT_EQ(find_op("softmax"), nullptr);
  EXPECT_EQ(find_op(""), nullptr);
}

TEST(Ops, ParameterIsNeitherInferredNorEvaluated) {
  EXPECT_THROW(infer(ops::parameter, {}, {}), InternalError);
  const Module module;
  Node node;
  node.op = &ops::parameter;
  node.attrs = ParameterAttrs{"x", 0};
  const SymbolValues symbols;
  EXPECT_THROW(ops::parameter.evaluate({module, symbols, node, {}}), InternalError);
}

TEST(Ops, WrongNumberOfOperandsIsAnError) {
  const Type x = TensorType{ElementType::f32, {2}};
  for (const OpDef* op : all_ops()) {
    if (op->name == "parameter") continue;
    if (op->min_operands > 0) {
      const std::vector<Type> few(static_cast<size_t>(op->min_operands - 1), x);
      EXPECT_NE(infer_error(*op, few, {}).find("operands"), std::string::npos) << op->name;
    }
    if (op->max_operands >= 0) {
      const std::vector<Type> many(static_cast<size_t>(op->max_operands + 1), x);
      EXPECT_NE(infer_error(*op, many, {}).find("operands"), std::string::npos) << op->name;
    }
  }
}

TEST(Ops, TuplesAreNoTensors) {
  const Type pair = Type::tuple({TensorType{ElementType::f32, {2}}});
  for (const OpDef* op : all_ops()) {
    if (op->min_operands == 0 || op->name == "get") continue;
    const std::vector<Type> operands(static_cast<size_t>(op->min_operands), pair);
    EXPECT_NE(infer_error(*op, operands, {}), "no error") << op->name;
  }
}

}  // namespace
}  // namespace backcast
