// if_else and scan on values worked out by hand.
#include "ir/graph/text.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

Module choices() {
  return parse_module(R"(
func @twice(%x: f32[2]) -> f32[2] {
  %0 = add %x, %x
  return %0
}
func @negative(%x: f32[2]) -> f32[2] {
  %0 = neg %x
  return %0
})");
}

/// Sums rows into a carry and gives the sum so far, weighted by an invariant.
Module sums() {
  return parse_module(R"(
func @sum(%s: f32[2], %x: f32[2], %w: f32[2]) -> (f32[2], f32[2]) {
  %0 = add %s, %x
  %1 = mul %0, %w
  %2 = tuple %0, %1
  return %2
})");
}

/// Doubles while below 10.
Module doubling() {
  return parse_module(R"(
func @double(%go: bool[], %x: f32[]) -> (bool[], f32[], f32[]) {
  %0 = add %x, %x
  %1 = constant {value=f32[] 10}
  %2 = compare %0, %1 {direction=lt}
  %3 = tuple %2, %0, %x
  return %3
})");
}

Attrs scan_attrs(const std::string& body, int64_t carries, int64_t xs, int64_t length) {
  ScanAttrs attrs;
  attrs.body = {body};
  attrs.carries = carries;
  attrs.xs = xs;
  attrs.length = length;
  return attrs;
}

Attrs with(const Attrs& attrs, const std::vector<std::string>& flags) {
  Attrs result = attrs;
  for (const std::string& flag : flags) result = result.with({{flag, true}});
  return result;
}

}  // namespace

OpCases control_cases() {
  const Literal x = f32({2}, {1, 2});
  const Literal zero = f32({2}, {0, 0}), w = f32({2}, {10, 100});
  const Literal rows = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  const Attrs branches = IfElseAttrs{{"twice"}, {"negative"}};
  const Attrs sum = scan_attrs("sum", 1, 1, 3);
  const Attrs loop = with(scan_attrs("double", 2, 0, 6), {"conditional"});
  const auto scanned = [&](int64_t trips) {
    return std::vector<Value>{i64({}, {trips}), zero, rows, w};
  };
  const Literal all = f32({3, 2}, {10, 200, 40, 600, 90, 1200});
  const auto pair = [](Literal a, Literal b) { return Value::make_tuple({a, b}); };
  return {
      {&ops::if_else, "true", {bools({}, {1}), x}, branches, f32({2}, {2, 4}), 0, choices()},
      {&ops::if_else, "false", {bools({}, {0}), x}, branches, f32({2}, {-1, -2}), 0, choices()},
      {&ops::scan, "all rows", scanned(3), sum, pair(f32({2}, {9, 12}), all), 0, sums()},
      {&ops::scan, "more trips than rows", scanned(9), sum, pair(f32({2}, {9, 12}), all), 0,
       sums()},
      {&ops::scan, "fewer trips", scanned(2), sum,
       pair(f32({2}, {4, 6}), f32({3, 2}, {10, 200, 40, 600, 0, 0})), 0, sums()},
      {&ops::scan, "no trips", scanned(-1), sum, pair(zero, f32({3, 2}, {0, 0, 0, 0, 0, 0})), 0,
       sums()},
      {&ops::scan, "reverse", scanned(2), with(sum, {"reverse"}),
       pair(f32({2}, {4, 6}), f32({3, 2}, {40, 600, 30, 400, 0, 0})), 0, sums()},
      {&ops::scan, "trajectory", scanned(2), with(sum, {"trajectory"}),
       Value::make_tuple({f32({2}, {4, 6}), f32({3, 2}, {10, 200, 40, 600, 0, 0}),
                          f32({3, 2}, {0, 0, 1, 2, 0, 0}), i64({}, {2})}),
       0, sums()},
      {&ops::scan,
       "conditional",
       {i64({}, {6}), bools({}, {1}), f32({}, {3})},
       loop,
       Value::make_tuple({bools({}, {0}), f32({}, {12}), f32({6}, {3, 6, 0, 0, 0, 0})}),
       0,
       doubling()},
      {&ops::scan,
       "never begun",
       {i64({}, {6}), bools({}, {0}), f32({}, {3})},
       loop,
       Value::make_tuple({bools({}, {0}), f32({}, {3}), f32({6}, {0, 0, 0, 0, 0, 0})}),
       0,
       doubling()},
  };
}

}  // namespace backcast
