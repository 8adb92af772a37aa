// What the importer promises beyond operators: names, symbols, shape arithmetic, complaints.
#include "frontend/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/graph_names.h"
#include "frontend/operators.h"
#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string result_type(const ImportedModel& model) {
  verify(model.module);
  return model.module.function("main").result_type().to_string();
}

ImportOptions symbolic(const std::string& name, int64_t min, int64_t max) {
  ImportOptions options;
  options.dims[name] = {min, max};
  return options;
}

ModelBuilder relu(const std::vector<std::string>& shape) {
  ModelBuilder m;
  m.input("x", shape).output("y").node("r", "Relu", {"x"}, {"y"});
  return m;
}

TEST(Symbols, UnboundDimensionIsOneWithANote) {
  const ImportedModel model = relu({"batch", "4"}).import();
  EXPECT_EQ(result_type(model), "f32[1,4]");
  ASSERT_EQ(model.notes.size(), 1u);
  EXPECT_THAT(model.notes[0], HasSubstr("--dim batch=8"));
}

TEST(Symbols, RangeKeepsTheDimensionSymbolic) {
  const ImportedModel model = relu({"batch", "4"}).import(symbolic("batch", 1, 8));
  EXPECT_EQ(result_type(model), "f32[batch,4]");
  EXPECT_EQ(model.module.symbols.at("batch"), (DimRange{1, 8}));
  EXPECT_TRUE(model.notes.empty());
}

TEST(Symbols, ValueBinds) {
  EXPECT_EQ(result_type(relu({"batch", "4"}).import(symbolic("batch", 3, 3))), "f32[3,4]");
}

TEST(Symbols, ExpressionsFollowTheirSymbol) {
  ModelBuilder m;
  m.input("x", {"N", "2"}).input("z", {"2*N", "2"}).output("y").output("w");
  m.node("a", "Relu", {"z"}, {"y"}).node("b", "Relu", {"x"}, {"w"});
  EXPECT_EQ(result_type(m.import(symbolic("N", 1, 8))), "(f32[N*2,2], f32[N,2])");
}

TEST(Symbols, ShapesOfCallsSayWhatNoOptionDoes) {
  ModelBuilder m;
  m.input("x", {"N", "?", "2*N"}).output("y").node("r", "Relu", {"x"}, {"y"});
  ImportOptions options;
  options.shapes["x"] = {{3, 5, 6}};
  EXPECT_EQ(result_type(m.import(options)), "f32[3,5,6]");
  options.shapes["x"].push_back({1, 5, 2});
  const ImportedModel ranged = m.import(options);
  EXPECT_EQ(ranged.module.symbols.at("N"), (DimRange{1, 3}));
  EXPECT_EQ(ranged.module.symbols.count("x_dim1"), 0u);
  EXPECT_TRUE(ranged.notes.empty());
  options.dims["N"] = {1, 8};
  EXPECT_EQ(m.import(options).module.symbols.at("N"), (DimRange{1, 8}));
}

TEST(Symbols, ShapesOfAnotherRankSayNothing) {
  ImportOptions options;
  options.shapes["x"] = {{7}};
  EXPECT_EQ(result_type(relu({"batch", "4"}).import(options)), "f32[1,4]");
}

TEST(Symbols, InvalidNamesAreMadeValidAndUnknownOnesGetOne) {
  EXPECT_EQ(result_type(relu({"seq-len", "4"}).import(symbolic("seq_len", 1, 9))),
            "f32[seq_len,4]");
  EXPECT_EQ(result_type(relu({"?", "4"}).import(symbolic("x_dim0", 5, 5))), "f32[5,4]");
}

TEST(Symbols, WhatHasNoNameIsUnknown) {
  ModelBuilder m = relu({"*", "*"});
  (*m.model().graph.inputs[0].shape)[0].value = -1;
  ImportOptions options = symbolic("x_dim0", 5, 5);
  options.dims["x_dim1"] = {3, 3};
  EXPECT_EQ(result_type(m.import(options)), "f32[5,3]");
}

TEST(Symbols, ComplaintsSayWhatWasTakenAsOne) {
  ModelBuilder m = relu({"batch", "4"});
  m.ints("to", {3, 3}).node("s", "Reshape", {"y", "to"}, {"z"}).output("z");
  EXPECT_THAT(complaint_of(m), HasSubstr("dimension \"batch\" is taken as 1"));
}

TEST(Symbols, UnknownOptionNamesWhatThereIs) {
  EXPECT_THAT(complaint_of(relu({"batch"}), symbolic("M", 1, 2)),
              HasSubstr("--dim M: the model has no such dimension; it has batch"));
}

ImportOptions constant(const std::string& name, const std::vector<double>& values) {
  ImportOptions options;
  options.constants[name] = values;
  return options;
}

ModelBuilder sum() {
  ModelBuilder m;
  m.input("x", {"3"}).input("rate", {"3"}, onnx_type::kInt64).output("y");
  m.node("c", "CastLike", {"rate", "x"}, {"f"}).node("a", "Add", {"x", "f"}, {"y"});
  return m;
}

TEST(Constants, AreNoInputs) {
  for (const std::vector<double>& values : {std::vector<double>{7}, {5, 6, 7}}) {
    const ImportedModel model = sum().import(constant("rate", values));
    EXPECT_THAT(model.input_names, ElementsAre("x"));
    EXPECT_TRUE(model.parameter_names.empty());
    ASSERT_EQ(model.constant_inputs.size(), 1u);
    EXPECT_EQ(model.constant_inputs[0].position, 1u);
    const Value x = Literal::from_doubles(ElementType::f32, {3}, {1, 2, 3});
    const Value y = evaluate(model.module, model.module.function("main"), {x});
    EXPECT_EQ(y.tensor.as_double(2), 10);
  }
}

TEST(Constants, ThatAnInputCannotHoldAreRefused) {
  EXPECT_THAT(complaint_of(sum(), constant("x", {1, 2})), HasSubstr("2 values are given"));
  EXPECT_THAT(complaint_of(sum(), constant("rate", {1.5})), HasSubstr("1.5 is no i64"));
  EXPECT_THAT(complaint_of(sum(), constant("z", {1})), HasSubstr("the model has no such input"));
}

/// x.reshape(x.shape[0], -1) the way exporters spell it.
ModelBuilder shape_chain() {
  ModelBuilder m;
  m.input("x", {"N", "3", "5"}).output("y").ints("zero", {0}).ints("minus", {-1});
  m.node("s", "Shape", {"x"}, {"s"}).node("g", "Gather", {"s", "zero"}, {"n"});
  m.node("c", "Concat", {"n", "minus"}, {"to"}, {ModelBuilder::integer("axis", 0)});
  m.node("r", "Reshape", {"x", "to"}, {"y"});
  return m;
}

TEST(ShapeArithmetic, FoldsThroughASymbolicBatch) {
  const ImportedModel model = shape_chain().import(symbolic("N", 1, 8));
  EXPECT_EQ(result_type(model), "f32[N,15]");
  // Nothing of the chain is left: a parameter and a reshape.
  EXPECT_EQ(model.module.function("main").size(), 2);
}

TEST(ShapeArithmetic, AShapeMayAlsoBeData) {
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("y", {"2"}, onnx_type::kInt64).node("s", "Shape", {"x"}, {"y"});
  const ImportedModel model = m.import(symbolic("N", 1, 8));
  const Value y = evaluate(model.module, model.module.function("main"),
                           {Literal(ElementType::f32, {4, 3}, std::vector<std::byte>(48))});
  EXPECT_EQ(y.tensor.as_ints(), (std::vector<int64_t>{4, 3}));
}

TEST(Complaints, AllNodesAreReportedAtOnce) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  m.node("a", "ImageDecoder", {"x"}, {"p"}).node("b", "Frobnicate", {"p"}, {"q"});
  m.node("", "Softmax", {"x"}, {"r"}, {ModelBuilder::integer("axes", 0)});
  m.node("d", "Add", {"x", "r"}, {"y"});
  const std::string text = complaint_of(m);
  EXPECT_THAT(text, HasSubstr("node \"a\" (ImageDecoder): operator ImageDecoder"));
  EXPECT_THAT(text, HasSubstr("opset 17"));
  EXPECT_THAT(text, HasSubstr("node \"b\" (Frobnicate)"));
  EXPECT_THAT(text, HasSubstr("node \"Softmax_2\" (Softmax): attribute \"axes\""));
  // What only follows from an earlier fault is left out.
  EXPECT_THAT(text, Not(HasSubstr("node \"d\"")));
}

TEST(Complaints, AttributeOfAnotherKind) {
  ModelBuilder m;
  m.input("x", {"2", "2"}).output("y");
  m.node("t", "Softmax", {"x"}, {"y"}, {ModelBuilder::string("axis", "one")});
  EXPECT_THAT(complaint_of(m), HasSubstr("attribute \"axis\" has to be int and is string"));
}

/// As converters to half floats leave them, which put conversions at the end.
TEST(Import, NodesInAnyOrder) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  m.node("last", "Mul", {"b", "a"}, {"y"}).node("b", "Add", {"a", "a"}, {"b"});
  m.node("a", "Neg", {"x"}, {"a"});
  const ImportedModel model = m.import({});
  const Literal x = Literal::from_doubles(ElementType::f32, {2}, {3, -2});
  const Value y = evaluate(model.module, model.module.function("main"), {x});
  EXPECT_EQ(y.tensor.as_double(0), 18);
  const std::vector<OnnxNode>& nodes = m.model().graph.nodes;
  EXPECT_THAT(topological_order(nodes), ElementsAre(2, 1, 0));
}

/// Some tools name every output.
TEST(Import, OutputsThatNothingReadsNeedNoSupport) {
  ModelBuilder m;
  m.model().opsets["com.microsoft"] = 1;
  m.input("x", {"2", "4"}).input("scale", {"4"}).output("y");
  m.node("n", "SkipSimplifiedLayerNormalization", {"x", "x", "scale"}, {"y", "mean", "deviation"});
  m.model().graph.nodes[0].domain = "com.microsoft";
  EXPECT_EQ(result_type(m.import({})), "f32[2,4]");
  m.output("mean");
  EXPECT_THAT(complaint_of(m), HasSubstr("mean and deviation as outputs are not supported"));
}

TEST(Complaints, CycleAndUndefinedName) {
  ModelBuilder cycle;
  cycle.input("x", {"2"}).output("y");
  cycle.node("a", "Add", {"x", "y"}, {"z"}).node("b", "Relu", {"z"}, {"y"});
  EXPECT_THAT(complaint_of(cycle), HasSubstr("form a cycle"));
  ModelBuilder undefined;
  undefined.input("x", {"2"}).output("y").node("a", "Add", {"x", "nothing"}, {"y"});
  EXPECT_THAT(complaint_of(undefined), HasSubstr("input \"nothing\" is not defined"));
}

TEST(Complaints, NameDefinedTwice) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y").node("a", "Relu", {"x"}, {"y"}).node("b", "Abs", {"x"}, {"y"});
  EXPECT_THAT(complaint_of(m), HasSubstr("\"y\" is defined twice"));
}

TEST(Complaints, ShapesThatDoNotFitNameTheNode) {
  ModelBuilder m;
  m.input("x", {"2"}).input("z", {"3"}).output("y").node("sum", "Add", {"x", "z"}, {"y"});
  EXPECT_THAT(complaint_of(m), HasSubstr("node \"sum\" (Add): shapes [2] and [3]"));
}

TEST(Complaints, Opset) {
  ModelBuilder m(6);
  m.input("x", {"2"}).output("y").node("r", "Relu", {"x"}, {"y"});
  EXPECT_THAT(complaint_of(m), HasSubstr("opset 6, and opsets 7 to 27 are supported"));
}

TEST(Complaints, MissingOutput) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  EXPECT_THAT(complaint_of(m), HasSubstr("output \"y\" is not computed"));
}

TEST(Model, UnusedOutputsAndOptionalInputs) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  m.ints("unused", {1});
  m.node("c", "Clip", {"x", "", ""}, {"z"}).node("d", "Dropout", {"z"}, {"y", ""});
  EXPECT_EQ(result_type(m.import()), "f32[2]");
}

TEST(Model, SeveralOutputsMakeATuple) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y").output("x");
  m.node("r", "Relu", {"x"}, {"y"});
  const ImportedModel model = m.import();
  EXPECT_EQ(result_type(model), "(f32[2], f32[2])");
  EXPECT_EQ(model.module.function("main").result_names, (std::vector<std::string>{"y", "x"}));
}

TEST(Model, FunctionsAreInlinedWithTheirAttributes) {
  ModelBuilder m;
  m.input("x", {"2", "3"}).output("y");
  OnnxAttribute axis = ModelBuilder::integer("axis", 0);
  axis.ref_attr_name = "along";
  m.model().functions.push_back(
      {"Twice",
       "local",
       {"a"},
       {"c"},
       {"along"},
       {{"f", "Flatten", "", {"a"}, {"b"}, {axis}}, {"r", "Relu", "", {"b"}, {"c"}, {}}},
       {{"", 17}}});
  m.model().graph.nodes.push_back(
      {"t", "Twice", "local", {"x"}, {"y"}, {ModelBuilder::integer("along", 2)}});
  EXPECT_EQ(result_type(m.import()), "f32[6,1]");
}

TEST(Model, FunctionThatCallsItselfIsRefused) {
  ModelBuilder m;
  m.input("x", {"2"}).output("y");
  m.model().functions.push_back(
      {"Loop", "local", {"a"}, {"b"}, {}, {{"", "Loop", "local", {"a"}, {"b"}, {}}}, {{"", 17}}});
  m.model().graph.nodes.push_back({"t", "Loop", "local", {"x"}, {"y"}, {}});
  EXPECT_THAT(complaint_of(m), HasSubstr("nested too deeply"));
}

TEST(Model, EqualSoftmaxesShareOneBody) {
  ModelBuilder m;
  m.input("x", {"2", "3"}).output("y");
  m.node("a", "Softmax", {"x"}, {"z"}).node("b", "Softmax", {"z"}, {"y"});
  EXPECT_EQ(m.import().module.functions.size(), 2u);
}

TEST(Bytes, EmptyAndForeignFilesAreRefused) {
  EXPECT_THROW(import_model_bytes("", ""), CompileError);
  EXPECT_THROW(import_model_bytes("this is no model", ""), CompileError);
  EXPECT_THROW(import_model("/nonexistent/model.onnx"), CompileError);
  EXPECT_THROW(import_model("/"), CompileError);
}

TEST(Operators, BatchNormalizationTrainsWhenItsStatisticsAreAskedFor) {
  ModelBuilder m(13);
  m.input("x", {"2", "1"});
  for (const char* name : {"scale", "bias", "mean", "variance"}) m.input(name, {"1"});
  m.output("y").output("now").output("batch");
  m.node("b", "BatchNormalization", {"x", "scale", "bias", "mean", "variance"},
         {"y", "now", "later", "batch", "spread"});
  const ImportedModel model = m.import();
  const auto vector = [](std::vector<int64_t> shape, const std::vector<double>& values) {
    return Value(Literal::from_doubles(ElementType::f32, std::move(shape), values));
  };
  const Value results = evaluate(model.module, model.module.function("main"),
                                 {vector({2, 1}, {1, 3}), vector({1}, {1}), vector({1}, {0}),
                                  vector({1}, {10}), vector({1}, {1})});
  EXPECT_NEAR(results.elements[0].tensor.as_double(1), 1, 1e-4);
  EXPECT_NEAR(results.elements[1].tensor.as_double(0), 0.9 * 10 + 0.1 * 2, 1e-5);
  EXPECT_EQ(results.elements[2].tensor.as_double(0), 2);
}

/// What a Resize makes of the numbers 0, 1, … of one dimension.
Value resized(int64_t count, float scale, const std::string& output, const std::string& transform) {
  ModelBuilder m(13);
  m.input("x", {std::to_string(count)}).output("y", {output});
  OnnxTensor scales;
  scales.name = "scales";
  scales.data_type = onnx_type::kFloat;
  scales.dims = {1};
  const auto held = std::make_shared<std::vector<float>>(std::vector<float>{scale});
  scales.float_data = *held;
  scales.owner = held;
  m.model().graph.initializers.push_back(scales);
  m.node("r", "Resize", {"x", "", "scales"}, {"y"},
         {ModelBuilder::string("coordinate_transformation_mode", transform),
          ModelBuilder::string("nearest_mode", "floor")});
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  const ImportedModel model = m.import();
  return evaluate(model.module, model.module.function("main"),
                  {Literal::from_doubles(ElementType::f32, {count}, numbers)});
}

// 17 / 1.7 is 10 in f32, in which scales are given; the nearest element is decided there.
TEST(Operators, ResizeFindsTheNearestElementInF32) {
  const Value y = resized(12, 1.7f, "20", "asymmetric");
  EXPECT_EQ(y.tensor.as_double(16), 9);
  EXPECT_EQ(y.tensor.as_double(17), 10);
}

// 15 × (23 / 15) is 23 in f32.
TEST(Operators, ResizeFindsTheExtentInF32) {
  EXPECT_EQ(resized(15, 23.0f / 15, "23", "half_pixel").tensor.shape(), std::vector<int64_t>{23});
}

TEST(Operators, TableIsSound) {
  for (const SupportedOperator& op : supported_operators()) {
    EXPECT_LE(op.since, op.until) << op.name;
    // Every opset in the range has exactly one rule.
    EXPECT_NE(find_rule(op.domain, op.name, op.since), nullptr) << op.name;
    EXPECT_NE(find_rule(op.domain, op.name, op.until), nullptr) << op.name;
  }
}

}  // namespace
}  // namespace backcast
