// Constants, tuples, dimension values. Calls are in call_test.cpp, except for what needs a case
// here.
#include "ir/graph/builder.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

/// @difference(x: f32[2], y: f32[2]) = x - y
Module difference_module() {
  Module module;
  Builder builder(module, "difference");
  const ValueId x = builder.parameter("x", TensorType{ElementType::f32, {2}});
  const ValueId y = builder.parameter("y", TensorType{ElementType::f32, {2}});
  builder.set_loc({"n", "Test", Origin::imported});
  module.functions["difference"] = builder.finish(builder.emit(ops::sub, {x, y}));
  return module;
}

}  // namespace

OpCases structure_cases() {
  const Literal a = f32({2}, {1, 2});
  const Literal b = i64({}, {7});
  const Value pair = Value::make_tuple({a, b});
  return {
      {&ops::constant, "tensor", {}, ConstantAttrs{a}, a},
      {&ops::constant, "empty", {}, ConstantAttrs{f32({0, 3}, {})}, f32({0, 3}, {})},
      {&ops::tuple, "pair", {a, b}, {}, pair},
      {&ops::tuple, "nested", {pair, a}, {}, Value::make_tuple({pair, a})},
      {&ops::tuple, "empty", {}, {}, Value::make_tuple({})},
      {&ops::get, "first", {pair}, GetAttrs{0}, a},
      {&ops::get, "inner tuple", {Value::make_tuple({a, pair})}, GetAttrs{1}, pair},
      {&ops::call,
       "two operands",
       {a, f32({2}, {5, 3})},
       CallAttrs{{"difference"}},
       f32({2}, {-4, -1}),
       0,
       difference_module()},
      {&ops::composite,
       "two operands",
       {a, f32({2}, {5, 3})},
       CompositeAttrs{"minus", {"difference"}},
       f32({2}, {-4, -1}),
       0,
       difference_module()},
      {&ops::stop_gradient, "is the operand", {a}, {}, a},
      {&ops::stop_gradient, "of bools", {bools({2}, {1, 0})}, {}, bools({2}, {1, 0})},
      {&ops::dimension, "number", {}, DimensionAttrs{Dim(6) * Dim(7)}, i64({}, {42})},
  };
}

}  // namespace backcast
