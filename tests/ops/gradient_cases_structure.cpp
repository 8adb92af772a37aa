// Tuples and calls.
#include "tests/ops/gradient_cases.h"

namespace backcast {

GradientCases structure_gradients() {
  const Value pair = Value::make_tuple({spread({2, 3}), spread({4}, -2, 2, 3)});
  const char* softplus = R"(
func @softplus(%x: f64[3]) -> f64[3] {
  %one = constant {value=f64[] 1}
  %ones = broadcast %one {shape=[3], dims=[]}
  %e = exp %x
  %s = add %ones, %e
  %y = log %s
  return %y
}
)";
  const std::string called = softplus;
  return {
      {&ops::tuple, "two operands, one of them twice", {spread({2}), spread({3})}, {}, R"(
func @main(%x: f64[2], %y: f64[3]) -> (f64[2], (f64[3], f64[2])) {
  %0 = tuple %y, %x
  %1 = tuple %x, %0
  return %1
})"},
      {&ops::tuple, "with integers", {spread({2}), i64({2}, {3, 4})}},
      {&ops::get, "first", {pair}, GetAttrs{0}},
      {&ops::get, "both, one of them twice", {pair}, {}, R"(
func @main(%p: (f64[2,3], f64[4])) -> (f64[4], f64[2,3]) {
  %0 = get %p {index=0}
  %1 = get %p {index=1}
  %2 = mul %1, %1
  %3 = tuple %2, %0
  return %3
})"},
      {&ops::get, "nested", {Value::make_tuple({pair, spread({4})})}, {}, R"(
func @main(%p: ((f64[2,3], f64[4]), f64[4])) -> f64[4] {
  %0 = get %p {index=0}
  %1 = get %0 {index=1}
  %2 = get %p {index=1}
  %3 = mul %1, %2
  return %3
})"},
      {&ops::call, "twice", {spread({3})}, {}, called + R"(
func @main(%x: f64[3]) -> f64[3] {
  %0 = call %x {function=@softplus}
  %1 = call %0 {function=@softplus}
  %2 = mul %0, %1
  return %2
})"},
      {&ops::call, "of two results with an unused operand", {spread({3}), spread({2})}, {}, R"(
func @both(%x: f64[3], %y: f64[2]) -> (f64[3], f64[3]) {
  %0 = mul %x, %x
  %1 = tuple %0, %x
  return %1
}

func @main(%x: f64[3], %y: f64[2]) -> f64[3] {
  %0 = call %x, %y {function=@both}
  %1 = get %0 {index=0}
  return %1
})"},
      {&ops::composite, "by its body", {spread({3})}, {}, called + R"(
func @main(%x: f64[3]) -> f64[3] {
  %0 = composite %x {name="softplus", function=@softplus}
  return %0
})"},
      {&ops::composite, "by its own gradient", {spread({3})}, {}, called + R"(
func @softplus_gradient(%x: f64[3], %y: f64[3], %u: f64[3]) -> (f64[3]) {
  %s = sigmoid %x
  %d = mul %s, %u
  %r = tuple %d
  return %r
}

func @main(%x: f64[3]) -> f64[3] {
  %0 = composite %x {name="softplus", function=@softplus, gradient=@softplus_gradient}
  return %0
})"},
      {&ops::stop_gradient,
       "in one of two ways",
       {f64({3}, {-1, 0, 2})},
       {},
       R"(
func @main(%x: f64[3]) -> f64[3] {
  %0 = stop_gradient %x
  %1 = mul %0, %x
  return %1
})",
       {f64({3}, {-1, 0, 2})}},
  };
}

}  // namespace backcast
