// Elementwise operators of one operand.
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

void smooth(GradientCases& cases) {
  const auto add = [&](const OpDef& op, double low, double high) {
    cases.push_back({&op, "", {spread({2, 3}, low, high)}});
  };
  // Symmetric ranges of six: nothing near 0, where some have a kink.
  add(ops::neg, -2, 2);
  add(ops::abs, -2, 2);
  add(ops::sqrt, 0.5, 3);
  add(ops::exp, -2, 2);
  add(ops::log, 0.5, 4);
  add(ops::sin, -3, 3);
  add(ops::cos, -3, 3);
  add(ops::tan, -1, 1);
  add(ops::asin, -0.8, 0.8);
  add(ops::acos, -0.8, 0.8);
  add(ops::atan, -3, 3);
  add(ops::sinh, -2, 2);
  add(ops::cosh, -2, 2);
  add(ops::asinh, -3, 3);
  add(ops::acosh, 1.3, 4);
  add(ops::atanh, -0.8, 0.8);
  add(ops::tanh, -2, 2);
  add(ops::sigmoid, -4, 4);
  add(ops::erf, -2, 2);
  add(ops::relu, -2, 2);
}

void kinks(GradientCases& cases) {
  const auto add = [&](const OpDef& op, const char* what, const std::vector<double>& x,
                       const std::vector<double>& adjoint) {
    const std::vector<int64_t> shape{static_cast<int64_t>(x.size())};
    cases.push_back({&op, what, {f64(shape, x)}, {}, "", {f64(shape, adjoint)}});
  };
  for (const OpDef* op : {&ops::floor, &ops::ceil, &ops::round_even, &ops::sign}) {
    add(*op, "is zero", {-1.2, 0, 2.7}, {0, 0, 0});
  }
  add(ops::relu, "at 0", {0, -0.0, 3, -3}, {0, 0, 1, 0});
  add(ops::abs, "at 0", {0, 3, -3}, {0, 1, -1});
  add(ops::sqrt, "at 0", {0, 4}, {kInf, 0.25});
  add(ops::log, "at 0", {0, 2}, {kInf, 0.5});
  add(ops::sigmoid, "far out", {-2000, 2000}, {0, 0});
  add(ops::tanh, "far out", {-400, 400}, {0, 0});
  add(ops::erf, "far out", {-40, 0, 40}, {0, 1.1283791670955126, 0});
  add(ops::asin, "at its ends", {-1, 1}, {kInf, kInf});
  add(ops::acosh, "at its end", {1}, {kInf});
}

void casts(GradientCases& cases) {
  // By differences a rounded result would be rough: the adjoint is rounded instead.
  cases.push_back({&ops::cast,
                   "to f32",
                   {f64({3}, {0.1, -2, 5})},
                   CastAttrs{ElementType::f32},
                   "",
                   {f64({3}, {1, 1, 1})}});
  cases.push_back({&ops::cast, "to integers", {spread({3})}, {}, R"(
func @main(%x: f64[3]) -> f64[3] {
  %0 = cast %x {to=i32}
  %1 = cast %0 {to=f64}
  %2 = mul %1, %x
  return %2
})"});
  cases.push_back({&ops::cast, "of integers", {i64({2}, {3, 4})}, CastAttrs{ElementType::f64}});
}

}  // namespace

GradientCases elementwise_gradients() {
  GradientCases cases;
  smooth(cases);
  kinks(cases);
  casts(cases);
  return cases;
}

}  // namespace backcast
