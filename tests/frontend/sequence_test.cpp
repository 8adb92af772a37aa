// Sequences: lists of tensors that import follows, and that nothing is left of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

Value row(const Numbers& values) {
  return Literal::from_doubles(ElementType::f32, {static_cast<int64_t>(values.size())}, values);
}

Value number(int64_t value) { return Literal::from_ints({}, {value}); }

Value result_of(const ModelBuilder& m, const std::vector<Value>& inputs) {
  const ImportedModel model = m.import();
  verify(model.module);
  return evaluate(model.module, model.module.function("main"), inputs);
}

/// (a, b, c) and numbers to speak of its places; `join` makes y of "s".
ModelBuilder three() {
  ModelBuilder m;
  m.input("a", {"1"}).input("b", {"1"}).input("c", {"1"}).output("y");
  m.ints("0", {0}).ints("1", {1}).ints("2", {2}).ints("-1", {-1}).ints("-3", {-3}).ints("3", {3});
  m.node("list", "SequenceConstruct", {"a", "b", "c"}, {"abc"});
  return m;
}

ModelBuilder& join(ModelBuilder& m) {
  return m.node("join", "ConcatFromSequence", {"s"}, {"y"}, {ModelBuilder::integer("axis", 0)});
}

const std::vector<Value> kThree{row({1}), row({2}), row({3})};

TEST(Sequences, AreInsertedInto) {
  const std::vector<std::pair<std::string, Numbers>> cases = {
      {"", {1, 2, 3, 1}},   {"0", {1, 1, 2, 3}},  {"3", {1, 2, 3, 1}},
      {"-1", {1, 2, 1, 3}}, {"-3", {1, 1, 2, 3}}, {"1", {1, 1, 2, 3}}};
  for (const auto& [place, expected] : cases) {
    ModelBuilder m = three();
    m.node("insert", "SequenceInsert", {"abc", "a", place}, {"s"});
    EXPECT_EQ(result_of(join(m), kThree).tensor.as_doubles(), expected) << place;
  }
}

TEST(Sequences, AreErasedFrom) {
  const std::vector<std::pair<std::string, Numbers>> cases = {
      {"", {1, 2}}, {"0", {2, 3}}, {"-1", {1, 2}}, {"1", {1, 3}}};
  for (const auto& [place, expected] : cases) {
    ModelBuilder m = three();
    m.node("erase", "SequenceErase", {"abc", place}, {"s"});
    EXPECT_EQ(result_of(join(m), kThree).tensor.as_doubles(), expected) << place;
  }
}

TEST(Sequences, ElementsAreChosenByConstantsOrData) {
  for (const char* place : {"1", "which"}) {
    ModelBuilder m = three();
    m.input("which", {}, onnx_type::kInt64).node("at", "SequenceAt", {"abc", place}, {"y"});
    for (const int64_t which : {1, -2}) {
      std::vector<Value> inputs = kThree;
      inputs.push_back(number(which));
      EXPECT_EQ(result_of(m, inputs).tensor.as_doubles(), Numbers{2}) << place;
    }
  }
}

TEST(Sequences, SplitIntoPartsAndPlaces) {
  struct Case {
    std::string split;
    int64_t keepdims;
    std::string first, result;
  };
  const std::vector<Case> cases = {{"2", 1, "f32[2]", "f32[1]"},
                                   {"2,3", 1, "f32[2]", "f32[3]"},
                                   {"", 1, "f32[1]", "f32[1]"},
                                   {"", 0, "f32[]", "f32[]"}};
  for (const Case& c : cases) {
    ModelBuilder m;
    m.input("x", {"5"}).output("first").output("last").ints("0", {0}).ints("-1", {-1});
    m.ints("2", {2}).ints("2,3", {2, 3});
    if (c.split == "2") m.model().graph.initializers[2].dims.clear();
    m.node("split", "SplitToSequence", {"x", c.split}, {"s"},
           {ModelBuilder::integer("keepdims", c.keepdims)});
    m.node("at0", "SequenceAt", {"s", "0"}, {"first"});
    m.node("at1", "SequenceAt", {"s", "-1"}, {"last"});
    const ImportedModel model = m.import();
    EXPECT_EQ(model.module.function("main").result_type().to_string(),
              "(" + c.first + ", " + c.result + ")");
    const Value results = result_of(m, {row({1, 2, 3, 4, 5})});
    EXPECT_EQ(results.elements[0].tensor.as_double(0), 1);
    const Literal& last = results.elements[1].tensor;
    EXPECT_EQ(last.as_double(last.element_count() - 1), 5);
  }
}

TEST(Sequences, KnowTheirLength) {
  ModelBuilder m = three();
  m.node("length", "SequenceLength", {"abc"}, {"y"});
  EXPECT_EQ(result_of(m, kThree).tensor.as_double(0), 3);
}

/// s ← s, x·i, four times.
ModelBuilder appending() {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool).input("s", {});
  body.node("cast", "Cast", {"i"}, {"f"}, {ModelBuilder::integer("to", onnx_type::kFloat)});
  body.node("mul", "Mul", {"x", "f"}, {"xi"}).node("insert", "SequenceInsert", {"s", "xi"}, {"on"});
  body.output("go", {}, onnx_type::kBool).output("on", {});
  ModelBuilder m;
  m.ints("n", {4}).input("x", {"2"}).node("none", "SequenceEmpty", {}, {"none"});
  m.node("loop", "Loop", {"n", "", "none"}, {"s"}, {ModelBuilder::body("body", body)});
  return m;
}

TEST(Sequences, GrowInLoops) {
  ModelBuilder m = appending();
  m.output("y").node("stack", "ConcatFromSequence", {"s"}, {"y"},
                     {ModelBuilder::integer("axis", 0), ModelBuilder::integer("new_axis", 1)});
  const Literal result = result_of(m, {row({1, 10})}).tensor;
  EXPECT_EQ(result.shape(), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(result.as_doubles(), (Numbers{0, 0, 1, 10, 2, 20, 3, 30}));
}

TEST(Sequences, LeaveAModelElementByElement) {
  ModelBuilder m = appending();
  m.output("s");
  const ImportedModel model = m.import();
  EXPECT_EQ(model.output_names, (std::vector<std::string>{"s_0", "s_1", "s_2", "s_3"}));
  EXPECT_THAT(model.notes, testing::Contains(HasSubstr("output \"s\" is a sequence of 4")));
}

TEST(Sequences, AreMapped) {
  ModelBuilder body;
  body.input("x", {"1"}).input("y", {"1"}).node("add", "Add", {"x", "y"}, {"sum"});
  body.node("mul", "Mul", {"x", "b"}, {"product"}).output("sum").output("product");
  ModelBuilder m = three();
  m.output("z").node("map", "SequenceMap", {"abc", "c"}, {"s", "t"},
                     {ModelBuilder::body("body", body)});
  m.node("join2", "ConcatFromSequence", {"t"}, {"z"}, {ModelBuilder::integer("axis", 0)});
  const Value results = result_of(join(m), kThree);
  EXPECT_EQ(results.elements[0].tensor.as_doubles(), (Numbers{4, 5, 6}));
  EXPECT_EQ(results.elements[1].tensor.as_doubles(), (Numbers{2, 4, 6}));
}

TEST(Sequences, AreSeenInsideOfLoopsAndBranches) {
  ModelBuilder body, then, otherwise;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool).input("x", {"1"});
  body.node("at", "SequenceAt", {"abc", "i"}, {"e"}).node("add", "Add", {"x", "e"}, {"next"});
  body.output("go", {}, onnx_type::kBool).output("next");
  then.node("add", "SequenceInsert", {"abc", "a"}, {"t"}).output("t");
  otherwise.node("add", "SequenceInsert", {"abc", "b", "0"}, {"o"}).output("o");
  ModelBuilder m = three();
  m.input("n", {}, onnx_type::kInt64).input("which", {}, onnx_type::kBool).output("z");
  m.node("loop", "Loop", {"n", "", "c"}, {"z"}, {ModelBuilder::body("body", body)});
  m.node("if", "If", {"which"}, {"s"},
         {ModelBuilder::body("then_branch", then), ModelBuilder::body("else_branch", otherwise)});
  join(m);
  for (const bool which : {false, true}) {
    std::vector<Value> inputs = kThree;
    inputs.push_back(number(2));
    inputs.push_back(Literal::scalar(ElementType::boolean, which));
    const Value results = result_of(m, inputs);
    EXPECT_EQ(results.elements[0].tensor.as_doubles(),
              which ? (Numbers{1, 2, 3, 1}) : (Numbers{2, 1, 2, 3}));
    EXPECT_EQ(results.elements[1].tensor.as_doubles(), Numbers{3 + 1 + 2});
  }
}

TEST(Sequences, AreNoTensors) {
  ModelBuilder m = three();
  m.node("neg", "Neg", {"abc"}, {"y"});
  EXPECT_THAT(complaint_of(m), HasSubstr("(Neg): input 0 (\"abc\") is a sequence"));
  ModelBuilder other = three();
  other.node("at", "SequenceAt", {"a", "0"}, {"y"});
  EXPECT_THAT(complaint_of(other), HasSubstr("(SequenceAt): input 0 (\"a\") is a tensor"));
  ModelBuilder condition = three();
  condition.node("if", "If", {"abc"}, {"y"},
                 {ModelBuilder::body("then_branch", ModelBuilder().output("a")),
                  ModelBuilder::body("else_branch", ModelBuilder().output("b"))});
  EXPECT_THAT(complaint_of(condition), HasSubstr("(If): is given a sequence"));
}

TEST(Sequences, HaveNoPlaceOutside) {
  ModelBuilder m = three();
  m.node("at", "SequenceAt", {"abc", "3"}, {"y"});
  EXPECT_THAT(complaint_of(m), HasSubstr("input 1 (\"3\") is 3, and the sequence has 3 elements"));
}

TEST(Sequences, HaveAnEnd) {
  ModelBuilder m;
  m.input("x", {"1000000000000"}).output("s").node("split", "SplitToSequence", {"x"}, {"s"});
  EXPECT_THAT(complaint_of(m), HasSubstr("1000000000000 parts"));
}

TEST(Sequences, NeedKnownTrips) {
  ModelBuilder m = appending();
  m.input("trips", {}, onnx_type::kInt64).output("s");
  m.model().graph.nodes.back().inputs[0] = "trips";
  EXPECT_THAT(complaint_of(m), HasSubstr("only run time knows the number of trips"));
  ModelBuilder other = appending();
  other.input("start", {}, onnx_type::kBool).output("s");
  other.model().graph.nodes.back().inputs[1] = "start";
  EXPECT_THAT(complaint_of(other), HasSubstr("only run time knows the condition"));
}

}  // namespace
}  // namespace backcast
