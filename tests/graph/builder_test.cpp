// Builder, Rewriter and verifier.
#include "ir/graph/builder.h"

#include <gtest/gtest.h>

#include "ir/graph/verifier.h"
#include "tests/graph/test_module.h"

namespace backcast {
namespace {

TensorType vector_type(int64_t n) { return {ElementType::f32, {n}}; }

TEST(Builder, RefusesNodesWithoutLocation) {
  const Module module;
  Builder builder(module, "f");
  const ValueId x = builder.parameter("x", vector_type(2));
  EXPECT_THROW(builder.emit(ops::relu, {x}), InternalError);
}

TEST(Builder, InfersAndNamesTheNodeInErrors) {
  const Module module;
  Builder builder(module, "f");
  const ValueId x = builder.parameter("x", vector_type(2));
  const ValueId y = builder.parameter("y", vector_type(3));
  builder.set_loc({"sum1", "Add"});
  EXPECT_EQ(builder.type(builder.emit(ops::relu, {x})), Type(vector_type(2)));
  try {
    builder.emit(ops::add, {x, y});
    FAIL() << "operands of different shapes";
  } catch (const CompileError& error) {
    EXPECT_EQ(std::string(error.what()).find("node \"sum1\" (Add): "), 0u) << error.what();
  }
  EXPECT_THROW(builder.emit(ops::add, {x}), CompileError);
  EXPECT_THROW(builder.emit(ops::relu, {ValueId(99)}), InternalError);
  EXPECT_THROW(builder.emit(ops::relu, {x}, GetAttrs{0}), InternalError);
  EXPECT_THROW(builder.parameter("late", vector_type(1)), InternalError);
  EXPECT_THROW(builder.finish(ValueId()), InternalError);
}

TEST(Builder, ScalarHasRankZero) {
  const Module module;
  Builder builder(module, "f");
  builder.set_loc(loc("s"));
  const ValueId s = builder.scalar(ElementType::f16, 0.5);
  EXPECT_EQ(builder.type(s), Type(TensorType{ElementType::f16, {}}));
}

TEST(Rewriter, CopiesOnlyWhatIsNeededAndKeepsLocations) {
  Module module;
  Builder builder(module, "f");
  const ValueId x = builder.parameter("x", vector_type(2));
  builder.parameter("unused", vector_type(2));
  builder.set_loc(loc("a"));
  const ValueId a = builder.emit(ops::relu, {x});
  builder.set_loc(loc("dead"));
  builder.emit(ops::add, {a, x});
  builder.set_loc(loc("b"));
  const ValueId b = builder.emit(ops::add, {a, a});
  const Function old = builder.finish(b, {"y"});

  Rewriter copying(module, old);
  const Function copy = copying.finish();
  EXPECT_EQ(copy.size(), 4);
  EXPECT_EQ(copy.params.size(), 2u);
  EXPECT_EQ(copy.node(copy.result).loc, loc("b"));
  EXPECT_EQ(copy.result_names, old.result_names);

  Rewriter replacing(module, old);
  replacing.builder().set_loc(loc("new"));
  replacing.map(a, replacing.builder().emit(ops::abs, {replacing[x]}));
  EXPECT_TRUE(replacing.mapped(a));
  EXPECT_FALSE(replacing.mapped(b));
  EXPECT_THROW(replacing[b], InternalError);
  EXPECT_EQ(replacing.copy(a), replacing[a]);
  EXPECT_EQ(replacing.builder().loc(), loc("new"));
  const Function replaced = replacing.finish();
  EXPECT_EQ(replaced.size(), 4);
  EXPECT_EQ(replaced.nodes[2].op, &ops::abs);
  EXPECT_EQ(use_counts(replaced), (std::vector<int>{1, 0, 2, 1}));
  EXPECT_FALSE(equal(copy, replaced));
}

/// A module after `damage` no longer verifies, and the message contains `expected`.
template <class F>
void expect_rejected(const std::string& expected, F&& damage) {
  Module module = doubling_module();
  ASSERT_NO_THROW(verify(module));
  damage(module);
  try {
    verify(module, "some_pass");
    FAIL() << "not rejected: " << expected;
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_EQ(message.find("after some_pass: "), 0u) << message;
  }
}

TEST(Verifier, FindsBrokenNodes) {
  expect_rejected("value 3 (add) has no location",
                  [](Module& m) { m.functions["main"].nodes[3].loc = {}; });
  expect_rejected("which does not precede it",
                  [](Module& m) { m.functions["main"].nodes[1].operands[0] = ValueId(2); });
  expect_rejected("which does not precede it",
                  [](Module& m) { m.functions["main"].nodes[1].operands[0] = ValueId(); });
  expect_rejected("has type f32[N,3] where f32[N,2] is inferred", [](Module& m) {
    m.functions["main"].nodes[3].type = TensorType{ElementType::f32, {Dim::symbol("N"), 3}};
  });
  expect_rejected("add takes 2 operands and has 1",
                  [](Module& m) { m.functions["main"].nodes[3].operands.pop_back(); });
  expect_rejected("node \"act\" (Test) has attributes of another operator",
                  [](Module& m) { m.functions["main"].nodes[1].attrs = GetAttrs{0}; });
  expect_rejected("value 1 has no operator",
                  [](Module& m) { m.functions["main"].nodes[1].op = nullptr; });
}

TEST(Verifier, FindsBrokenFunctions) {
  expect_rejected("undeclared symbol N", [](Module& m) { m.symbols.clear(); });
  expect_rejected("symbol N has the range 3..2", [](Module& m) { m.symbols["N"] = {3, 2}; });
  expect_rejected("parameters come first", [](Module& m) { m.functions["main"].params.clear(); });
  expect_rejected("has the wrong index", [](Module& m) {
    m.functions["main"].nodes[0].attrs = ParameterAttrs{"x", 4};
  });
  expect_rejected("the result is not a value",
                  [](Module& m) { m.functions["main"].result = ValueId(9); });
  expect_rejected("2 names for 1 results", [](Module& m) {
    m.functions["main"].result_names = {"a", "b"};
  });
  expect_rejected("is filed under @other",
                  [](Module& m) { m.functions["other"] = m.functions["main"]; });
}

TEST(Verifier, FindsBrokenCalls) {
  expect_rejected("calls @double, which is missing",
                  [](Module& m) { m.functions.erase("double"); });
  expect_rejected("@main calls itself",
                  [](Module& m) { m.functions["main"].nodes[2].attrs = CallAttrs{{"main"}}; });
}

TEST(Module, FindsIndirectRecursion) {
  Module module = doubling_module();
  EXPECT_EQ(find_recursion(module), "");
  Function back = module.functions["main"];
  back.name = "double";
  back.nodes[2].attrs = CallAttrs{{"main"}};
  module.functions["double"] = back;
  EXPECT_NE(find_recursion(module), "");
  EXPECT_THROW(module.function("absent"), CompileError);
}

}  // namespace
}  // namespace backcast
