// Quantised weights that learn: what they are in floating point, and what happens behind them.
#include "frontend/unquantise.h"

#include <cmath>

#include "ir/graph/error.h"
#include "tests/frontend/contrib_node.h"

namespace backcast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kScale = 0.25f;  // of x and of w, so that products are exact

void constant(ModelBuilder& m, const std::string& name, const Operand& value) {
  m.model().graph.initializers.push_back(to_tensor(name, *value.value));
}

/// x f32[2,2], quantised, times w i8[2,2] and b i32[2]; the sum `s` is for the test to use.
ModelBuilder dense() {
  ModelBuilder m(17);
  m.input("x", {"2", "2"});
  constant(m, "scale", f32({}, {kScale}));
  constant(m, "zero", i8({}, {0}));
  constant(m, "w", i8({2, 2}, {4, -8, 2, 6}));  // 1, -2; 0.5, 1.5
  constant(m, "b", i32({2}, {16, -16}));        // 1, -1
  constant(m, "b_scale", f32({}, {kScale * kScale}));
  m.node("qx", "QuantizeLinear", {"x", "scale", "zero"}, {"xq"});
  m.node("dx", "DequantizeLinear", {"xq", "scale", "zero"}, {"xd"});
  m.node("dw", "DequantizeLinear", {"w", "scale", "zero"}, {"wd"});
  m.node("db", "DequantizeLinear", {"b", "b_scale"}, {"bd"});
  m.node("mul", "MatMul", {"xd", "wd"}, {"p"});
  m.node("add", "Add", {"p", "bd"}, {"s"});
  return m;
}

/// `s` quantised by steps of 2 about `zero` and back: y.
ModelBuilder rounded(const Operand& zero) {
  ModelBuilder m = dense();
  constant(m, "s_scale", f32({}, {2}));
  constant(m, "s_zero", zero);
  m.node("qs", "QuantizeLinear", {"s", "s_scale", "s_zero"}, {"sq"});
  m.node("ds", "DequantizeLinear", {"sq", "s_scale", "s_zero"}, {"y"});
  m.output("y", {"2", "2"});
  return m;
}

Unquantised edited(ModelBuilder& m, const std::set<std::string>& names = {"w", "b"}) {
  const Unquantised edit = unquantise(m.model().graph, names, "");
  apply(edit, m.model().graph);
  return edit;
}

/// The model's result for an x whose last elements fall between two steps.
std::vector<double> result(const ModelBuilder& m) {
  return result_of(m.import(), {f32({2, 2}, {1, 0, 10.1, -3.9})});
}

TEST(Unquantise, WeightsAreThoseWithOneReader) {
  ModelBuilder m = rounded(i8({}, {0}));
  EXPECT_THAT(quantised_weights(m.model().graph), ElementsAre("w", "b"));
  m.node("again", "Cast", {"w"}, {"w_again"}, {ModelBuilder::integer("to", 1)});
  EXPECT_THAT(quantised_weights(m.model().graph), ElementsAre("b"));
  m.output("b", {"2"}, onnx_type::kInt32);
  EXPECT_THAT(quantised_weights(m.model().graph), IsEmpty());
}

TEST(Unquantise, ScalesThatAreComputedAreNotKnown) {
  ModelBuilder m(17);
  m.input("scale", {});
  constant(m, "w", i8({2}, {1, 2}));
  m.node("dw", "DequantizeLinear", {"w", "scale"}, {"y"}).output("y", {"2"});
  EXPECT_THAT(quantised_weights(m.model().graph), IsEmpty());
}

/// One DequantizeLinear of w i8[2,4]; both ways give the same numbers.
void expect_dequantised(const Operand& scale, const Operand& zero,
                        const std::vector<OnnxAttribute>& attributes) {
  ModelBuilder m(21);
  constant(m, "w", i8({2, 4}, {-128, -3, 0, 5, 127, 9, -7, 1}));
  constant(m, "scale", scale);
  constant(m, "zero", zero);
  m.node("dw", "DequantizeLinear", {"w", "scale", "zero"}, {"y"}, attributes);
  m.output("y", {"2", "4"});
  const std::vector<double> expected = result_of(m.import(), {});
  const Unquantised edit = edited(m, {"w"});
  ASSERT_EQ(edit.weights.size(), 1);
  EXPECT_EQ(edit.weights.at("w").as_doubles(), expected);
  EXPECT_EQ(result_of(m.import(), {}), expected);
}

TEST(Unquantise, ScalesOfAllOfAnAxisAndOfBlocks) {
  using M = ModelBuilder;
  expect_dequantised(f32({}, {0.1}), i8({}, {3}), {});
  expect_dequantised(f32({2}, {0.1, 0.7}), i8({2}, {3, -4}), {M::integer("axis", 0)});
  expect_dequantised(f32({4}, {0.1, 0.7, 3, 0.01}), i8({4}, {3, -4, 0, 9}), {});
  expect_dequantised(f32({4}, {0.1, 0.7, 3, 0.01}), i8({4}, {3, -4, 0, 9}),
                     {M::integer("axis", -1)});
  expect_dequantised(f32({2, 2}, {0.1, 0.7, 3, 0.01}), i8({2, 2}, {3, -4, 0, 9}),
                     {M::integer("axis", 1), M::integer("block_size", 2)});
  expect_dequantised(f32({2, 2}, {0.1, 0.7, 3, 0.01}), i8({2, 2}, {3, -4, 0, 9}),
                     {M::integer("axis", 1), M::integer("block_size", 3)});
}

TEST(Unquantise, NothingIsRoundedBehindLearningWeights) {
  ModelBuilder m = rounded(i8({}, {0}));
  EXPECT_THAT(result(m), ElementsAre(2, -4, 8, -28));  // multiples of 2, ties to even
  const Unquantised edit = edited(m);
  EXPECT_EQ(edit.kept, 0);
  // 10.1 and -3.9 are 10 and -4: in front of the weights everything is as it was.
  EXPECT_THAT(result(m), ElementsAre(2, -3, 9, -27));
}

/// Files of quantisation-aware training round weights that they hold in floating point.
TEST(Unquantise, NorAreWeightsInFloatingPointThemselves) {
  ModelBuilder m(17);
  m.input("x", {"3"}).output("y", {"3"});
  constant(m, "w", f32({3}, {0.3, -0.3, 2}));
  constant(m, "scale", f32({}, {1}));
  constant(m, "zero", u8({}, {0}));
  m.node("qw", "QuantizeLinear", {"w", "scale", "zero"}, {"wq"});
  m.node("dw", "DequantizeLinear", {"wq", "scale", "zero"}, {"wd"});
  m.node("mul", "Mul", {"x", "wd"}, {"p"});
  m.node("qp", "QuantizeLinear", {"p", "scale", "zero"}, {"pq"});
  m.node("dp", "DequantizeLinear", {"pq", "scale", "zero"}, {"y"});
  const std::vector<Operand> x = {f32({3}, {2, 2, 2})};
  EXPECT_THAT(result_of(m.import(), x), ElementsAre(0, 0, 4));
  edited(m, {"w"});
  EXPECT_THAT(result_of(m.import(), x), near({0.6, 0, 4}));
}

TEST(Unquantise, ABiasAloneMayLearn) {
  ModelBuilder m = rounded(i8({}, {0}));
  const Unquantised edit = edited(m, {"b"});
  EXPECT_EQ(edit.weights.count("w"), 0);
  EXPECT_THAT(result(m), ElementsAre(2, -3, 9, -27));
}

TEST(Unquantise, WhatAFormatCutsOffAtZeroIsARectifier) {
  ModelBuilder m = rounded(i8({}, {-128}));
  EXPECT_THAT(result(m), ElementsAre(2, 0, 8, 0));
  edited(m);
  EXPECT_THAT(result(m), ElementsAre(2, 0, 9, 0));
  ModelBuilder other = rounded(u8({}, {0}));
  edited(other);
  EXPECT_THAT(result(other), ElementsAre(2, 0, 9, 0));
}

TEST(Unquantise, OneRectifierIsEnough) {
  ModelBuilder m = dense();
  constant(m, "s_scale", f32({}, {2}));
  constant(m, "s_zero", i8({}, {-128}));
  m.node("q1", "QuantizeLinear", {"s", "s_scale", "s_zero"}, {"s1"});
  m.node("d1", "DequantizeLinear", {"s1", "s_scale", "s_zero"}, {"s2"});
  m.node("turn", "Transpose", {"s2"}, {"s3"});
  m.node("q2", "QuantizeLinear", {"s3", "s_scale", "s_zero"}, {"s4"});
  m.node("d2", "DequantizeLinear", {"s4", "s_scale", "s_zero"}, {"y"});
  m.output("y", {"2", "2"});
  edited(m);
  int rectifiers = 0;
  for (const OnnxNode& node : m.model().graph.nodes) rectifiers += node.op_type == "Relu";
  EXPECT_EQ(rectifiers, 1);
  EXPECT_THAT(result(m), ElementsAre(2, 9, 0, 0));
}

TEST(Unquantise, ValuesMayGrowBeyondTheFormat) {
  ModelBuilder m = rounded(i8({}, {120}));  // 14 is the largest
  const std::vector<Operand> x = {f32({2, 2}, {31, 0, 0, 0})};
  EXPECT_EQ(result_of(m.import(), x)[0], 14);
  edited(m);
  EXPECT_EQ(result_of(m.import(), x)[0], 32);
}

TEST(Unquantise, IntegersThatAreMovedAbout) {
  ModelBuilder m = dense();
  m.ints("shape", {4});
  m.node("qs", "QuantizeLinear", {"s", "scale", "zero"}, {"sq"});
  m.node("turn", "Transpose", {"sq"}, {"st"});
  m.node("flat", "Reshape", {"st", "shape"}, {"sf"});
  m.node("ds", "DequantizeLinear", {"sf", "scale", "zero"}, {"y"});
  m.output("y", {"4"});
  const Unquantised edit = edited(m);
  EXPECT_THAT(edit.values, ElementsAre("sf", "sq", "st"));
  EXPECT_THAT(result(m), ElementsAre(2, 9, -3, -27));
}

TEST(Unquantise, AnOutputOfIntegersBecomesFloat) {
  ModelBuilder m = dense();
  m.node("qs", "QuantizeLinear", {"s", "scale", "zero"}, {"y"});
  m.output("y", {"2", "2"}, onnx_type::kInt8);
  const Unquantised edit = edited(m);
  EXPECT_THAT(edit.values, ElementsAre("y"));
  EXPECT_EQ(m.import().module.function("main").result_type().tensor().element, ElementType::f32);
}

/// `sq` goes to a node that has to have integers, or to other steps: it stays as it is.
void expect_kept(ModelBuilder& m) {
  const std::vector<double> before = result(m);
  const Unquantised edit = edited(m);
  EXPECT_EQ(edit.kept, 1);
  EXPECT_THAT(edit.values, IsEmpty());
  EXPECT_EQ(result(m), before);
}

TEST(Unquantise, IntegersThatAreComputedWithStay) {
  ModelBuilder m = rounded(i8({}, {0}));
  m.node("product", "MatMulInteger", {"sq", "sq"}, {"z"});
  m.model().graph.outputs.clear();
  m.output("z", {"2", "2"}, onnx_type::kInt32);
  expect_kept(m);
}

TEST(Unquantise, IntegersReadInOtherStepsStay) {
  ModelBuilder m = dense();
  m.node("qs", "QuantizeLinear", {"s", "scale", "zero"}, {"sq"});
  m.node("ds", "DequantizeLinear", {"sq", "b_scale", "zero"}, {"y"});
  m.output("y", {"2", "2"});
  expect_kept(m);
}

TEST(Unquantise, WhatDoesNotDependOnTheWeightsStays) {
  ModelBuilder m = rounded(i8({}, {0}));
  const Unquantised edit = edited(m);
  EXPECT_EQ(m.model().graph.nodes[0].op_type, "QuantizeLinear");
  EXPECT_EQ(edit.nodes.size(), 4);  // dw, db, qs, ds
}

}  // namespace
}  // namespace backcast
