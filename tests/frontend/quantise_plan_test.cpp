// Which values become integers when a network is quantised.
#include "frontend/quantise_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/graph/error.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

QuantisationPlan plan_of(ModelBuilder& m, const std::string& in_float = "-") {
  return plan_quantisation(m.model().graph,
                           [&](const OnnxNode& node) { return node.name == in_float; });
}

std::set<std::string> values_of(const QuantisationPlan& plan) {
  std::set<std::string> names;
  for (const QuantisationPlan::Value& value : plan.values) names.insert(value.name);
  return names;
}

const QuantisationPlan::Value& value_of(const QuantisationPlan& plan, const std::string& name) {
  for (const QuantisationPlan::Value& value : plan.values) {
    if (value.name == name) return value;
  }
  throw CompileError(name + " is not quantised");
}

void weights(ModelBuilder& m, const std::string& name, const std::vector<int64_t>& shape) {
  OnnxTensor tensor;
  tensor.name = name;
  tensor.data_type = onnx_type::kFloat;
  tensor.dims = shape;
  m.model().graph.initializers.push_back(tensor);
}

/// x [1,2,8,8] and the convolution `c1`, 1×1 with weights w.
ModelBuilder convolution() {
  ModelBuilder m;
  m.input("x", {"1", "2", "8", "8"});
  weights(m, "w", {2, 2, 1, 1});
  m.node("conv1", "Conv", {"x", "w"}, {"c1"});
  return m;
}

TEST(QuantisePlan, RectifiersComputeWithAccumulators) {
  ModelBuilder m = convolution();
  m.node("relu", "Relu", {"c1"}, {"r1"}).node("conv2", "Conv", {"r1", "w"}, {"y"}).output("y");
  const QuantisationPlan plan = plan_of(m);
  EXPECT_THAT(values_of(plan), UnorderedElementsAre("x", "r1"));
  EXPECT_EQ(plan.products.size(), 2u);
  EXPECT_EQ(plan.products[0].weight, 1u);
  EXPECT_THAT(plan.left, IsEmpty());
}

TEST(QuantisePlan, BiasesResidualsAndRectifiersFollowOneProduct) {
  ModelBuilder m = convolution();
  weights(m, "b", {2, 1, 1});
  m.node("conv2", "Conv", {"x", "w"}, {"c2"}).node("bias", "Add", {"c2", "b"}, {"b2"});
  m.node("sum", "Add", {"b2", "c1"}, {"s"}).node("relu", "Relu", {"s"}, {"r"});
  m.node("conv3", "Conv", {"r", "w"}, {"y"}).output("y");
  // c1 has to wait for the second product, which alone computes with its accumulators.
  EXPECT_THAT(values_of(plan_of(m)), UnorderedElementsAre("x", "c1", "r"));
}

TEST(QuantisePlan, FunctionsOfOneValueAreRoundedOnce) {
  ModelBuilder m = convolution();
  m.node("sigmoid", "Sigmoid", {"c1"}, {"g"}).node("mul", "Mul", {"c1", "g"}, {"silu"});
  m.node("conv2", "Conv", {"silu", "w"}, {"y"}).output("y");
  EXPECT_THAT(values_of(plan_of(m)), UnorderedElementsAre("x", "c1", "silu"));
}

TEST(QuantisePlan, FunctionsOfTwoValuesReadIntegers) {
  ModelBuilder m = convolution();
  m.node("pool", "GlobalAveragePool", {"c1"}, {"p"}).node("sigmoid", "Sigmoid", {"p"}, {"g"});
  m.node("mul", "Mul", {"c1", "g"}, {"s"}).node("conv2", "Conv", {"s", "w"}, {"y"}).output("y");
  EXPECT_THAT(values_of(plan_of(m)), UnorderedElementsAre("x", "c1", "p", "g", "s"));
}

TEST(QuantisePlan, MovedAndConcatenatedElementsKeepTheirFormat) {
  ModelBuilder m = convolution();
  m.node("pool", "MaxPool", {"c1"}, {"p"}, {ModelBuilder::integers("kernel_shape", {1, 1})});
  m.node("conv2", "Conv", {"x", "w"}, {"c2"});
  m.node("concat", "Concat", {"p", "c2"}, {"j"}, {ModelBuilder::integer("axis", 1)});
  weights(m, "w4", {2, 4, 1, 1});
  m.node("conv3", "Conv", {"j", "w4"}, {"y"}).output("y");
  const QuantisationPlan plan = plan_of(m);
  EXPECT_THAT(values_of(plan), UnorderedElementsAre("x", "c1", "p", "c2", "j"));
  EXPECT_EQ(plan.formats, 2u);
  for (const char* name : {"p", "c2", "j"}) {
    EXPECT_EQ(value_of(plan, name).format, value_of(plan, "c1").format) << name;
  }
}

TEST(QuantisePlan, WhatOtherNodesComputeStaysInFloatingPointBesideProducts) {
  ModelBuilder m;
  m.input("x", {"4", "2"});
  weights(m, "w", {2, 2});
  m.node("norm", "LpNormalization", {"x"}, {"n"}).node("dense", "MatMul", {"n", "w"}, {"d"});
  m.node("sum", "Add", {"n", "d"}, {"s"}).node("softmax", "Softmax", {"s"}, {"y"}).output("y");
  const QuantisationPlan plan = plan_of(m);
  EXPECT_THAT(values_of(plan), UnorderedElementsAre("n"));
  EXPECT_THAT(plan.values[0].readers, ElementsAre(1));  // the product, not the sum
}

TEST(QuantisePlan, ResultsOfTheModelAreNotRounded) {
  ModelBuilder m = convolution();
  m.node("sigmoid", "Sigmoid", {"c1"}, {"y"}).output("y");
  EXPECT_THAT(values_of(plan_of(m)), UnorderedElementsAre("x"));
}

TEST(QuantisePlan, PoolingReadsIntegersEvenAtTheEnd) {
  ModelBuilder m = convolution();
  m.node("pool", "GlobalAveragePool", {"c1"}, {"y"}).output("y");
  EXPECT_THAT(values_of(plan_of(m)), UnorderedElementsAre("x", "c1"));
}

TEST(QuantisePlan, TakesInBatchNormalization) {
  ModelBuilder m = convolution();
  for (const char* name : {"scale", "shift", "mean", "variance"}) weights(m, name, {2});
  m.node("norm", "BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, {"n"});
  m.node("relu", "Relu", {"n"}, {"r"}).node("conv2", "Conv", {"r", "w"}, {"y"}).output("y");
  const QuantisationPlan plan = plan_of(m);
  EXPECT_EQ(plan.products[0].norm, 1u);
  EXPECT_THAT(values_of(plan), UnorderedElementsAre("x", "r"));
}

TEST(QuantisePlan, SaysWhichProductsItLeaves) {
  ModelBuilder m = convolution();
  m.node("conv2", "Conv", {"c1", "w"}, {"c2"});
  m.node("mean", "ReduceMean", {"c2"}, {"f"}).node("conv3", "Conv", {"c2", "f"}, {"y"}).output("y");
  const QuantisationPlan plan = plan_of(m, "conv2");
  EXPECT_THAT(plan.left,
              ElementsAre("conv2 (Conv): as was asked", "conv3 (Conv): its weights are computed"));
  EXPECT_EQ(plan.products.size(), 1u);
}

TEST(QuantisePlan, LeavesHalvesAndWhatIsQuantisedAlready) {
  ModelBuilder m;
  m.input("x", {"2", "2"}, onnx_type::kFloat16).input("q", {"2", "2"}, onnx_type::kInt8);
  weights(m, "w", {2, 2});
  m.model().graph.initializers.back().data_type = onnx_type::kFloat16;
  weights(m, "scale", {});
  m.node("dense", "MatMul", {"x", "w"}, {"d"}).node("scores", "MatMul", {"d", "x"}, {"s"});
  m.node("dequantise", "DequantizeLinear", {"q", "scale"}, {"f"});
  m.node("product", "MatMul", {"f", "f"}, {"y"}).output("s").output("y");
  const QuantisationPlan plan = plan_of(m);
  EXPECT_THAT(plan.products, IsEmpty());
  EXPECT_THAT(plan.values, IsEmpty());
  EXPECT_THAT(plan.left, ElementsAre("dense (MatMul): its weights are no f32",
                                     "scores (MatMul): neither factor is known to be f32",
                                     "product (MatMul): it is quantised already"));
}

TEST(QuantisePlan, RowsOfATableAreNoConstants) {
  ModelBuilder m;
  m.input("ids", {"4"}, onnx_type::kInt64);
  weights(m, "table", {10, 2});
  weights(m, "w", {2, 2});
  m.node("rows", "Gather", {"table", "ids"}, {"e"}).node("dense", "MatMul", {"e", "w"}, {"y"});
  m.output("y");
  EXPECT_THAT(values_of(plan_of(m)), UnorderedElementsAre("e"));
}

TEST(QuantisePlan, SaysWhichGraphsItLeaves) {
  ModelBuilder body;
  body.node("dense", "MatMul", {"x", "w"}, {"a"}).output("a");
  OnnxAttribute branch;
  branch.name = "then_branch";
  branch.kind = OnnxAttribute::Kind::graph;
  branch.g = std::make_shared<const OnnxGraph>(body.model().graph);
  ModelBuilder m = convolution();
  weights(m, "w", {2, 2});
  m.input("which", {}, onnx_type::kBool).node("if", "If", {"which"}, {"y"}, {branch}).output("y");
  EXPECT_THAT(plan_of(m).left, ElementsAre("if (If): products within it"));
}

TEST(QuantisePlan, WeightsThatNodesComputeAreConstants) {
  ModelBuilder m;
  m.input("x", {"4", "2"});
  weights(m, "w", {2, 2});
  m.node("turn", "Transpose", {"w"}, {"t"}).node("dense", "MatMul", {"x", "t"}, {"y"});
  m.output("y");
  const QuantisationPlan plan = plan_of(m);
  EXPECT_THAT(values_of(plan), UnorderedElementsAre("x"));
  EXPECT_THAT(plan.computed, UnorderedElementsAre("t"));
  EXPECT_EQ(plan.products[0].weight, 1u);
}

/// x [3,1,2] and the layer `cell`, whose results are `names`.
ModelBuilder recurrence(const std::string& op, const std::vector<std::string>& names,
                        const std::vector<OnnxAttribute>& attributes = {}) {
  ModelBuilder m;
  m.input("x", {"3", "1", "2"}).input("h", {"1", "1", "2"});
  const int64_t rows = op == "LSTM" ? 8 : op == "GRU" ? 6 : 2;
  weights(m, "w", {1, rows, 2});
  weights(m, "r", {1, rows, 2});
  weights(m, "d", {2, 2});
  m.node("cell", op, {"x", "w", "r", "", "", "h"}, names, attributes);
  return m;
}

TEST(QuantisePlan, WhatCellsGiveHasTheirStatesFormat) {
  ModelBuilder m = recurrence("LSTM", {"y", "last", "c"});
  m.node("dense1", "MatMul", {"y", "d"}, {"a"}).node("dense2", "MatMul", {"c", "d"}, {"b"});
  m.output("a").output("b").output("last");
  const QuantisationPlan plan = plan_of(m);
  EXPECT_THAT(values_of(plan), UnorderedElementsAre("x", "y", "c"));
  ASSERT_EQ(plan.cells.size(), 1u);
  EXPECT_EQ(plan.cells[0].states, "y");
  EXPECT_EQ(plan.cells[0].initial, "h");
  EXPECT_EQ(value_of(plan, "y").format, plan.cells[0].format);
  EXPECT_NE(value_of(plan, "c").format, plan.cells[0].format);
  EXPECT_NE(value_of(plan, "x").format, plan.cells[0].format);
  EXPECT_EQ(plan.formats, 3u);
  std::vector<std::string> observed;
  for (const QuantisationPlan::Observed& value : plan.observed()) observed.push_back(value.name);
  EXPECT_THAT(observed, UnorderedElementsAre("x", "y", "c", "h"));
}

TEST(QuantisePlan, StatesThatTheFileLeavesOutAreNamed) {
  ModelBuilder m = recurrence("GRU", {"", "cell_states"});
  m.output("cell_states");
  const QuantisationPlan plan = plan_of(m);
  ASSERT_EQ(plan.cells.size(), 1u);
  EXPECT_FALSE(plan.cells[0].is_named);
  EXPECT_THAT(plan.cells[0].states, ::testing::Not("cell_states"));
}

TEST(QuantisePlan, SaysWhichCellsItLeaves) {
  const auto left = [](ModelBuilder m) { return plan_of(m).left; };
  EXPECT_THAT(left(recurrence("RNN", {"y"}, {ModelBuilder::real("clip", 1)})),
              ElementsAre("cell (RNN): it clips"));
  EXPECT_THAT(left(recurrence("LSTM", {"y"}, {ModelBuilder::integer("input_forget", 1)})),
              ElementsAre("cell (LSTM): its gates are coupled"));
  ModelBuilder m = recurrence("GRU", {"y"});
  m.model().graph.nodes[0].inputs[4] = "lengths";
  EXPECT_THAT(left(m), ElementsAre("cell (GRU): sequences have lengths of their own"));
  m.model().graph.nodes[0].inputs[1] = "computed";
  EXPECT_THAT(left(m), ElementsAre("cell (GRU): its weights are computed"));
}

}  // namespace
}  // namespace backcast
