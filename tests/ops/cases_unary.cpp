// Elementwise operators of one operand.
#include "tests/ops/cases.h"

namespace backcast {
namespace {

constexpr double kLow = -2147483648.0;

void arithmetic(OpCases& cases) {
  const auto add = [&](const OpDef& op, const char* what, Literal x, Literal y) {
    cases.push_back({&op, what, {x}, {}, y});
  };
  add(ops::neg, "f32", f32({4}, {1.5, -2, 0, kNan}), f32({4}, {-1.5, 2, -0.0, kNan}));
  add(ops::neg, "i32 wraps", i32({3}, {5, -7, kLow}), i32({3}, {-5, 7, kLow}));
  add(ops::neg, "u64 wraps", u64({1, 0}), u64({~uint64_t{0}, 0}));
  add(ops::neg, "f16", tensor(ElementType::f16, {1}, {0.1}), tensor(ElementType::f16, {1}, {-0.1}));
  add(ops::abs, "f32", f32({5}, {1.5, -2, -0.0, kNan, -kInf}), f32({5}, {1.5, 2, 0, kNan, kInf}));
  add(ops::abs, "i32", i32({2}, {-7, kLow}), i32({2}, {7, kLow}));
  add(ops::abs, "u64", u64({~uint64_t{0}}), u64({~uint64_t{0}}));
  add(ops::sign, "f32", f32({6}, {3, -0.5, 0, -0.0, kNan, -kInf}),
      f32({6}, {1, -1, 0, -0.0, kNan, -1}));
  add(ops::sign, "i32", i32({3}, {9, -9, 0}), i32({3}, {1, -1, 0}));
  add(ops::sign, "u64", u64({~uint64_t{0}, 0}), u64({1, 0}));
  add(ops::relu, "f32", f32({5}, {2, -2, 0, kNan, -kInf}), f32({5}, {2, 0, 0, kNan, 0}));
  add(ops::relu, "i32", i32({2}, {-3, 3}), i32({2}, {0, 3}));
  add(ops::relu, "rank 0", f32({}, {-1}), f32({}, {0}));
  add(ops::relu, "no elements", f32({2, 0}, {}), f32({2, 0}, {}));
  const Literal halves = f32({8}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.51, kInf, kNan});
  add(ops::floor, "f32", halves, f32({8}, {0, 1, 2, -1, -2, 2, kInf, kNan}));
  add(ops::ceil, "f32", halves, f32({8}, {1, 2, 3, -0.0, -1, 3, kInf, kNan}));
  add(ops::round_even, "f32", halves, f32({8}, {0, 2, 2, -0.0, -2, 3, kInf, kNan}));
  add(ops::floor, "i64", i64({2}, {-3, INT64_MAX}), i64({2}, {-3, INT64_MAX}));
  add(ops::ceil, "i32", i32({1}, {-3}), i32({1}, {-3}));
  add(ops::round_even, "i32", i32({1}, {-3}), i32({1}, {-3}));
  add(ops::bit_not, "bool", bools({2}, {0, 1}), bools({2}, {1, 0}));
  add(ops::bit_not, "i32", i32({2}, {0, 5}), i32({2}, {-1, -6}));
  add(ops::bit_not, "u8", tensor(ElementType::u8, {1}, {0x0f}),
      tensor(ElementType::u8, {1}, {0xf0}));
  add(ops::is_nan, "f32", f32({3}, {kNan, kInf, 0}), bools({3}, {1, 0, 0}));
  add(ops::is_nan, "bf16", tensor(ElementType::bf16, {2}, {kNan, 1}), bools({2}, {1, 0}));
  const Literal infinities = f32({4}, {kInf, -kInf, kNan, 1});
  add(ops::is_inf, "both", infinities, bools({4}, {1, 1, 0, 0}));
  cases.push_back(
      {&ops::is_inf, "positive", {infinities}, IsInfAttrs{true, false}, bools({4}, {1, 0, 0, 0})});
  cases.push_back(
      {&ops::is_inf, "negative", {infinities}, IsInfAttrs{false, true}, bools({4}, {0, 1, 0, 0})});
}

/// Values from tables, to more digits than f64 has.
void functions(OpCases& cases) {
  const auto add = [&](const OpDef& op, const std::vector<double>& x,
                       const std::vector<double>& y) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(x.size())};
    const auto with = [&](ElementType element, double tolerance) {
      cases.push_back({&op,
                       std::string(name_of(element)),
                       {tensor(element, shape, x)},
                       {},
                       tensor(element, shape, y),
                       tolerance});
    };
    with(ElementType::f64, 4e-16);
    with(ElementType::f32, 0);
  };
  add(ops::sqrt, {4, 2, 0, -1, kInf}, {2, 1.4142135623730951, 0, kNan, kInf});
  add(ops::exp, {0, 1, -1, kInf, -kInf, 2000},
      {1, 2.7182818284590452, 0.36787944117144233, kInf, 0, kInf});
  add(ops::log, {1, 2, 0, -1, kInf}, {0, 0.69314718055994531, -kInf, kNan, kInf});
  add(ops::sin, {0, 1, -1, kInf}, {0, 0.84147098480789651, -0.84147098480789651, kNan});
  add(ops::cos, {0, 1, -1, kInf}, {1, 0.54030230586813972, 0.54030230586813972, kNan});
  add(ops::tan, {0, 1, -1}, {0, 1.5574077246549022, -1.5574077246549022});
  add(ops::asin, {0, 1, -1, 1.5}, {0, 1.5707963267948966, -1.5707963267948966, kNan});
  add(ops::acos, {1, 0, -1, 1.5}, {0, 1.5707963267948966, 3.1415926535897932, kNan});
  add(ops::atan, {0, 1, -kInf}, {0, 0.78539816339744831, -1.5707963267948966});
  add(ops::sinh, {0, 1, -1, kInf}, {0, 1.1752011936438015, -1.1752011936438015, kInf});
  add(ops::cosh, {0, 1, -1, -kInf}, {1, 1.5430806348152438, 1.5430806348152438, kInf});
  add(ops::asinh, {0, 1, -1}, {0, 0.88137358701954303, -0.88137358701954303});
  add(ops::acosh, {1, 2, 0.5}, {0, 1.3169578969248167, kNan});
  add(ops::atanh, {0, 0.5, 1, -1, 2}, {0, 0.54930614433405485, kInf, -kInf, kNan});
  add(ops::tanh, {0, 1, -1, kInf}, {0, 0.76159415595576489, -0.76159415595576489, 1});
  add(ops::sigmoid, {0, 1, -1, -2000, 2000}, {0.5, 0.73105857863000488, 0.26894142136999512, 0, 1});
  add(ops::erf, {0, 1, -1, kInf}, {0, 0.84270079294971487, -0.84270079294971487, 1});
}

void casts(OpCases& cases) {
  const auto add = [&](const char* what, Literal x, Literal y) {
    cases.push_back({&ops::cast, what, {x}, CastAttrs{y.element()}, y});
  };
  using E = ElementType;
  add("f32 to i8 saturates", f32({7}, {1.9, -1.9, 200, -200, kNan, kInf, -kInf}),
      tensor(E::i8, {7}, {1, -1, 127, -128, 0, 127, -128}));
  add("f32 to u8 saturates", f32({3}, {-5, 255.9, 300}), tensor(E::u8, {3}, {0, 255, 255}));
  cases.push_back({&ops::cast,
                   "f32 to the nearest i32, halves to even",
                   {f32({7}, {1.5, 2.5, -0.5, -1.6, kNan, kInf, 7})},
                   CastAttrs{E::i32, Rounding::nearest_even},
                   tensor(E::i32, {7}, {2, 2, 0, -2, 0, 2147483647, 7})});
  add("f64 to i64 saturates", tensor(E::f64, {3}, {1e300, -1e300, 9007199254740993.0}),
      i64({3}, {INT64_MAX, INT64_MIN, 9007199254740992}));
  add("f64 to u64 saturates", tensor(E::f64, {2}, {1e300, 18446744073709549568.0}),
      u64({~uint64_t{0}, 18446744073709549568u}));
  add("i32 to i8 wraps", i32({3}, {130, -130, 256}), tensor(E::i8, {3}, {-126, 126, 0}));
  add("i64 to u64 wraps", i64({1}, {-1}), u64({~uint64_t{0}}));
  add("u64 to i64 wraps", u64({~uint64_t{0}}), i64({1}, {-1}));
  add("i8 to i64 keeps the sign", tensor(E::i8, {1}, {-3}), i64({1}, {-3}));
  add("f32 to bool", f32({4}, {0, -0.0, 0.25, kNan}), bools({4}, {0, 0, 1, 1}));
  add("i64 to bool", i64({2}, {int64_t{1} << 32, 0}), bools({2}, {1, 0}));
  add("bool to f32", bools({2}, {1, 0}), f32({2}, {1, 0}));
  add("bool to u64", bools({2}, {1, 0}), u64({1, 0}));
  add("f32 to f32", f32({1}, {0.1}), f32({1}, {0.1}));
  add("f64 to f32 rounds to even", tensor(E::f64, {2}, {16777217, 16777219}),
      f32({2}, {16777216, 16777220}));
  // 1 + 2^-11 + 2^-40 lies above the middle of two halves and, once in f32, exactly on it.
  add("f64 to f16 rounds once", tensor(E::f64, {1}, {1 + 0x1p-11 + 0x1p-40}),
      raw<uint16_t>(E::f16, {1}, {0x3c01}));
  add("f64 to bf16 rounds once", tensor(E::f64, {1}, {1 + 0x1p-8 + 0x1p-40}),
      raw<uint16_t>(E::bf16, {1}, {0x3f81}));
  add("f32 to f16 overflows", f32({2}, {65519, 65520}),
      raw<uint16_t>(E::f16, {2}, {0x7bff, 0x7c00}));
  // 2^62 + 2^38 + 1 lies just above the middle of two floats.
  const int64_t above = (int64_t{1} << 62) + (int64_t{1} << 38) + 1;
  add("i64 to f32 rounds once", i64({2}, {above, -above}),
      f32({2}, {0x1p62 + 0x1p39, -0x1p62 - 0x1p39}));
  const int64_t above_bf16 = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  add("i64 to bf16 rounds once", i64({1}, {above_bf16}), tensor(E::bf16, {1}, {0x1p62 + 0x1p55}));
  add("u64 to f64", u64({~uint64_t{0}, (uint64_t{1} << 53) + 1}),
      tensor(E::f64, {2}, {0x1p64, 0x1p53}));
  add("i64 minimum to f32", i64({1}, {INT64_MIN}), f32({1}, {-0x1p63}));
}

}  // namespace

OpCases unary_cases() {
  OpCases cases;
  arithmetic(cases);
  functions(cases);
  casts(cases);
  return cases;
}

}  // namespace backcast
