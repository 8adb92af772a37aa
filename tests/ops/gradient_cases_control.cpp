// Branches and loops.
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

/// A recurrence with carries, rows, invariants and rows it gives; weighted by `%n` trips.
std::string recurrence(const std::string& attributes) {
  return R"(
func @step(%h: f64[2], %i: i64[], %x: f64[2], %w: f64[2,2], %b: f64[2])
    -> (f64[2], i64[], f64[2]) {
  %0 = dot_general %w, %h {lhs_contract=[1], rhs_contract=[0]}
  %1 = add %0, %x
  %2 = mul %1, %b
  %3 = tanh %2
  %4 = constant {value=i64[] 1}
  %5 = add %i, %4
  %6 = cast %5 {to=f64}
  %7 = broadcast %6 {shape=[2]}
  %8 = mul %7, %2
  %9 = tuple %3, %5, %8
  return %9
}
func @main(%n: i64[], %h: f64[2], %xs: f64[4,2], %w: f64[2,2], %b: f64[2])
    -> (f64[2], i64[], f64[4,2]) {
  %0 = constant {value=i64[] 0}
  %1 = scan %n, %h, %0, %xs, %w, %b {body=@step, carries=2, xs=1, length=4)" +
         attributes + R"(}
  return %1
})";
}

/// Runs while below a limit; how often depends on the values.
std::string while_loop(const std::string& attributes) {
  return R"(
func @grow(%go: bool[], %x: f64[], %y: f64[], %a: f64[]) -> (bool[], f64[], f64[], f64[]) {
  %0 = mul %x, %a
  %1 = mul %0, %y
  %2 = constant {value=f64[] 10}
  %3 = compare %0, %2 {direction=lt}
  %4 = tuple %3, %0, %1, %1
  return %4
}
func @main(%x: f64[], %a: f64[]) -> (bool[], f64[], f64[], f64[8]) {
  %0 = constant {value=bool[] true}
  %1 = constant {value=i64[] 8}
  %2 = scan %1, %0, %x, %x, %a {body=@grow, carries=3, length=8, conditional=true)" +
         attributes + R"(}
  return %2
})";
}

constexpr const char* kBranches = R"(
func @product(%x: f64[3], %y: f64[3], %k: i64[]) -> (f64[3], i64[]) {
  %0 = mul %x, %y
  %1 = tuple %0, %k
  return %1
}
func @sine(%x: f64[3], %y: f64[3], %k: i64[]) -> (f64[3], i64[]) {
  %0 = sin %x
  %1 = tuple %0, %k
  return %1
}
func @main(%c: bool[], %x: f64[3], %y: f64[3], %k: i64[]) -> (f64[3], i64[]) {
  %0 = if_else %c, %x, %y, %k {then=@product, otherwise=@sine}
  return %0
})";

/// A branch inside a scan inside a scan.
constexpr const char* kNested = R"(
func @half(%x: f64[]) -> f64[] {
  %0 = sin %x
  return %0
}
func @inner(%s: f64[], %x: f64[]) -> (f64[]) {
  %0 = constant {value=f64[] 0.25}
  %1 = compare %x, %0 {direction=lt}
  %2 = mul %s, %x
  %3 = if_else %1, %2 {then=@half, otherwise=@square} : f64[]
  %4 = add %s, %3
  %5 = tuple %4
  return %5
}
func @main(%s: f64[], %xs: f64[3,2]) -> (f64[]) {
  %0 = constant {value=i64[] 3}
  %1 = scan %0, %s, %xs {body=@outer, carries=1, xs=1, length=3, reverse=true} : (f64[])
  return %1
}
func @outer(%s: f64[], %row: f64[2]) -> (f64[]) {
  %0 = constant {value=i64[] 2}
  %1 = scan %0, %s, %row {body=@inner, carries=1, xs=1, length=2} : (f64[])
  return %1
}
func @square(%x: f64[]) -> f64[] {
  %0 = mul %x, %x
  return %0
})";

}  // namespace

GradientCases control_gradients() {
  const auto trips = [](int64_t n) {
    return std::vector<Value>{i64({}, {n}), spread({2}), spread({4, 2}, -2, 2, 1),
                              spread({2, 2}, -1, 1, 2), spread({2}, -1, 1, 3)};
  };
  const auto branch = [](double c) {
    return std::vector<Value>{bools({}, {c}), spread({3}), spread({3}, -2, 2, 1), i64({}, {7})};
  };
  return {
      {&ops::scan, "all trips", trips(4), {}, recurrence("")},
      {&ops::scan, "some trips", trips(3), {}, recurrence("")},
      {&ops::scan, "no trips", trips(0), {}, recurrence("")},
      {&ops::scan, "reverse", trips(3), {}, recurrence(", reverse=true")},
      {&ops::scan, "two segments", trips(4), {}, recurrence(", segments=2")},
      {&ops::scan, "uneven segments", trips(2), {}, recurrence(", segments=3")},
      {&ops::scan, "segments in reverse", trips(3), {}, recurrence(", segments=2, reverse=true")},
      {&ops::scan, "conditional", {f64({}, {1.5}), f64({}, {1.7})}, {}, while_loop("")},
      {&ops::scan,
       "conditional segments",
       {f64({}, {1.1}), f64({}, {1.2})},
       {},
       while_loop(", segments=3")},
      {&ops::scan, "nested", {f64({}, {0.5}), spread({3, 2}, -1, 1)}, {}, kNested},
      {&ops::if_else, "then", branch(1), {}, kBranches},
      {&ops::if_else, "otherwise", branch(0), {}, kBranches},
      {&ops::compare, "passes nothing", {spread({3}), spread({3}, -2, 2, 1)}, {}, R"(
func @main(%x: f64[3], %y: f64[3]) -> (bool[3], f64[3]) {
  %0 = compare %x, %y {direction=lt}
  %1 = mul %x, %y
  %2 = tuple %0, %1
  return %2
})"},
  };
}

}  // namespace backcast
