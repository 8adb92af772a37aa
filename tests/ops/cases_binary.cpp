// Elementwise operators of two and three operands.
#include "tests/ops/cases.h"

namespace backcast {
namespace {

constexpr double kLow = -2147483648.0;
constexpr uint64_t kAll = ~uint64_t{0};
using E = ElementType;

void add(OpCases& cases, const OpDef& op, const char* what, Literal a, Literal b, Literal y) {
  cases.push_back({&op, what, {a, b}, {}, y});
}

void arithmetic(OpCases& cases) {
  add(cases, ops::add, "f32", f32({2, 2}, {1, 2, kInf, 4}), f32({2, 2}, {10, -2, -kInf, 0.5}),
      f32({2, 2}, {11, 0, kNan, 4.5}));
  add(cases, ops::add, "f16 rounds to even", tensor(E::f16, {1}, {2048}), tensor(E::f16, {1}, {1}),
      tensor(E::f16, {1}, {2048}));
  add(cases, ops::add, "i8 wraps", tensor(E::i8, {2}, {127, -128}), tensor(E::i8, {2}, {1, -1}),
      tensor(E::i8, {2}, {-128, 127}));
  add(cases, ops::add, "i64 is exact", i64({2}, {INT64_MAX, 9007199254740993}), i64({2}, {1, 1}),
      i64({2}, {INT64_MIN, 9007199254740994}));
  add(cases, ops::sub, "f32", f32({2}, {1, 1}), f32({2}, {3, 1}), f32({2}, {-2, 0}));
  add(cases, ops::sub, "u64 wraps", u64({0}), u64({1}), u64({kAll}));
  add(cases, ops::mul, "f32", f32({3}, {2, 0, -3}), f32({3}, {4, kInf, 0}),
      f32({3}, {8, kNan, -0.0}));
  add(cases, ops::mul, "u16 wraps", tensor(E::u16, {1}, {65535}), tensor(E::u16, {1}, {65535}),
      tensor(E::u16, {1}, {1}));
  add(cases, ops::mul, "i64 wraps", i64({1}, {int64_t{1} << 62}), i64({1}, {6}),
      i64({1}, {INT64_MIN}));
  add(cases, ops::div, "f32", f32({3}, {1, 1, 0}), f32({3}, {4, 0, 0}),
      f32({3}, {0.25, kInf, kNan}));
  add(cases, ops::div, "i32", i32({6}, {7, -7, 7, -7, 5, kLow}), i32({6}, {2, 2, -2, -2, 0, -1}),
      i32({6}, {3, -3, -3, 3, 0, kLow}));
  add(cases, ops::div, "i64 lowest", i64({2}, {INT64_MIN, 9007199254740993}), i64({2}, {-1, 1}),
      i64({2}, {INT64_MIN, 9007199254740993}));
  add(cases, ops::div, "u64", u64({kAll, kAll}), u64({2, 0}), u64({kAll / 2, 0}));
  add(cases, ops::mod, "i32", i32({7}, {7, -7, 7, -7, 6, 5, kLow}),
      i32({7}, {3, 3, -3, -3, 3, 0, -1}), i32({7}, {1, 2, -2, -1, 0, 0, 0}));
  add(cases, ops::mod, "f32", f32({6}, {5.5, -5.5, 5.5, -5.5, 1, -6}),
      f32({6}, {3, 3, -3, -3, 0, 3}), f32({6}, {2.5, 0.5, -0.5, -2.5, kNan, -0.0}));
  add(cases, ops::rem, "i32", i32({6}, {7, -7, 7, -7, 5, kLow}), i32({6}, {3, 3, -3, -3, 0, -1}),
      i32({6}, {1, -1, 1, -1, 0, 0}));
  add(cases, ops::rem, "f32", f32({5}, {5.5, -5.5, 5.5, 1, 2}), f32({5}, {3, 3, -3, 0, kInf}),
      f32({5}, {2.5, -2.5, 2.5, kNan, 2}));
  add(cases, ops::rem, "u64", u64({kAll}), u64({10}), u64({5}));
  add(cases, ops::pow, "f32", f32({6}, {2, -2, 0, -1, 2, 4}), f32({6}, {10, 3, 0, 0.5, -1, 0.5}),
      f32({6}, {1024, -8, 1, kNan, 0.5, 2}));
  add(cases, ops::pow, "i32", i32({8}, {3, 2, -2, 0, 1, -1, -1, 0}),
      i32({8}, {4, 31, 3, 0, -5, -5, -4, -1}), i32({8}, {81, kLow, -8, 1, 1, -1, 1, 0}));
  add(cases, ops::pow, "i64 is exact", i64({2}, {3, 2}), i64({2}, {39, 64}),
      i64({2}, {4052555153018976267, 0}));
  add(cases, ops::pow, "large exponents", i64({2}, {-1, 0}), i64({2}, {65, 64}), i64({2}, {-1, 0}));
}

void ordering(OpCases& cases) {
  const Literal a = f32({4}, {1, kNan, 3, -kInf});
  const Literal b = f32({4}, {2, 2, kNan, 0});
  add(cases, ops::min, "f32", a, b, f32({4}, {1, kNan, kNan, -kInf}));
  add(cases, ops::max, "f32", a, b, f32({4}, {2, kNan, kNan, 0}));
  add(cases, ops::min, "u64", u64({kAll, 3}), u64({kAll - 1, 5}), u64({kAll - 1, 3}));
  add(cases, ops::max, "i64", i64({1}, {INT64_MAX}), i64({1}, {INT64_MAX - 1}),
      i64({1}, {INT64_MAX}));
  const Literal p = bools({4}, {0, 0, 1, 1});
  const Literal q = bools({4}, {0, 1, 0, 1});
  add(cases, ops::min, "bool", p, q, bools({4}, {0, 0, 0, 1}));
  add(cases, ops::max, "bool", p, q, bools({4}, {0, 1, 1, 1}));
  add(cases, ops::bit_and, "bool", p, q, bools({4}, {0, 0, 0, 1}));
  add(cases, ops::bit_or, "bool", p, q, bools({4}, {0, 1, 1, 1}));
  add(cases, ops::bit_xor, "bool", p, q, bools({4}, {0, 1, 1, 0}));
  add(cases, ops::bit_and, "i32", i32({2}, {12, -1}), i32({2}, {10, 7}), i32({2}, {8, 7}));
  add(cases, ops::bit_or, "u64", u64({kAll << 1}), u64({1}), u64({kAll}));
  add(cases, ops::bit_xor, "i32", i32({1}, {12}), i32({1}, {10}), i32({1}, {6}));
}

void shifts(OpCases& cases) {
  add(cases, ops::shift_left, "u8", tensor(E::u8, {4}, {1, 255, 1, 1}),
      tensor(E::u8, {4}, {7, 1, 8, 255}), tensor(E::u8, {4}, {128, 254, 0, 0}));
  add(cases, ops::shift_left, "i64", i64({3}, {1, 1, 1}), i64({3}, {63, 64, -1}),
      i64({3}, {INT64_MIN, 0, 0}));
  add(cases, ops::shift_right, "u64", u64({kAll, kAll, kAll}), u64({63, 64, kAll}), u64({1, 0, 0}));
  add(cases, ops::shift_right, "i32 is arithmetic", i32({4}, {-8, -1, -1, 8}),
      i32({4}, {1, 31, 32, -1}), i32({4}, {-4, -1, 0, 0}));
}

void choices(OpCases& cases) {
  const Literal a = f32({4}, {1, 2, 3, kNan});
  const Literal b = f32({4}, {2, 2, 2, kNan});
  const auto compare = [&](Comparison direction, std::vector<double> expected) {
    cases.push_back({&ops::compare,
                     std::string(enum_name(direction)),
                     {a, b},
                     CompareAttrs{direction},
                     bools({4}, expected)});
  };
  compare(Comparison::eq, {0, 1, 0, 0});
  compare(Comparison::ne, {1, 0, 1, 1});
  compare(Comparison::lt, {1, 0, 0, 0});
  compare(Comparison::le, {1, 1, 0, 0});
  compare(Comparison::gt, {0, 0, 1, 0});
  compare(Comparison::ge, {0, 1, 1, 0});
  cases.push_back({&ops::compare,
                   "u64",
                   {u64({kAll}), u64({kAll - 1})},
                   CompareAttrs{Comparison::gt},
                   bools({1}, {1})});
  cases.push_back({&ops::compare,
                   "bool",
                   {bools({2}, {0, 1}), bools({2}, {1, 1})},
                   CompareAttrs{Comparison::lt},
                   bools({2}, {1, 0})});
  const Literal p = bools({4}, {1, 0, 0, 1});
  cases.push_back({&ops::select, "f32", {p, a, b}, {}, f32({4}, {1, 2, 2, kNan})});
  cases.push_back(
      {&ops::select, "bool", {p, p, bools({4}, {1, 1, 0, 0})}, {}, bools({4}, {1, 1, 0, 1})});
  const Literal x = f32({5}, {-5, 0, 5, kNan, kInf});
  cases.push_back({&ops::clamp,
                   "scalars",
                   {x, f32({}, {-1}), f32({}, {2})},
                   {},
                   f32({5}, {-1, 0, 2, kNan, 2})});
  cases.push_back({&ops::clamp,
                   "tensors",
                   {i32({3}, {1, 2, 3}), i32({3}, {2, 0, 0}), i32({}, {2})},
                   {},
                   i32({3}, {2, 2, 2})});
  cases.push_back(
      {&ops::clamp, "high wins", {f32({1}, {0}), f32({}, {3}), f32({}, {1})}, {}, f32({1}, {1})});
}

}  // namespace

OpCases binary_cases() {
  OpCases cases;
  arithmetic(cases);
  ordering(cases);
  shifts(cases);
  choices(cases);
  return cases;
}

}  // namespace backcast
