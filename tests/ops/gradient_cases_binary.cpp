// Elementwise operators of two or three operands.
#include "tests/ops/gradient_cases.h"

namespace backcast {

GradientCases binary_gradients() {
  const Literal x = spread({2, 3}), y = spread({2, 3}, -2, 2, 5);
  return {
      {&ops::add, "two", {x, y}},
      {&ops::mul, "two", {x, y}},
      {&ops::add, "x + x", {x}, {}, R"(
func @main(%x: f64[2,3]) -> f64[2,3] {
  %0 = add %x, %x
  return %0
})"},
      {&ops::mul, "x * x", {x}, {}, R"(
func @main(%x: f64[2,3]) -> f64[2,3] {
  %0 = mul %x, %x
  return %0
})"},
      {&ops::mul, "no elements", {f64({0, 2}, {}), f64({0, 2}, {})}},
      {&ops::mul, "rank 0", {f64({}, {1.5}), f64({}, {-0.5})}},
  };
}

}  // namespace backcast
