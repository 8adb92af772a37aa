// The evaluator: binding of symbols, ranges, order and lifetime of values.
#include "ir/graph/evaluator.h"

#include <gtest/gtest.h>

#include "ir/graph/text.h"
#include "tests/graph/test_module.h"

namespace backcast {
namespace {

const Dim kN = Dim::symbol("N");
const Dim kM = Dim::symbol("M");

Literal floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Literal::from_doubles(ElementType::f32, std::move(shape), values);
}

bool binds(const Shape& shape, const std::vector<int64_t>& actual, SymbolValues& symbols) {
  return bind_symbols({ElementType::f32, shape}, actual, symbols);
}

TEST(BindSymbols, SolvesLinearDimensions) {
  SymbolValues symbols;
  EXPECT_TRUE(binds({kN, kM * 2 + 1}, {4, 7}, symbols));
  EXPECT_EQ(symbols, (SymbolValues{{"N", 4}, {"M", 3}}));
  EXPECT_TRUE(binds({kN * kM}, {12}, symbols));
  EXPECT_FALSE(binds({kN}, {5}, symbols));
}

TEST(BindSymbols, UsesOneDimensionToSolveAnother) {
  SymbolValues symbols;
  EXPECT_TRUE(binds({kN * kM, kN}, {12, 3}, symbols));
  EXPECT_EQ(symbols.at("M"), 4);
  SymbolValues quotient;
  EXPECT_TRUE(binds({Dim::ceil_div(kN, 2), kN}, {4, 7}, quotient));
  SymbolValues wrong;
  EXPECT_FALSE(binds({Dim::ceil_div(kN, 2), kN}, {3, 7}, wrong));
}

TEST(BindSymbols, RefusesWhatHasNoOrNoSingleSolution) {
  for (const auto& [dim, extent] : std::vector<std::pair<Dim, int64_t>>{
           {kN * 2, 5}, {kN + 4, 3}, {kN * kM, 6}, {Dim::floor_div(kN, 2), 3}, {3, 4}}) {
    SymbolValues symbols;
    EXPECT_FALSE(binds({dim}, {extent}, symbols)) << dim.to_string();
  }
  SymbolValues symbols;
  EXPECT_FALSE(binds({kN}, {1, 2}, symbols));
}

TEST(Evaluate, RunsCallsAndBindsSymbols) {
  const Module module = doubling_module();
  const Value result = evaluate(module, module.function("main"), {floats({2, 2}, {1, -2, 3, 4})});
  EXPECT_EQ(result.tensor, floats({2, 2}, {3, -2, 9, 12}));
}

std::string error_of(const Module& module, const std::vector<Value>& arguments,
                     const SymbolValues& symbols = {}) {
  try {
    evaluate(module, module.function("main"), arguments, symbols);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Evaluate, ChecksArguments) {
  const Module module = doubling_module();
  EXPECT_EQ(error_of(module, {}), "@main takes 1 arguments and gets 0");
  EXPECT_EQ(error_of(module, {floats({2, 3}, std::vector<double>(6))}),
            "@main: argument 0 \"x\" must be f32[N,2] and is f32[2,3] where N=2");
  EXPECT_EQ(error_of(module, {floats({9, 2}, std::vector<double>(18))}),
            "@main: N = 9 is outside its range 1..8");
  EXPECT_EQ(error_of(module, {Literal::from_ints({1, 2}, {1, 2})}),
            "@main: argument 0 \"x\" must be f32[N,2] and is i64[1,2]");
  EXPECT_EQ(error_of(module, {Value::make_tuple({})}), "@main: argument 0 \"x\" must be f32[N,2]");
}

TEST(Evaluate, TakesWhatShapesLeaveOpenFromTheCaller) {
  const Module module = parse_module(R"(
    symbol N in 1..8
    func @main(%x: f32[(N+1)/2]) -> i64[] {
      %0 = dimension {value=N*10}
      return %0
    })");
  const Literal x = floats({2}, {1, 2});
  EXPECT_NE(error_of(module, {x}).find("do not determine every dimension"), std::string::npos);
  EXPECT_EQ(evaluate(module, module.function("main"), {x}, {{"N", 4}}).tensor.as_int(0), 40);
  EXPECT_NE(error_of(module, {x}, {{"N", 6}}).find("must be f32[(N+1)/2]"), std::string::npos);
}

TEST(Evaluate, CalleesBindTheirSymbolsFromTheirOwnArguments) {
  const Module module = parse_module(R"(
    symbol N in 1..8
    func @count(%x: f32[N]) -> i64[] {
      %0 = dimension {value=N}
      return %0
    }
    func @main(%x: f32[N]) -> i64[] {
      %0 = concat %x, %x {axis=0}
      %1 = call %0 {function=@count}
      return %1
    })");
  EXPECT_EQ(evaluate(module, module.function("main"), {floats({2}, {1, 2})}).tensor.as_int(0), 4);
}

TEST(Evaluate, TuplesNest) {
  const Module module = parse_module(R"(
    func @main(%x: (f32[1], (i64[], f32[2]))) -> ((i64[], f32[2]), f32[1]) {
      %0 = get %x {index=1}
      %1 = get %x {index=0}
      %2 = tuple %0, %1
      return %2
    })");
  const Value argument = Value::make_tuple(
      {floats({1}, {5}), Value::make_tuple({Literal::from_ints({}, {7}), floats({2}, {1, 2})})});
  const Value result = evaluate(module, module.function("main"), {argument});
  ASSERT_TRUE(result.is_tuple);
  EXPECT_EQ(result.elements[0].elements[1].tensor, floats({2}, {1, 2}));
  EXPECT_EQ(result.elements[1].tensor, floats({1}, {5}));
}

TEST(Evaluate, LongFunctionsNeedNoStack) {
  const Module module;
  Builder builder(module, "main");
  const ValueId x = builder.parameter("x", TensorType{ElementType::f32, {10}});
  builder.set_loc(loc("step"));
  ValueId value = x;
  for (int i = 0; i < 20000; ++i) value = builder.emit(ops::relu, {value});
  const Function function = builder.finish(value);
  const Literal input = floats({10}, std::vector<double>(10, 2.0));
  EXPECT_EQ(evaluate(module, function, {input}).tensor, input);
}

TEST(EvaluateNode, FoldsOneNode) {
  const Module module = doubling_module();
  const Node& add = module.function("double").nodes[1];
  const Value two = floats({1, 2}, {2, 3});
  EXPECT_EQ(evaluate_node(module, add, {two, two}, {{"N", 1}}).tensor, floats({1, 2}, {4, 6}));
}

}  // namespace
}  // namespace backcast
