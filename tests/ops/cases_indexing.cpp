// gather and scatter.
#include "tests/ops/cases.h"

namespace backcast {
namespace {

using E = ElementType;

void gathers(OpCases& cases) {
  const Literal x = f32({3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  // Rows 2 and 0: ONNX's Gather on axis 0, with a trailing implicit index vector.
  const GatherAttrs rows{{1}, {0}, {}, {}, {0}, 1, {1, 4}};
  cases.push_back({&ops::gather,
                   "rows",
                   {x, i64({2}, {2, 0})},
                   rows,
                   f32({2, 4}, {20, 21, 22, 23, 0, 1, 2, 3})});
  cases.push_back({&ops::gather,
                   "clamps",
                   {x, i64({2}, {7, -3})},
                   rows,
                   f32({2, 4}, {20, 21, 22, 23, 0, 1, 2, 3})});
  cases.push_back({&ops::gather,
                   "u64 beyond i64 clamps",
                   {x, u64({~uint64_t{0}, 1})},
                   rows,
                   f32({2, 4}, {20, 21, 22, 23, 10, 11, 12, 13})});
  cases.push_back({&ops::gather,
                   "columns",
                   {x, tensor(E::u8, {2}, {3, 1})},
                   GatherAttrs{{0}, {1}, {}, {}, {1}, 1, {3, 1}},
                   f32({3, 2}, {3, 1, 13, 11, 23, 21})});
  // Index vectors in columns of the indices, addressing (column, row); windows of 1 x 2.
  cases.push_back({&ops::gather,
                   "index vectors",
                   {x, i32({2, 2}, {1, 3, 2, 0})},
                   GatherAttrs{{1}, {0}, {}, {}, {1, 0}, 0, {1, 2}},
                   f32({2, 2}, {21, 22, 2, 3})});
  cases.push_back({&ops::gather,
                   "window first",
                   {x, i64({2, 1}, {0, 1})},
                   GatherAttrs{{0, 1}, {}, {}, {}, {0}, 1, {2, 3}},
                   f32({2, 3, 2}, {0, 10, 1, 11, 2, 12, 10, 20, 11, 21, 12, 22})});
  // One element of every row: x's and the indices' dimension 0 are batches.
  cases.push_back({&ops::gather,
                   "batching",
                   {x, i64({3, 2}, {3, 0, 1, 1, 9, 2})},
                   GatherAttrs{{}, {1}, {0}, {0}, {1}, 2, {1, 1}},
                   f32({3, 2}, {3, 0, 11, 11, 23, 22})});
  cases.push_back({&ops::gather,
                   "whole",
                   {x, i64({0}, {})},
                   GatherAttrs{{0, 1}, {}, {}, {}, {}, 0, {3, 4}},
                   x});
  cases.push_back({&ops::gather, "no places", {x, i64({0}, {})}, rows, f32({0, 4}, {})});
  cases.push_back({&ops::gather,
                   "empty window",
                   {x, i64({2}, {0, 1})},
                   GatherAttrs{{1}, {0}, {}, {}, {0}, 1, {1, 0}},
                   f32({2, 0}, {})});
}

void scatters(OpCases& cases) {
  const Literal x = f32({4}, {1, 2, 3, 4});
  const auto elements = [](Combiner combiner) {
    return ScatterAttrs{combiner, {}, {0}, {}, {}, {0}, 1};
  };
  const Literal at = i64({3}, {3, 1, 3});
  const Literal updates = f32({3}, {10, 20, 30});
  const auto add = [&](const char* what, Combiner combiner, std::vector<double> expected) {
    cases.push_back(
        {&ops::scatter, what, {x, at, updates}, elements(combiner), f32({4}, expected)});
  };
  add("last assignment wins", Combiner::assign, {1, 20, 3, 30});
  add("add", Combiner::add, {1, 22, 3, 44});
  add("mul", Combiner::mul, {1, 40, 3, 1200});
  add("min", Combiner::min, {1, 2, 3, 4});
  add("max", Combiner::max, {1, 20, 3, 30});
  cases.push_back({&ops::scatter,
                   "outside is left out",
                   {x, i64({3}, {-1, 4, 0}), updates},
                   elements(Combiner::assign),
                   f32({4}, {30, 2, 3, 4})});
  cases.push_back({&ops::scatter,
                   "NaN",
                   {x, i64({2}, {0, 1}), f32({2}, {kNan, 5})},
                   elements(Combiner::max),
                   f32({4}, {kNan, 5, 3, 4})});
  cases.push_back({&ops::scatter,
                   "f16 rounds once",
                   {tensor(E::f16, {1}, {2048}), i64({2}, {0, 0}), tensor(E::f16, {2}, {1, 1})},
                   elements(Combiner::add),
                   tensor(E::f16, {1}, {2050})});
  // Windows of two rows; the second one sticks out and is left out whole.
  const ScatterAttrs windows{Combiner::add, {1, 2}, {}, {}, {}, {0}, 1};
  cases.push_back({&ops::scatter,
                   "windows",
                   {f32({3, 2}, {0, 0, 0, 0, 0, 0}), i64({2}, {1, 2}),
                    f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                   windows,
                   f32({3, 2}, {0, 0, 1, 2, 3, 4})});
  // The window dimension comes first: row-major order of the updates decides between overlapping
  // windows, so that element (1, place 0) comes after element (0, place 1).
  cases.push_back({&ops::scatter,
                   "order of the updates",
                   {f32({3}, {0, 0, 0}), i64({2}, {0, 1}), f32({2, 2}, {1, 2, 3, 4})},
                   ScatterAttrs{Combiner::assign, {0}, {}, {}, {}, {0}, 1},
                   f32({3}, {1, 3, 4})});
  cases.push_back(
      {&ops::scatter,
       "batching",
       {i32({2, 3}, {0, 0, 0, 0, 0, 0}), i64({2, 2}, {0, 2, 1, 1}), i32({2, 2}, {1, 2, 3, 4})},
       ScatterAttrs{Combiner::add, {}, {1}, {0}, {0}, {1}, 2},
       i32({2, 3}, {1, 0, 2, 0, 7, 0})});
  cases.push_back({&ops::scatter,
                   "i64 wraps",
                   {i64({1}, {INT64_MAX}), i64({1}, {0}), i64({1}, {1})},
                   elements(Combiner::add),
                   i64({1}, {INT64_MIN})});
  cases.push_back({&ops::scatter,
                   "bool",
                   {bools({2}, {0, 0}), i64({1}, {1}), bools({1}, {1})},
                   elements(Combiner::max),
                   bools({2}, {0, 1})});
  cases.push_back(
      {&ops::scatter, "no updates", {x, i64({0}, {}), f32({0}, {})}, elements(Combiner::add), x});
}

}  // namespace

OpCases indexing_cases() {
  OpCases cases;
  gathers(cases);
  scatters(cases);
  return cases;
}

}  // namespace backcast
