// The graphs inside of If, Loop and Scan: what they take from around them, what bounds a loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "ir/ops/ops.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using ::testing::HasSubstr;

constexpr auto graph = ModelBuilder::body;

const Node* find_op(const ImportedModel& model, const OpDef& op) {
  for (const Node& node : model.module.function("main").nodes) {
    if (node.op == &op) return &node;
  }
  return nullptr;
}

/// x ← x + step while x < limit; stacks x before each trip when told.
ModelBuilder loop(bool stacks, bool counted) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool).input("x", {});
  body.node("add", "Add", {"x", "step"}, {"next"}).node("less", "Less", {"next", "limit"}, {"on"});
  body.output("on", {}, onnx_type::kBool).output("next", {});
  if (stacks) body.node("same", "Identity", {"x"}, {"row"}).output("row", {});
  ModelBuilder m;
  m.input("start", {}).input("step", {}).input("limit", {});
  if (counted) m.input("n", {}, onnx_type::kInt64);
  m.output("last", {});
  std::vector<std::string> outputs{"last"};
  if (stacks) {
    m.output("rows", {"?"});
    outputs.push_back("rows");
  }
  m.node("loop", "Loop", {counted ? "n" : "", "", "start"}, outputs, {graph("body", body)});
  return m;
}

Value scalar(double value) { return Literal::scalar(ElementType::f32, value); }

TEST(Loops, WithoutRowsNeedNoBound) {
  const ImportedModel model = loop(false, false).import();
  verify(model.module);
  const Value result =
      evaluate(model.module, model.module.function("main"), {scalar(1), scalar(2), scalar(10)});
  EXPECT_EQ(result.tensor.as_double(0), 11);
}

TEST(Loops, RowsNeedABound) {
  EXPECT_THAT(complaint_of(loop(true, true)), HasSubstr("node \"loop\" (Loop)"));
  EXPECT_THAT(complaint_of(loop(true, true)), HasSubstr("--max-trips"));
  ImportOptions options;
  options.max_trips = 6;
  const ImportedModel model = loop(true, true).import(options);
  verify(model.module);
  EXPECT_EQ(model.module.function("main").result_type().to_string(), "(f32[], f32[6])");
  const Value result = evaluate(model.module, model.module.function("main"),
                                {scalar(1), scalar(2), scalar(10), Literal::from_ints({}, {3})});
  EXPECT_EQ(result.elements[0].tensor.as_double(0), 7);
  std::vector<double> rows;
  for (int64_t i = 0; i < 6; ++i) rows.push_back(result.elements[1].tensor.as_double(i));
  EXPECT_EQ(rows, (std::vector<double>{1, 3, 5, 0, 0, 0}));
}

/// As TensorFlow's loops come: no number of trips, the condition compares counters that are
/// carried. Stacks x, and gives the counter as well.
ModelBuilder counting_loop(const std::string& limit) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool);
  body.input("at", {"1"}, onnx_type::kInt64).input("x", {});
  body.node("count", "Add", {"at", "two"}, {"on"}).node("less", "Less", {"on", limit}, {"less"});
  body.node("and", "And", {"less", "go"}, {"again"}).node("add", "Add", {"x", "x"}, {"next"});
  body.node("same", "Identity", {"x"}, {"row"}).output("again", {}, onnx_type::kBool);
  body.output("on", {"1"}, onnx_type::kInt64).output("next", {}).output("row", {});
  ModelBuilder m;
  m.ints("zero", {0}).ints("two", {2}).ints("seven", {7});
  m.ints("most", {INT64_MAX}).input("x", {}).input("data", {}, onnx_type::kInt64);
  m.output("last", {}).output("rows", {"?"});
  m.node("loop", "Loop", {"most", "", "zero", "x"}, {"at", "last", "rows"}, {graph("body", body)});
  return m;
}

TEST(Loops, TripsUpToAConstantAreCounted) {
  const ImportedModel model = counting_loop("seven").import();
  verify(model.module);
  EXPECT_EQ(model.module.function("main").result_type().to_string(), "(f32[], f32[4])");
  EXPECT_FALSE(find_op(model, ops::scan)->attrs.as<ScanAttrs>().conditional);
  const Value result = evaluate(model.module, model.module.function("main"),
                                {scalar(3), Literal::from_ints({}, {0})});
  EXPECT_EQ(result.elements[0].tensor.as_double(0), 48);
  EXPECT_EQ(result.elements[1].tensor.as_doubles(), (std::vector<double>{3, 6, 12, 24}));
}

TEST(Loops, TripsUpToDataAreNotCounted) {
  EXPECT_THAT(complaint_of(counting_loop("data")), HasSubstr("--max-trips"));
}

/// x ← x * w, w and a shape are handed on; `outside` is what the body sees as its `w`.
ModelBuilder handing_on(const std::string& outside, const std::string& inner_name) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool).input("x", {"3"});
  body.input(inner_name, {"3"}).input("to", {"2"}, onnx_type::kInt64);
  body.node("mul", "Mul", {"x", inner_name}, {"next"}).node("same", "Identity", {"to"}, {"to_on"});
  body.node("shape", "Reshape", {"next", "to"}, {"row"});
  body.output("go", {}, onnx_type::kBool).output("next", {"3"}).output(inner_name, {"3"});
  body.output("to_on", {"2"}, onnx_type::kInt64).output("row", {"1", "3"});
  ModelBuilder m;
  m.ints("n", {4}).ints("flat", {1, 3}).input("x", {"3"}).input(outside, {"3"});
  m.output("last", {"3"}).output("kept", {"3"}).output("rows", {"4", "1", "3"});
  m.node("loop", "Loop", {"n", "", "x", outside, "flat"}, {"last", "kept", "to", "rows"},
         {graph("body", body)});
  return m;
}

TEST(Loops, StatesThatAreHandedOnAreNotCarried) {
  const ImportedModel model = handing_on("weight", "w").import();
  verify(model.module);
  const Node* scan = find_op(model, ops::scan);
  ASSERT_NE(scan, nullptr);
  EXPECT_EQ(scan->attrs.as<ScanAttrs>().carries, 3);  // condition, number, x
  const Value x = Literal::from_doubles(ElementType::f32, {3}, {1, 2, 3});
  const Value w = Literal::from_doubles(ElementType::f32, {3}, {2, 1, 0});
  const Value result = evaluate(model.module, model.module.function("main"), {x, w});
  EXPECT_EQ(result.elements[0].tensor.as_doubles(), (std::vector<double>{16, 2, 0}));
  EXPECT_EQ(result.elements[1].tensor.as_doubles(), (std::vector<double>{2, 1, 0}));
  EXPECT_EQ(result.elements[2].tensor.as_double(3), 4);
}

TEST(Loops, WhatIsHandedOnKeepsItsValueBesideAnotherOfItsName) {
  // The body gives another "next" than the one outside.
  const ImportedModel model = handing_on("next", "w").import();
  verify(model.module);
  const Value x = Literal::from_doubles(ElementType::f32, {3}, {1, 2, 3});
  const Value w = Literal::from_doubles(ElementType::f32, {3}, {2, 1, 0});
  const Value result = evaluate(model.module, model.module.function("main"), {x, w});
  EXPECT_EQ(result.elements[0].tensor.as_doubles(), (std::vector<double>{16, 2, 0}));
}

TEST(Loops, ConstantTripsAreTheLength) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool).input("x", {"3"});
  body.node("mul", "Mul", {"x", "weight"}, {"next"}).node("same", "Identity", {"go"}, {"on"});
  body.node("shape", "Reshape", {"next", "flat"}, {"row"});
  body.output("on", {}, onnx_type::kBool).output("next", {"3"}).output("row", {"1", "3"});
  ModelBuilder m;
  m.ints("n", {4}).ints("flat", {1, 3}).input("x", {"3"}).input("weight", {"3"});
  m.output("last", {"3"}).output("rows", {"4", "1", "3"});
  m.node("loop", "Loop", {"n", "", "x"}, {"last", "rows"}, {graph("body", body)});
  const ImportedModel model = m.import();
  verify(model.module);
  EXPECT_EQ(model.module.function("main").result_type().to_string(), "(f32[3], f32[4,1,3])");
  const Node* scan = find_op(model, ops::scan);
  ASSERT_NE(scan, nullptr);
  EXPECT_FALSE(scan->attrs.as<ScanAttrs>().conditional);
  // The shape is known and therefore no operand; the weight is one.
  EXPECT_EQ(scan->operands.size(), 5u);
}

TEST(Loops, ComplaintsNameTheNodeInside) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool).input("x", {"3"});
  body.node("odd", "Unheard", {"x"}, {"next"}).output("go", {}, onnx_type::kBool);
  body.output("next", {"3"});
  ModelBuilder m;
  m.ints("n", {4}).input("x", {"3"}).output("y", {"3"});
  m.node("loop", "Loop", {"n", "", "x"}, {"y"}, {graph("body", body)});
  EXPECT_THAT(complaint_of(m), HasSubstr("node \"loop/odd\" (Unheard)"));
}

/// x ← x, x, so many times.
ModelBuilder growing(bool counted) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool).input("x", {"3"});
  body.node("cat", "Concat", {"x", "x"}, {"next"}, {ModelBuilder::integer("axis", 0)});
  body.output("go", {}, onnx_type::kBool).output("next", {"6"});
  ModelBuilder m;
  if (counted) m.ints("n", {4});
  if (!counted) m.input("n", {}, onnx_type::kInt64);
  m.input("x", {"3"}).output("y", {"?"});
  m.node("loop", "Loop", {"n", "", "x"}, {"y"}, {graph("body", body)});
  return m;
}

TEST(Loops, ACarriedShapeGrowsTripByTrip) {
  const ImportedModel model = growing(true).import();
  verify(model.module);
  EXPECT_EQ(model.module.function("main").result_type().to_string(), "f32[48]");
}

TEST(Loops, ACarriedShapeStaysWhereTripsAreUnknown) {
  EXPECT_THAT(complaint_of(growing(false)), HasSubstr("a carry keeps its type"));
}

/// y: x's elements before the place that is the number of the trip, summed up, one row per trip.
TEST(Loops, ASliceMayEndWhereTheTripSays) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool);
  body.node("end", "Unsqueeze", {"i", "zero"}, {"end"});
  body.node("slice", "Slice", {"x", "zero", "end"}, {"part"});
  body.node("sum", "ReduceSum", {"part"}, {"row"}, {ModelBuilder::integer("keepdims", 0)});
  body.output("go", {}, onnx_type::kBool).output("row", {});
  ModelBuilder m;
  m.ints("n", {4}).ints("zero", {0}).input("x", {"3"}).output("y", {"4"});
  m.node("loop", "Loop", {"n", ""}, {"y"}, {graph("body", body)});
  const ImportedModel model = m.import();
  verify(model.module);
  const Value x = Literal::from_doubles(ElementType::f32, {3}, {1, 2, 4});
  const Value result = evaluate(model.module, model.module.function("main"), {x});
  EXPECT_EQ(result.tensor.as_doubles(), (std::vector<double>{0, 1, 3, 7}));
}

ModelBuilder branches(const std::string& then_shape) {
  ModelBuilder then, otherwise;
  then.node("neg", "Neg", {"x"}, {"t"}).output("t", {then_shape});
  otherwise.output("y", {"2"});
  ModelBuilder m;
  m.input("c", {}, onnx_type::kBool).input("x", {then_shape}).input("y", {"2"}).output("z", {"2"});
  m.node("if", "If", {"c"}, {"z"}, {graph("then_branch", then), graph("else_branch", otherwise)});
  return m;
}

TEST(Branches, TakeWhatEitherUses) {
  const ImportedModel model = branches("2").import();
  verify(model.module);
  const Node* choice = find_op(model, ops::if_else);
  ASSERT_NE(choice, nullptr);
  EXPECT_EQ(choice->operands.size(), 3u);
  const Value x = Literal::from_doubles(ElementType::f32, {2}, {1, 2});
  const Value y = Literal::from_doubles(ElementType::f32, {2}, {5, 6});
  for (const bool c : {true, false}) {
    const Value result = evaluate(model.module, model.module.function("main"),
                                  {Literal::scalar(ElementType::boolean, c), x, y});
    EXPECT_EQ(result.tensor.as_double(1), c ? -2 : 6);
  }
}

TEST(Branches, ConstantsDecide) {
  ImportOptions options;
  options.constants["c"] = {0};
  const ImportedModel model = branches("3").import(options);
  EXPECT_EQ(find_op(model, ops::if_else), nullptr);
  EXPECT_EQ(model.module.function("main").result_type().to_string(), "f32[2]");
}

TEST(Branches, ThatAreInvalidSayWhatDecides) {
  ModelBuilder m = branches("2");
  OnnxNode& choice = m.model().graph.nodes.back();
  OnnxGraph broken = *choice.attributes[0].g;
  broken.nodes[0].op_type = "Unheard";
  choice.attributes[0].g = std::make_shared<OnnxGraph>(broken);
  const std::string complaint = complaint_of(m);
  EXPECT_THAT(complaint, HasSubstr("Unheard"));
  EXPECT_THAT(complaint, HasSubstr("--constant NAME=VALUE"));
}

/// What is longer than the other branch's result is left out where the other one is taken.
TEST(Branches, OfDifferentExtentsAreBothComputed) {
  const ImportedModel model = branches("3").import();
  verify(model.module);
  EXPECT_EQ(find_op(model, ops::if_else), nullptr);
  const Function& main = model.module.function("main");
  EXPECT_EQ(main.result_type().to_string(), "f32[z_count]");
  EXPECT_EQ(model.module.functions.size(), 1u);
  const Value x = Literal::from_doubles(ElementType::f32, {3}, {1, 2, 3});
  const Value y = Literal::from_doubles(ElementType::f32, {2}, {5, 6});
  for (const bool c : {true, false}) {
    const Value result =
        evaluate(model.module, main, {Literal::scalar(ElementType::boolean, c), x, y});
    EXPECT_EQ(result.tensor.as_doubles(),
              c ? (std::vector<double>{-1, -2, -3}) : (std::vector<double>{5, 6}));
  }
}

/// As exporters write what a detector does when there may be no box.
TEST(Branches, WhatIsCountedInOneIsCountedOutside) {
  ModelBuilder none, some;
  none.ints("empty", {}).output("empty", {"0"}, onnx_type::kInt64);
  some.node("found", "NonZero", {"x"}, {"places"}).ints("row", {0});
  some.node("first", "Squeeze", {"places", "row"}, {"p"}).output("p", {"?"}, onnx_type::kInt64);
  ModelBuilder m;
  m.input("c", {}, onnx_type::kBool).input("x", {"4"}).output("z", {"?"}, onnx_type::kInt64);
  m.node("if", "If", {"c"}, {"z"}, {graph("then_branch", none), graph("else_branch", some)});
  const ImportedModel model = m.import();
  verify(model.module);
  const Value x = Literal::from_doubles(ElementType::f32, {4}, {0, 7, 0, 7});
  for (const bool c : {true, false}) {
    const Value result = evaluate(model.module, model.module.function("main"),
                                  {Literal::scalar(ElementType::boolean, c), x});
    EXPECT_EQ(result.tensor.as_ints(), c ? (std::vector<int64_t>{}) : (std::vector<int64_t>{1, 3}));
  }
}

TEST(Branches, OfDifferentRanksAreRefused) {
  ModelBuilder then, otherwise;
  then.ints("axis", {0}).node("row", "Unsqueeze", {"x", "axis"}, {"t"}).output("t", {"1", "2"});
  otherwise.output("x", {"2"});
  ModelBuilder m;
  m.input("c", {}, onnx_type::kBool).input("x", {"2"}).output("z", {"2"});
  m.node("if", "If", {"c"}, {"z"}, {graph("then_branch", then), graph("else_branch", otherwise)});
  EXPECT_THAT(complaint_of(m), HasSubstr("node \"if\" (If): the output \"z\" is f32[1,2] in one "
                                         "branch and f32[2] in the other"));
}

}  // namespace
}  // namespace backcast
