// Operators that move elements.
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

void broadcasts(GradientCases& cases) {
  const auto add = [&](const char* what, std::vector<int64_t> from, Dims to, Ints dims) {
    cases.push_back({&ops::broadcast, what, {spread(std::move(from))}, BroadcastAttrs{to, dims}});
  };
  add("new and stretched dimensions", {1, 3}, {2, 4, 3}, {1, 2});
  add("of a scalar", {}, {2, 3}, {});
  add("new dimension at the end", {3}, {3, 2}, {0});
  add("of nothing new", {2, 3}, {2, 3}, {0, 1});
  add("extents of one stay", {1, 3}, {1, 3, 1}, {0, 1});
  add("to no elements", {1, 3}, {0, 3}, {0, 1});
  add("of no elements", {0, 1}, {0, 3}, {0, 1});
  add("two stretched", {1, 1, 2}, {3, 2, 2}, {0, 1, 2});
  cases.push_back({&ops::broadcast, "symbolic", {spread({3, 1}), spread({3, 2})}, {}, R"(
symbol N in 1..5
func @main(%x: f64[N,1], %y: f64[N,2]) -> f64[4,N,2] {
  %0 = broadcast %x {shape=[4,N,2], dims=[1,2]}
  %1 = broadcast %y {shape=[4,N,2], dims=[1,2]}
  %2 = mul %0, %1
  return %2
})"});
}

void movements(GradientCases& cases) {
  cases.push_back({&ops::reshape, "plain", {spread({2, 6})}, ReshapeAttrs{{3, 1, 4}}});
  cases.push_back({&ops::reshape, "to a scalar", {spread({1, 1})}, ReshapeAttrs{{}}});
  cases.push_back({&ops::reshape, "no elements", {spread({0, 6})}, ReshapeAttrs{{2, 0}}});
  cases.push_back({&ops::reshape, "symbolic", {spread({3, 4})}, {}, R"(
symbol N in 1..5
func @main(%x: f64[N,4]) -> f64[N*2,2] {
  %0 = reshape %x {shape=[N*2,2]}
  %1 = mul %0, %0
  return %1
})"});
  cases.push_back({&ops::transpose, "a cycle", {spread({2, 3, 4})}, TransposeAttrs{{1, 2, 0}}});
  cases.push_back({&ops::transpose, "a swap", {spread({2, 3})}, TransposeAttrs{{1, 0}}});
  cases.push_back({&ops::transpose, "of nothing", {spread({2, 3})}, TransposeAttrs{{0, 1}}});
  cases.push_back({&ops::reverse, "two axes", {spread({2, 3, 2})}, ReverseAttrs{{2, 0}}});
  cases.push_back({&ops::reverse, "no axes", {spread({2, 3})}, ReverseAttrs{{}}});
  cases.push_back({&ops::reverse, "no elements", {spread({2, 0})}, ReverseAttrs{{0}}});
  for (const char* count : {"0", "2", "3"}) {
    cases.push_back({&ops::prefix,
                     fmt::format("{} of 3", count),
                     {spread({2, 3})},
                     {},
                     fmt::format(R"(
symbol K in 0..3
func @main(%x: f64[2,3]) -> f64[2] {{
  %0 = constant {{value=i64[] {}}}
  %1 = prefix %x, %0 {{axis=1, extent=K}}
  %2 = mul %1, %1
  %3 = reduce %2 {{kind=sum, axes=[1]}}
  return %3
}})",
                                 count)});
  }
}

void slices(GradientCases& cases) {
  const auto add = [&](const char* what, std::vector<int64_t> shape, SliceAttrs attrs) {
    cases.push_back({&ops::slice, what, {spread(std::move(shape))}, attrs});
  };
  add("middle", {5, 4}, {{1, 0}, {4, 3}, {1, 1}});
  add("strides", {7, 6}, {{1, 0}, {7, 6}, {3, 2}});
  add("last stride sticks out", {6}, {{1}, {6}, {4}});
  add("one element", {6}, {{2}, {3}, {5}});
  add("nothing", {6}, {{2}, {2}, {2}});
  add("nothing at the end", {6, 2}, {{6, 0}, {6, 2}, {1, 1}});
  add("all", {3, 2}, {{0, 0}, {3, 2}, {1, 1}});
  cases.push_back({&ops::slice, "symbolic", {spread({5, 2})}, {}, R"(
symbol N in 1..6
func @main(%x: f64[N,2]) -> f64[(N+1)/2,2] {
  %0 = slice %x {start=[0,0], limit=[N,2], stride=[2,1]}
  %1 = mul %0, %0
  return %1
})"});
  cases.push_back({&ops::slice, "symbolic and maybe empty", {spread({4})}, {}, R"(
symbol N in 0..6
func @main(%x: f64[N+1]) -> f64[(N+2)/3] {
  %0 = slice %x {start=[1], limit=[N+1], stride=[3]}
  %1 = mul %0, %0
  return %1
})"});
}

void pads(GradientCases& cases) {
  const auto add = [&](const char* what, std::vector<int64_t> shape, PadAttrs attrs) {
    cases.push_back({&ops::pad, what, {spread(std::move(shape)), f64({}, {0.5})}, attrs});
  };
  add("edges", {2, 3}, {{1, 0}, {2, 1}, {0, 0}});
  add("interior", {2, 3}, {{0, 1}, {0, 0}, {2, 1}});
  add("negative", {5, 4}, {{-1, 1}, {-2, -1}, {0, 0}});
  add("negative and interior", {5, 4}, {{-3, 2}, {1, -2}, {1, 2}});
  add("negative into the interior", {3}, {{-1}, {-1}, {2}});
  add("everything cropped", {3}, {{-2}, {-1}, {0}});
  add("all cropped, then padded", {3}, {{-4}, {6}, {0}});
  add("no elements", {0, 2}, {{1, 0}, {1, 0}, {1, 0}});
  add("nothing", {2, 3}, {{0, 0}, {0, 0}, {0, 0}});
  add("rank 0", {}, {{}, {}, {}});
  cases.push_back({&ops::pad, "symbolic", {spread({3, 2}), f64({}, {0.5})}, {}, R"(
symbol N in 1..6
func @main(%x: f64[N,2], %v: f64[]) -> f64[N*2+2,1] {
  %0 = pad %x, %v {low=[1,-1], high=[2,0], interior=[1,0]}
  %1 = mul %0, %0
  return %1
})"});
}

void concatenations(GradientCases& cases) {
  const Literal x = spread({2, 3}), y = spread({2, 1}, -2, 2, 5);
  cases.push_back({&ops::concat, "two", {x, y}, ConcatAttrs{1}});
  cases.push_back({&ops::concat, "one", {x}, ConcatAttrs{0}});
  cases.push_back({&ops::concat, "with an empty one", {y, spread({2, 0}), x}, ConcatAttrs{1}});
  cases.push_back({&ops::concat, "of integers", {i64({2}, {1, 2}), i64({1}, {3})}, ConcatAttrs{0}});
  cases.push_back({&ops::concat,
                   "symbolic and twice the same",
                   {spread({3, 2}), spread({2, 2})},
                   {},
                   R"(
symbol N in 1..6
symbol M in 1..6
func @main(%x: f64[N,2], %y: f64[M,2]) -> f64[M+N*2,2] {
  %0 = concat %x, %y, %x {axis=0}
  %1 = mul %0, %0
  return %1
})"});
}

}  // namespace

GradientCases shape_gradients() {
  GradientCases cases;
  broadcasts(cases);
  movements(cases);
  slices(cases);
  pads(cases);
  concatenations(cases);
  return cases;
}

}  // namespace backcast
