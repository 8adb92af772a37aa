// call and composite: the callee's symbols take the operands' dimensions.
#include <gtest/gtest.h>

#include "ir/graph/builder.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

/// @body(x: <type>) = (x + x, the value of `dimension`).
Module module_with(const Type& type, const Dim& dimension) {
  Module module;
  Builder builder(module, "body");
  const ValueId x = builder.parameter("x", type);
  builder.set_loc({"n", "Test", Origin::imported});
  const ValueId sum = builder.emit(ops::add, {x, x});
  const ValueId value = builder.emit(ops::dimension, {}, DimensionAttrs{dimension});
  module.functions["body"] = builder.finish(builder.emit(ops::tuple, {sum, value}));
  return module;
}

std::string call_type(const std::vector<std::string>& formal,
                      const std::vector<std::string>& actual) {
  const Module module = module_with(symbolic(formal), Dim(1));
  const Attrs attrs = CallAttrs{{"body"}};
  const std::string error = infer_error(ops::call, {symbolic(actual)}, attrs, module);
  if (error != "no error") return error;
  return infer(ops::call, {symbolic(actual)}, attrs, module).elements()[0].to_string();
}

TEST(Call, SubstitutesTheCalleesSymbols) {
  EXPECT_EQ(call_type({"N", "2"}, {"N", "2"}), "f32[N,2]");
  EXPECT_EQ(call_type({"N", "2"}, {"5", "2"}), "f32[5,2]");
  EXPECT_EQ(call_type({"N", "2"}, {"N*2", "2"}), "f32[N*2,2]");
  EXPECT_EQ(call_type({"N", "M"}, {"M", "N"}), "f32[M,N]");
  EXPECT_EQ(call_type({"N", "N"}, {"H+1", "H+1"}), "f32[H+1,H+1]");
  EXPECT_EQ(call_type({"N*4+1"}, {"M*8+1"}), "f32[M*8+1]");
  EXPECT_EQ(call_type({"N+M", "N"}, {"10", "M"}), "f32[10,M]");
  EXPECT_EQ(call_type({"(N+1)/2", "N"}, {"4", "7"}), "f32[4,7]");
}

TEST(Call, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::string& error) {
    return error.find("operand 0 of @body must be") != std::string::npos;
  };
  EXPECT_TRUE(refused(call_type({"N", "2"}, {"N", "3"})));
  EXPECT_TRUE(refused(call_type({"N", "N"}, {"4", "5"})));
  EXPECT_TRUE(refused(call_type({"N", "N"}, {"N", "M"})));
  EXPECT_TRUE(refused(call_type({"N"}, {"N", "1"})));
  EXPECT_TRUE(refused(call_type({"N*2"}, {"5"})));
  EXPECT_TRUE(refused(call_type({"3"}, {"N"})));
  const Module module = module_with(symbolic({"N"}), Dim(1));
  const Type x = symbolic({"N"});
  EXPECT_NE(infer_error(ops::call, {x, x}, CallAttrs{{"body"}}, module).find("takes 1 operands"),
            std::string::npos);
  EXPECT_NE(infer_error(ops::call, {x}, CallAttrs{{"other"}}, module), "no error");
  EXPECT_NE(infer_error(ops::call, {Type::tuple({x})}, CallAttrs{{"body"}}, module), "no error");
  EXPECT_NE(infer_error(ops::composite, {x}, CompositeAttrs{"", {"body"}}, module).find("name"),
            std::string::npos);
}

TEST(Call, EvaluatesTheBody) {
  const Dim n = Dim::symbol("N");
  const Module module = module_with(symbolic({"N", "2"}), n * Dim(10));
  const Literal x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  const Value expected = Value::make_tuple({f32({3, 2}, {2, 4, 6, 8, 10, 12}), i64({}, {30})});
  EXPECT_EQ(difference(run(ops::call, {x}, CallAttrs{{"body"}}, module), expected, 0), "");
  EXPECT_EQ(
      difference(run(ops::composite, {x}, CompositeAttrs{"twice", {"body"}}, module), expected, 0),
      "");
}

TEST(Call, SymbolsThatNoParameterHasKeepTheirNames) {
  const Module module = module_with(symbolic({"2"}), Dim::symbol("K"));
  const Value result = run(ops::call, {f32({2}, {1, 2})}, CallAttrs{{"body"}}, module, {{"K", 9}});
  EXPECT_EQ(result.elements[1].tensor.as_int(0), 9);
}

}  // namespace
}  // namespace backcast
