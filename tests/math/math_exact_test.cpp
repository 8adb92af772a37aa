// Functions without an error: rounding, fmod, square root, conversions. Compared bit by bit.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <random>

#include "ir/graph/element_type.h"
#include "tests/math/test_support.h"

namespace backcast::testing {
namespace {

template <class Real>
using Bits = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;

template <class Real>
bool same(Real a, Real b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<Bits<Real>>(a) == std::bit_cast<Bits<Real>>(b);
}

/// Random bits, numbers near integers and halves, and the special ones.
template <class Real>
std::vector<Real> samples(int count) {
  using Limits = std::numeric_limits<Real>;
  std::mt19937_64 random(11);
  std::vector<Real> x = {0,
                         -Real{0},
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::max(),
                         Limits::denorm_min(),
                         -Limits::denorm_min(),
                         Limits::min()};
  for (int i = 0; i < count; ++i) {
    x.push_back(std::bit_cast<Real>(static_cast<Bits<Real>>(random())));
    const Real half = static_cast<Real>(static_cast<int64_t>(random() % 4001) - 2000) / 2;
    x.push_back(half);
    x.push_back(std::nextafter(half, Real{3000}));
    const int exponent = static_cast<int>(random() % 12) + Limits::digits - 8;
    x.push_back(std::ldexp(static_cast<Real>(random() % 2048) / 1024 - 1, exponent));
  }
  return x;
}

template <class Real>
void expect_same(const std::string& name, Real (*reference)(Real), const std::vector<Real>& x) {
  for (const bool fma : {true, false}) {
    const std::vector<Real> y = run<Real>(fma, name + suffix<Real>(), x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(same(y[i], reference(x[i]))) << name << " of " << x[i] << " gives " << y[i];
    }
  }
}

template <class Real>
void expect_rounding() {
  const std::vector<Real> x = samples<Real>(200'000);
  expect_same<Real>("floor", std::floor, x);
  expect_same<Real>("ceil", std::ceil, x);
  expect_same<Real>("trunc", std::trunc, x);
  expect_same<Real>("round_even", std::nearbyint, x);
}

TEST(Exact, Rounding) {
  expect_rounding<float>();
  expect_rounding<double>();
}

TEST(Exact, SquareRoot) {
  expect_same<float>("sqrt", std::sqrt, samples<float>(500'000));
  expect_same<double>("sqrt", std::sqrt, samples<double>(500'000));
  std::vector<double> near_squares;  // the hardest to round
  std::mt19937_64 random(5);
  for (int i = 0; i < 200'000; ++i) {
    const double root = std::ldexp(static_cast<double>(random() >> 11), -52 + i % 2);
    for (const double x : {root * root, std::nextafter(root * root, 0.0)})
      near_squares.push_back(x);
  }
  expect_same<double>("sqrt", std::sqrt, near_squares);
}

template <class Real>
void expect_remainders(int count) {
  std::vector<Real> x = samples<Real>(count), y = samples<Real>(count);
  std::shuffle(y.begin(), y.end(), std::mt19937(2));
  for (const Real a : samples<Real>(0)) {
    for (const Real b : samples<Real>(0)) x.push_back(a), y.push_back(b);
  }
  std::mt19937_64 random(8);
  for (int i = 0; i < count; ++i) {  // multiples, and close to them
    const Real unit = std::bit_cast<Real>(static_cast<Bits<Real>>(random()));
    const Real multiple = unit * static_cast<Real>(random() % 100'000);
    x.push_back(i % 2 ? multiple : std::nextafter(multiple, Real{0}));
    y.push_back(unit);
  }
  for (const bool fma : {true, false}) {
    const std::vector<Real> got = run<Real>(fma, std::string("fmod") + suffix<Real>(), x, y);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(same(got[i], std::fmod(x[i], y[i])))
          << "fmod(" << x[i] << ", " << y[i] << ") gives " << got[i] << " fma " << fma;
    }
  }
}

TEST(Exact, RemainderOfAnyQuotient) {
  expect_remainders<float>(100'000);
  expect_remainders<double>(50'000);
}

TEST(Exact, WideningConversions) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const std::vector<float> half = run<float>(true, "f32_from_f16", all);
  const std::vector<float> bfloat = run<float>(true, "f32_from_bf16", all);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(same(half[i], f32_from_f16(all[i]))) << i;
    ASSERT_TRUE(same(bfloat[i], f32_from_bf16(all[i]))) << i;
  }
}

template <class Real>
void expect_narrowing(const std::string& name, uint16_t (*reference)(Real),
                      float (*back)(uint16_t)) {
  std::vector<Real> x = samples<Real>(200'000);
  for (int bits = 0; bits < 65535; ++bits) {
    // Every number of the small format, the ties between neighbours, and next to those.
    const Real low = back(static_cast<uint16_t>(bits));
    const Real high = back(static_cast<uint16_t>(bits + 1));
    const Real tie = low + (high - low) / 2;
    for (const Real v : {low, tie, std::nextafter(tie, low), std::nextafter(tie, high)}) {
      x.push_back(v);
    }
  }
  const std::vector<uint16_t> got = run<uint16_t>(true, name, x);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], reference(x[i])) << name << " " << x[i];
}

TEST(Exact, NarrowingConversions) {
  expect_narrowing<float>("f16_from_f32", f16_from_f32, f32_from_f16);
  expect_narrowing<double>("f16_from_f64", f16_from_f64, f32_from_f16);
  expect_narrowing<float>("bf16_from_f32", bf16_from_f32, f32_from_bf16);
  expect_narrowing<double>("bf16_from_f64", bf16_from_f64, f32_from_bf16);
}

/// x86 takes a hundred cycles for a result that is too small.
template <class Real>
void expect_exact_zeros(const std::vector<Real>& x) {
  for (const bool fma : {true, false}) {
    run<Real>(fma, std::string("exp") + suffix<Real>(), x);  // compiles, too
    std::feclearexcept(FE_ALL_EXCEPT);
    const std::vector<Real> y = run<Real>(fma, std::string("exp") + suffix<Real>(), x);
    EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0);
    for (const Real value : y) EXPECT_TRUE(same(value, Real{0}));
  }
}

TEST(Exponential, OfWhatAMaskLeavesIsAnExactZero) {
  constexpr float kLeast = std::numeric_limits<float>::lowest();
  expect_exact_zeros<float>({-std::numeric_limits<float>::infinity(), kLeast, -1e9f, -1e4f, -176});
  expect_exact_zeros<double>({-std::numeric_limits<double>::infinity(), kLeast, -1e9, -1418});
}

}  // namespace
}  // namespace backcast::testing
