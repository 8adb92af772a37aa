// Elementwise operators of one operand.
#include "tests/ops/gradient_cases.h"

namespace backcast {

GradientCases elementwise_gradients() {
  GradientCases cases;
  const auto smooth = [&](const OpDef& op, double low, double high) {
    cases.push_back({&op, "", {spread({2, 3}, low, high)}});
  };
  // Symmetric ranges of six: nothing near 0, where some have a kink.
  smooth(ops::neg, -2, 2);
  smooth(ops::abs, -2, 2);
  smooth(ops::sqrt, 0.5, 3);
  smooth(ops::exp, -2, 2);
  smooth(ops::log, 0.5, 4);
  smooth(ops::sin, -3, 3);
  smooth(ops::cos, -3, 3);
  smooth(ops::tan, -1, 1);
  smooth(ops::asin, -0.8, 0.8);
  smooth(ops::acos, -0.8, 0.8);
  smooth(ops::atan, -3, 3);
  smooth(ops::sinh, -2, 2);
  smooth(ops::cosh, -2, 2);
  smooth(ops::asinh, -3, 3);
  smooth(ops::acosh, 1.3, 4);
  smooth(ops::atanh, -0.8, 0.8);
  smooth(ops::tanh, -2, 2);
  smooth(ops::sigmoid, -4, 4);
  smooth(ops::erf, -2, 2);
  smooth(ops::relu, -2, 2);
  for (const OpDef* op : {&ops::floor, &ops::ceil, &ops::round_even, &ops::sign}) {
    cases.push_back({op, "is zero", {f64({3}, {-1.2, 0, 2.7})}, {}, "", {f64({3}, {0, 0, 0})}});
  }
  return cases;
}

}  // namespace backcast
