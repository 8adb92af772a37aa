// What if_else and scan refuse, and that modules with them are text and know their functions.
#include <gtest/gtest.h>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

Module module_of() {
  return parse_module(R"(symbol M in 1..8
symbol N in 1..8
symbol T in 1..5
func @same(%x: f32[N]) -> f32[N] {
  return %x
}
func @step(%h: f32[M], %x: f32[M]) -> (f32[M], f32[M]) {
  %0 = add %h, %x
  %1 = tuple %0, %x
  return %1
}
func @twice(%x: f32[N]) -> f32[N] {
  %0 = add %x, %x
  return %0
}
func @main(%c: bool[], %n: i64[], %h: f32[N], %xs: f32[T,N]) -> (f32[N], f32[T,N]) {
  %0 = if_else %c, %h {then=@same, otherwise=@twice}
  %1 = scan %n, %0, %xs {body=@step, carries=1, xs=1, length=T}
  return %1
}
)");
}

TEST(Control, TextReadsBack) {
  const Module module = module_of();
  verify(module);
  EXPECT_TRUE(equal(parse_module(print(module)), module)) << print(module);
  EXPECT_EQ(module.function("main").result_type().to_string(), "(f32[N], f32[T,N])");
  const Node& choice = module.function("main").node(ValueId(4));
  EXPECT_EQ(called_functions(choice), (std::vector<std::string>{"same", "twice"}));
  EXPECT_EQ(called_functions(module.function("main").node(ValueId(5))),
            std::vector<std::string>{"step"});
}

TEST(Control, BodiesTakeTheOperandsExtents) {
  const Module module = module_of();
  const Value result = evaluate(
      module, module.function("main"),
      {bools({}, {0}), i64({}, {2}), f32({3}, {1, 2, 3}), f32({2, 3}, {1, 1, 1, 5, 5, 5})});
  const Value expected =
      Value::make_tuple({f32({3}, {8, 10, 12}), f32({2, 3}, {1, 1, 1, 5, 5, 5})});
  EXPECT_EQ(difference(result, expected, 0), "");
}

TEST(Control, RecursionThroughABodyIsFound) {
  Module module = module_of();
  module.functions["step"] = module.function("main");
  module.functions["step"].name = "step";
  EXPECT_NE(find_recursion(module), "");
}

std::string scan_error(const std::vector<Type>& operands, const ScanAttrs& attrs) {
  return infer_error(ops::scan, operands, attrs, module_of());
}

TEST(Control, ScanRefusesWhatDoesNotFit) {
  const Type n = TensorType{ElementType::i64, {}}, h = TensorType{ElementType::f32, {3}};
  const Type xs = TensorType{ElementType::f32, {5, 3}};
  ScanAttrs good;
  good.body = {"step"};
  good.carries = good.xs = 1;
  good.length = 5;
  EXPECT_EQ(scan_error({n, h, xs}, good), "no error");
  const auto refused = [&](const std::vector<Type>& operands, ScanAttrs attrs,
                           const std::string& part) {
    const std::string error = scan_error(operands, attrs);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  refused({h, h, xs}, good, "number of trips must be i64[]");
  refused({n, h, h}, good, "must have 5 rows");
  refused({n, h}, good, "of 1 operands behind the trips");
  refused({n, h, xs, h}, good, "takes 2 operands");
  ScanAttrs attrs = good;
  attrs.conditional = true;
  refused({n, h, xs}, attrs, "must be bool[]");
  attrs.reverse = true;
  refused({n, h, xs}, attrs, "reverse");
  attrs = good;
  attrs.carries = -1;
  refused({n, h, xs}, attrs, "-1 carries");
  attrs = good;
  attrs.length = Dim(-1);
  refused({n, h, xs}, attrs, "negative");
  attrs = good;
  attrs.segments = 0;
  refused({n, h, xs}, attrs, "segments");
  attrs = good;
  attrs.body = {"same"};
  refused({n, h, xs}, attrs, "@same");
  attrs.body = {"absent"};
  refused({n, h, xs}, attrs, "absent");
}

TEST(Control, ACarryKeepsItsType) {
  const Module module = parse_module(R"(
func @grow(%h: f32[2]) -> (f32[4]) {
  %0 = concat %h, %h {axis=0}
  %1 = tuple %0
  return %1
})");
  ScanAttrs attrs;
  attrs.body = {"grow"};
  attrs.carries = 1;
  attrs.length = 3;
  const std::string error =
      infer_error(ops::scan, {TensorType{ElementType::i64, {}}, TensorType{ElementType::f32, {2}}},
                  attrs, module);
  EXPECT_NE(error.find("carry 0 is f32[2] and becomes f32[4]"), std::string::npos) << error;
}

TEST(Control, IfElseRefusesWhatDoesNotFit) {
  const Type yes = TensorType{ElementType::boolean, {}}, x = TensorType{ElementType::f32, {3}};
  const Module module = module_of();
  const auto error = [&](const std::vector<Type>& operands, const IfElseAttrs& attrs) {
    return infer_error(ops::if_else, operands, attrs, module);
  };
  EXPECT_EQ(error({yes, x}, {{"same"}, {"twice"}}), "no error");
  EXPECT_NE(error({x, x}, {{"same"}, {"twice"}}).find("condition must be bool[]"),
            std::string::npos);
  EXPECT_NE(error({yes, x, x}, {{"same"}, {"step"}}).find("@same takes 1 operands"),
            std::string::npos);
  const Module other = parse_module(R"(
func @same(%x: f32[3]) -> f32[3] {
  return %x
}
func @sum(%x: f32[3]) -> f32[] {
  %0 = reduce %x {axes=[0]}
  return %0
})");
  const std::string differ =
      infer_error(ops::if_else, {yes, x}, IfElseAttrs{{"same"}, {"sum"}}, other);
  EXPECT_NE(differ.find("@same gives f32[3] and @sum gives f32[]"), std::string::npos) << differ;
}

}  // namespace
}  // namespace backcast
