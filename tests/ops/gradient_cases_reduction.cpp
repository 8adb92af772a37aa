// Reductions and running reductions.
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

void sums_and_extrema(GradientCases& cases) {
  for (const Reduction kind : {Reduction::sum, Reduction::max, Reduction::min, Reduction::prod}) {
    const auto add = [&](const char* what, std::vector<int64_t> shape, Ints axes) {
      cases.push_back({&ops::reduce,
                       fmt::format("{} {}", enum_name(kind), what),
                       {spread(std::move(shape))},
                       ReduceAttrs{kind, std::move(axes)}});
    };
    add("last", {2, 3}, {1});
    add("first", {2, 3}, {0});
    add("outer two of three", {2, 3, 2}, {2, 0});
    add("all", {2, 2, 2}, {0, 1, 2});
    add("none", {2, 3}, {});
    add("of one element", {2, 1}, {1});
    add("of no elements", {2, 0}, {1});
    add("to no elements", {2, 0}, {0});
    cases.push_back({&ops::reduce,
                     fmt::format("{} symbolic", enum_name(kind)),
                     {spread({2, 3, 2})},
                     {},
                     fmt::format(R"(
symbol N in 1..4
symbol M in 1..4
func @main(%x: f64[N,M,2]) -> f64[M] {{
  %0 = mul %x, %x
  %1 = reduce %0 {{kind={}, axes=[0,2]}}
  return %1
}})",
                                 enum_name(kind))});
  }
}

void ties_and_zeros(GradientCases& cases) {
  const double third = 1.0 / 3;
  cases.push_back({&ops::reduce,
                   "max ties",
                   {f64({2, 4}, {3, 1, 3, 3, 0, -1, 2, 2})},
                   ReduceAttrs{Reduction::max, {1}},
                   "",
                   {f64({2, 4}, {third, 0, third, third, 0, 0, 0.5, 0.5})}});
  cases.push_back({&ops::reduce,
                   "min ties",
                   {f64({2, 2}, {1, 1, 1, 1})},
                   ReduceAttrs{Reduction::min, {0, 1}},
                   "",
                   {f64({2, 2}, {0.25, 0.25, 0.25, 0.25})}});
  // Products are polynomials: differences hold at zeros.
  const Literal zeros = f64({3, 3}, {2, 0, 3, 0, 0.5, 0, 1, -2, 3});
  cases.push_back({&ops::reduce, "prod zeros", {zeros}, ReduceAttrs{Reduction::prod, {1}}});
  cases.push_back({&ops::reduce, "prod all zeros", {zeros}, ReduceAttrs{Reduction::prod, {1, 0}}});
  for (const bool reverse : {false, true}) {
    for (const bool exclusive : {false, true}) {
      cases.push_back(
          {&ops::cumulative,
           fmt::format("prod zeros{}{}", reverse ? " reverse" : "", exclusive ? " exclusive" : ""),
           {zeros},
           CumulativeAttrs{Reduction::prod, 1, exclusive, reverse}});
    }
  }
}

void running(GradientCases& cases) {
  for (const Reduction kind : {Reduction::sum, Reduction::prod}) {
    const auto add = [&](const char* what, std::vector<int64_t> shape, int64_t axis, bool exclusive,
                         bool reverse) {
      cases.push_back({&ops::cumulative,
                       fmt::format("{} {}", enum_name(kind), what),
                       {spread(std::move(shape))},
                       CumulativeAttrs{kind, axis, exclusive, reverse}});
    };
    add("first axis", {5, 2}, 0, false, false);
    add("exclusive", {2, 4}, 1, true, false);
    add("reverse", {2, 3}, 1, false, true);
    add("exclusive reverse", {5, 2}, 0, true, true);
    add("one element", {2, 1}, 1, false, false);
    add("one element exclusive", {2, 1}, 1, true, false);
    add("no elements", {2, 0}, 1, false, false);
    add("nine", {9}, 0, false, false);
    cases.push_back({&ops::cumulative,
                     fmt::format("{} symbolic", enum_name(kind)),
                     {spread({3, 2})},
                     {},
                     fmt::format(R"(
symbol N in 1..6
func @main(%x: f64[N,2]) -> f64[N,2] {{
  %0 = cumulative %x {{kind={}, axis=0, exclusive=false, reverse=false}}
  return %0
}})",
                                 enum_name(kind))});
  }
}

}  // namespace

GradientCases reduction_gradients() {
  GradientCases cases;
  sums_and_extrema(cases);
  ties_and_zeros(cases);
  running(cases);
  return cases;
}

}  // namespace backcast
