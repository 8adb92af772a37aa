// Reductions, windows, running sums and top_k.
#include "tests/ops/cases.h"

namespace backcast {
namespace {

using E = ElementType;

void reductions(OpCases& cases) {
  const Literal x = f32({2, 3}, {1, 5, 3, 4, 2, 6});
  const auto add = [&](const char* what, Literal operand, Reduction kind, Ints axes, Literal y) {
    cases.push_back({&ops::reduce, what, {operand}, ReduceAttrs{kind, axes}, y});
  };
  add("sum of rows", x, Reduction::sum, {1}, f32({2}, {9, 12}));
  add("sum of columns", x, Reduction::sum, {0}, f32({3}, {5, 7, 9}));
  add("sum of all", x, Reduction::sum, {1, 0}, f32({}, {21}));
  add("no axes", x, Reduction::sum, {}, x);
  add("prod", x, Reduction::prod, {1}, f32({2}, {15, 48}));
  add("max", x, Reduction::max, {1}, f32({2}, {5, 6}));
  add("min", x, Reduction::min, {0}, f32({3}, {1, 2, 3}));
  add("middle axis", i32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), Reduction::sum, {1},
      i32({2, 2}, {4, 6, 12, 14}));
  add("max of NaN", f32({3}, {1, kNan, 3}), Reduction::max, {0}, f32({}, {kNan}));
  add("min of NaN", f32({3}, {1, kNan, 3}), Reduction::min, {0}, f32({}, {kNan}));
  add("sum of nothing", f32({2, 0}, {}), Reduction::sum, {1}, f32({2}, {0, 0}));
  add("prod of nothing", f32({0}, {}), Reduction::prod, {0}, f32({}, {1}));
  add("max of nothing", f32({0}, {}), Reduction::max, {0}, f32({}, {-kInf}));
  add("min of nothing", tensor(E::f16, {0}, {}), Reduction::min, {0}, tensor(E::f16, {}, {kInf}));
  add("max of no integers", tensor(E::i8, {0}, {}), Reduction::max, {0}, tensor(E::i8, {}, {-128}));
  add("min of no integers", tensor(E::u8, {0}, {}), Reduction::min, {0}, tensor(E::u8, {}, {255}));
  add("and of nothing", tensor(E::u8, {0}, {}), Reduction::bit_and, {0}, tensor(E::u8, {}, {255}));
  add("and of no bools", bools({0}, {}), Reduction::bit_and, {0}, bools({}, {1}));
  add("or of no bools", bools({0}, {}), Reduction::bit_or, {0}, bools({}, {0}));
  add("and", bools({2, 2}, {1, 1, 1, 0}), Reduction::bit_and, {1}, bools({2}, {1, 0}));
  add("or", tensor(E::u8, {3}, {1, 4, 16}), Reduction::bit_or, {0}, tensor(E::u8, {}, {21}));
  add("max of bools", bools({2}, {0, 1}), Reduction::max, {0}, bools({}, {1}));
  add("i64 is exact", i64({2}, {9007199254740993, 1}), Reduction::sum, {0},
      i64({}, {9007199254740994}));
  add("i8 wraps", tensor(E::i8, {2}, {100, 100}), Reduction::sum, {0}, tensor(E::i8, {}, {-56}));
  add("u64 maximum", raw<uint64_t>(E::u64, {2}, {~uint64_t{0}, 1}), Reduction::max, {0},
      raw<uint64_t>(E::u64, {}, {~uint64_t{0}}));
  add("f32 accumulates in double", f32({3}, {16777216, 1, 1}), Reduction::sum, {0},
      f32({}, {16777218}));
  add("f16 rounds once", tensor(E::f16, {3}, {2048, 1, 1}), Reduction::sum, {0},
      tensor(E::f16, {}, {2050}));
}

void positions(OpCases& cases) {
  const auto add = [&](const char* what, Literal x, ArgReduceAttrs attrs, Literal y) {
    cases.push_back({&ops::arg_reduce, what, {x}, attrs, y});
  };
  const Literal x = f32({2, 3}, {1, 5, 5, 4, 2, 2});
  add("max", x, {Reduction::max, 1, false}, i64({2}, {1, 0}));
  add("last max", x, {Reduction::max, 1, true}, i64({2}, {2, 0}));
  add("min", x, {Reduction::min, 1, false}, i64({2}, {0, 1}));
  add("last min", x, {Reduction::min, 1, true}, i64({2}, {0, 2}));
  add("axis 0", x, {Reduction::max, 0, false}, i64({3}, {1, 0, 0}));
  add("NaN is the maximum", f32({4}, {1, kNan, 9, kNan}), {Reduction::max, 0, false}, i64({}, {1}));
  add("NaN is the minimum", f32({4}, {1, kNan, -9, kNan}), {Reduction::min, 0, false},
      i64({}, {1}));
  add("first NaN even for last", f32({3}, {kNan, kNan, 1}), {Reduction::max, 0, true},
      i64({}, {0}));
  add("all infinite", f32({2}, {-kInf, -kInf}), {Reduction::max, 0, false}, i64({}, {0}));
  add("i64", i64({2}, {INT64_MAX - 1, INT64_MAX}), {Reduction::max, 0, false}, i64({}, {1}));
  add("bool", bools({3}, {0, 1, 1}), {Reduction::max, 0, false}, i64({}, {1}));
  add("no rows", f32({0, 3}, {}), {Reduction::max, 1, false}, i64({0}, {}));
}

void windows(OpCases& cases) {
  const auto add = [&](const char* what, Literal x, ReduceWindowAttrs attrs, Literal y) {
    cases.push_back({&ops::reduce_window, what, {x}, attrs, y});
  };
  const Literal x = f32({5}, {3, 1, 4, 1, 5});
  add("max", x, {Reduction::max, {2}, {1}, {1}, {0}, {0}}, f32({4}, {3, 4, 4, 5}));
  add("sum with stride", x, {Reduction::sum, {3}, {2}, {1}, {0}, {0}}, f32({2}, {8, 10}));
  add("pads are left out", x, {Reduction::min, {2}, {2}, {1}, {1}, {1}}, f32({3}, {3, 1, 1}));
  add("dilation", x, {Reduction::sum, {2}, {1}, {3}, {0}, {0}}, f32({2}, {4, 6}));
  add("negative pads", x, {Reduction::sum, {2}, {1}, {1}, {-1}, {-1}}, f32({2}, {5, 5}));
  add("windows outside", f32({1}, {7}), {Reduction::max, {1}, {1}, {1}, {1}, {1}},
      f32({3}, {-kInf, 7, -kInf}));
  add("box", f32({1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
      {Reduction::sum, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      f32({1, 2, 2}, {12, 16, 24, 28}));
  add("NaN", f32({3}, {1, kNan, 2}), {Reduction::max, {2}, {1}, {1}, {0}, {0}},
      f32({2}, {kNan, kNan}));
  add("i32 product", i32({3}, {2, 3, 4}), {Reduction::prod, {2}, {1}, {1}, {0}, {0}},
      i32({2}, {6, 12}));
  add("scalar", f32({}, {3}), {Reduction::sum, {}, {}, {}, {}, {}}, f32({}, {3}));
  add("empty input", f32({0}, {}), {Reduction::max, {2}, {1}, {1}, {0}, {0}}, f32({0}, {}));
}

void running(OpCases& cases) {
  const auto add = [&](const char* what, Literal x, CumulativeAttrs attrs, Literal y) {
    cases.push_back({&ops::cumulative, what, {x}, attrs, y});
  };
  const Literal x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  add("rows", x, {Reduction::sum, 1, false, false}, f32({2, 3}, {1, 3, 6, 4, 9, 15}));
  add("columns", x, {Reduction::sum, 0, false, false}, f32({2, 3}, {1, 2, 3, 5, 7, 9}));
  add("exclusive", x, {Reduction::sum, 1, true, false}, f32({2, 3}, {0, 1, 3, 0, 4, 9}));
  add("reverse", x, {Reduction::sum, 1, false, true}, f32({2, 3}, {6, 5, 3, 15, 11, 6}));
  add("both", x, {Reduction::sum, 1, true, true}, f32({2, 3}, {5, 3, 0, 11, 6, 0}));
  add("product", x, {Reduction::prod, 1, false, false}, f32({2, 3}, {1, 2, 6, 4, 20, 120}));
  add("i32 exclusive product", i32({3}, {2, 3, 4}), {Reduction::prod, 0, true, false},
      i32({3}, {1, 2, 6}));
  add("empty", f32({0}, {}), {Reduction::sum, 0, false, false}, f32({0}, {}));
}

void best(OpCases& cases) {
  const auto add = [&](const char* what, Literal x, TopKAttrs attrs, Literal values, Literal at) {
    cases.push_back({&ops::top_k, what, {x}, attrs, Value::make_tuple({values, at})});
  };
  const Literal x = f32({2, 4}, {1, 3, 3, 2, 8, 5, 6, 7});
  add("largest", x, {2, 1, true}, f32({2, 2}, {3, 3, 8, 7}), i64({2, 2}, {1, 2, 0, 3}));
  add("smallest", x, {3, 1, false}, f32({2, 3}, {1, 2, 3, 5, 6, 7}),
      i64({2, 3}, {0, 3, 1, 1, 2, 3}));
  add("axis 0", x, {1, 0, true}, f32({1, 4}, {8, 5, 6, 7}), i64({1, 4}, {1, 1, 1, 1}));
  add("inner stride", i32({1, 3, 2}, {1, 6, 2, 5, 3, 4}), {2, 1, true},
      i32({1, 2, 2}, {3, 6, 2, 5}), i64({1, 2, 2}, {2, 0, 1, 1}));
  add("none", x, {0, 1, true}, f32({2, 0}, {}), i64({2, 0}, {}));
  add("all", i32({3}, {2, 9, 4}), {3, 0, true}, i32({3}, {9, 4, 2}), i64({3}, {1, 2, 0}));
  add("NaN is the largest", f32({4}, {1, kNan, kInf, kNan}), {3, 0, true},
      f32({3}, {kNan, kNan, kInf}), i64({3}, {1, 3, 2}));
  add("NaN is not small", f32({3}, {kNan, 1, -1}), {3, 0, false}, f32({3}, {-1, 1, kNan}),
      i64({3}, {2, 1, 0}));
  add("u64", u64({1, ~uint64_t{0}}), {1, 0, true}, u64({~uint64_t{0}}), i64({1}, {1}));
}

}  // namespace

OpCases reduction_cases() {
  OpCases cases;
  reductions(cases);
  positions(cases);
  windows(cases);
  running(cases);
  best(cases);
  return cases;
}

}  // namespace backcast
