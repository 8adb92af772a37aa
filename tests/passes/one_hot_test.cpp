// Products with one-hot rows look rows up, and their adjoints scatter: the same values, numbers out
// of range included.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "ir/ops/ops.h"
#include "passes/graph/simplify.h"

namespace backcast {
namespace {

int64_t count(const Module& module, const OpDef& op) {
  int64_t found = 0;
  for (const Node& node : module.function("main").nodes) found += node.op == &op;
  return found;
}

/// One-hot rows of 4 along `axis` of the numbers %i: i64[3,2].
std::string one_hot(const std::string& shape, int axis, const std::string& dims, bool by_constant,
                    bool by_select) {
  std::string text = fmt::format("  %n = broadcast %i {{shape=[{}], dims=[{}]}}\n", shape, dims);
  if (by_constant) {
    text += fmt::format(
        "  %c = constant {{value=i64[4] [0,1,2,3]}}\n"
        "  %k = broadcast %c {{shape=[{}], dims=[{}]}}\n",
        shape, axis);
  } else {
    text += fmt::format("  %k = iota {{element=i64, shape=[{}], axis={}}}\n", shape, axis);
  }
  text += "  %h = compare %k, %n {direction=eq}\n";
  if (!by_select) return text + "  %o = cast %h {to=f32}\n";
  return text + fmt::format(
                    "  %y1 = constant {{value=f32[] 1}}\n  %y0 = constant {{value=f32[] 0}}\n"
                    "  %on = broadcast %y1 {{shape=[{0}], dims=[]}}\n"
                    "  %off = broadcast %y0 {{shape=[{0}], dims=[]}}\n"
                    "  %o = select %h, %on, %off\n",
                    shape);
}

struct Form {
  const char *shape, *dims, *rows, *product, *result;
  int axis;
};

const Form kForms[] = {
    {"3,2,4", "0,1", "4,5", "%o, %r {lhs_contract=[2], rhs_contract=[0]}", "3,2,5", 2},
    {"3,4,2", "0,2", "5,4,6", "%r, %o {lhs_contract=[1], rhs_contract=[1]}", "5,6,3,2", 1},
    {"4,3,2", "1,2", "4", "%o, %r {lhs_contract=[0], rhs_contract=[0]}", "3,2", 0},
    // Adjoints.
    {"3,2,4", "0,1", "3,2,5", "%o, %r {lhs_contract=[0,1], rhs_contract=[0,1]}", "4,5", 2},
    {"3,4,2", "0,2", "3,6,2,5", "%r, %o {lhs_contract=[0,2], rhs_contract=[0,2]}", "6,5,4", 1},
};

class OneHot : public testing::TestWithParam<std::tuple<size_t, bool, bool>> {};

TEST_P(OneHot, IsLookedUp) {
  const auto [form, by_constant, by_select] = GetParam();
  const Form& f = kForms[form];
  const Module module = parse_module(fmt::format(
      "func @main(%i: i64[3,2], %r: f32[{}]) -> f32[{}] {{\n{}  %y = dot_general {}\n"
      "  return %y\n}}\n",
      f.rows, f.result, one_hot(f.shape, f.axis, f.dims, by_constant, by_select), f.product));
  verify(module);
  const Module simple = simplify(module);
  verify(simple);
  EXPECT_EQ(count(simple, ops::dot_general), 0);
  EXPECT_EQ(count(simple, ops::gather) + count(simple, ops::scatter), 1);
  const TensorType rows = module.function("main").type(module.function("main").params[1]).tensor();
  std::vector<double> values;
  for (int64_t k = 0; k < rows.element_count().constant(); ++k) {
    values.push_back(static_cast<double>(k % 13) - 5.5);
  }
  const std::vector<Value> inputs = {
      Literal::from_doubles(ElementType::i64, {3, 2}, {0, 3, -1, 4, 2, 2}),
      Literal::from_doubles(ElementType::f32, static_shape(rows.shape), values)};
  EXPECT_EQ(evaluate(simple, simple.function("main"), inputs).tensor,
            evaluate(module, module.function("main"), inputs).tensor);
}

INSTANTIATE_TEST_SUITE_P(Forms, OneHot,
                         testing::Combine(testing::Range<size_t>(0, std::size(kForms)),
                                          testing::Bool(), testing::Bool()));

TEST(OneHot, OtherNumbersStayProducts) {
  // Counting backwards, and two numbers that each row may be.
  const Module module = parse_module(R"(
func @main(%i: i64[3], %j: i64[3,4], %r: f32[4,5]) -> (f32[3,5], f32[3,5]) {
  %c = constant {value=i64[4] [3,2,1,0]}
  %n = broadcast %i {shape=[3,4], dims=[0]}
  %k = broadcast %c {shape=[3,4], dims=[1]}
  %h = compare %k, %n {direction=eq}
  %o = cast %h {to=f32}
  %y = dot_general %o, %r {lhs_contract=[1], rhs_contract=[0]}
  %p = iota {element=i64, shape=[3,4], axis=1}
  %q = compare %p, %j {direction=eq}
  %s = cast %q {to=f32}
  %z = dot_general %s, %r {lhs_contract=[1], rhs_contract=[0]}
  %t = tuple %y, %z
  return %t
})");
  verify(module);
  EXPECT_EQ(count(simplify(module), ops::dot_general), 2);
}

}  // namespace
}  // namespace backcast
