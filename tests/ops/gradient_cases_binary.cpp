// Elementwise operators of two or three operands.
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

void arithmetic(GradientCases& cases) {
  const Literal x = spread({2, 3}), y = spread({2, 3}, -2, 2, 5);
  const Literal large = spread({2, 3}, 3, 7, 2);
  for (const OpDef* op : {&ops::add, &ops::sub, &ops::mul, &ops::div, &ops::max, &ops::min}) {
    cases.push_back({op, "two", {x, y}});
    cases.push_back({op, "no elements", {f64({0, 2}, {}), f64({0, 2}, {})}});
    cases.push_back({op, "rank 0", {f64({}, {1.5}), f64({}, {-0.5})}});
  }
  for (const OpDef* op : {&ops::mod, &ops::rem}) {
    cases.push_back({op, "smaller divisor", {large, spread({2, 3}, 0.6, 2, 3)}});
    cases.push_back({op, "negative", {spread({6}, -7, 7), f64({6}, {2, -2, 1.7, -1.7, 3, -3})}});
    cases.push_back({op, "larger divisor", {x, large}});
  }
  cases.push_back({&ops::add, "x + x", {x}, {}, R"(
func @main(%x: f64[2,3]) -> f64[2,3] {
  %0 = add %x, %x
  return %0
})"});
  cases.push_back({&ops::mul, "x * x", {x}, {}, R"(
func @main(%x: f64[2,3]) -> f64[2,3] {
  %0 = mul %x, %x
  return %0
})"});
  cases.push_back({&ops::sub, "from a constant", {x}, {}, R"(
func @main(%x: f64[2,3]) -> f64[2,3] {
  %0 = constant {value=f64[] 2}
  %1 = broadcast %0 {shape=[2,3], dims=[]}
  %2 = sub %1, %x
  return %2
})"});
}

/// x to the power of a constant.
std::string power(double exponent) {
  return fmt::format(R"(
func @main(%x: f64[5]) -> f64[5] {{
  %0 = constant {{value=f64[] {}}}
  %1 = broadcast %0 {{shape=[5], dims=[]}}
  %2 = pow %x, %1
  return %2
}})",
                     exponent);
}

void powers(GradientCases& cases) {
  cases.push_back({&ops::pow, "two", {spread({2, 3}, 0.4, 2), spread({2, 3}, -2, 3, 1)}});
  const Literal with_zero = f64({5}, {-2, -0.5, 0, 0.7, 3});
  // Polynomials: differences hold at 0 and below too, in the second order as well.
  for (const double exponent : {0, 1, 2, 3}) {
    cases.push_back({&ops::pow, fmt::format("{}", exponent), {with_zero}, {}, power(exponent)});
  }
  cases.push_back({&ops::pow, "negative", {f64({5}, {-2, -0.5, 0.6, 0.7, 3})}, {}, power(-2)});
  cases.push_back({&ops::pow,
                   "of zero",
                   {f64({3}, {0, 0, 0}), f64({3}, {0, 0.5, 2})},
                   {},
                   "",
                   {f64({3}, {0, kInf, 0}), f64({3}, {0, 0, 0})}});
  cases.push_back({&ops::pow,
                   "of a negative base",
                   {f64({1}, {-2}), f64({1}, {2})},
                   {},
                   "",
                   {f64({1}, {-4}), f64({1}, {kNan})}});
}

void choices(GradientCases& cases) {
  cases.push_back({&ops::max,
                   "ties",
                   {f64({3}, {1, 2, 3}), f64({3}, {1, 0, 4})},
                   {},
                   "",
                   {f64({3}, {0.5, 1, 0}), f64({3}, {0.5, 0, 1})}});
  cases.push_back({&ops::min,
                   "ties",
                   {f64({3}, {1, 2, 3}), f64({3}, {1, 0, 4})},
                   {},
                   "",
                   {f64({3}, {0.5, 0, 1}), f64({3}, {0.5, 1, 0})}});
  const Literal p = bools({2, 3}, {1, 0, 1, 0, 0, 1});
  cases.push_back({&ops::select, "two", {p, spread({2, 3}), spread({2, 3}, -2, 2, 5)}});
  cases.push_back({&ops::select,
                   "keeps infinities out",
                   {f64({2}, {0, 4})},
                   {},
                   R"(
func @main(%x: f64[2]) -> f64[2] {
  %z = constant {value=f64[] 0}
  %zeros = broadcast %z {shape=[2], dims=[]}
  %o = constant {value=f64[] 1}
  %ones = broadcast %o {shape=[2], dims=[]}
  %p = compare %x, %zeros {direction=gt}
  %safe = select %p, %x, %ones
  %root = sqrt %safe
  %y = select %p, %root, %zeros
  return %y
})",
                   {f64({2}, {0, 0.25})}});
}

void clamps(GradientCases& cases) {
  const Literal x = spread({2, 3}, -3, 3);
  cases.push_back({&ops::clamp, "scalar bounds", {x, f64({}, {-1}), f64({}, {1.2})}});
  cases.push_back({&ops::clamp,
                   "bounds of its shape",
                   {x, spread({2, 3}, -2, 0, 1), spread({2, 3}, 0.3, 2, 2)}});
  cases.push_back({&ops::clamp, "one of each", {x, f64({}, {-1}), spread({2, 3}, 0.3, 2, 2)}});
  cases.push_back({&ops::clamp, "crossed bounds", {x, f64({}, {1.2}), f64({}, {-1})}});
  cases.push_back({&ops::clamp, "rank 0", {f64({}, {3}), f64({}, {-1}), f64({}, {1})}});
  cases.push_back({&ops::clamp,
                   "edges",
                   {f64({4}, {-1, 1, -2, 2}), f64({}, {-1}), f64({}, {1})},
                   {},
                   "",
                   {f64({4}, {1, 1, 0, 0}), f64({}, {1}), f64({}, {1})}});
}

}  // namespace

GradientCases binary_gradients() {
  GradientCases cases;
  arithmetic(cases);
  powers(cases);
  choices(cases);
  clamps(cases);
  return cases;
}

}  // namespace backcast
