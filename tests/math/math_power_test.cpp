// pow: accuracy, exact results, and C's special cases.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "tests/math/reference.h"
#include "tests/math/test_support.h"

namespace backcast::testing {
namespace {

template <class Real, class Wide>
void expect_accurate(const Pairs<Real>& p) {
  const std::string function = std::string("pow") + suffix<Real>();
  for (const bool fma : {true, false}) {
    const std::vector<Real> got = run<Real>(fma, function, p.x, p.y);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = ulp_error<Real, Wide>(got[i], std::pow(Wide{p.x[i]}, Wide{p.y[i]}));
      if (error > worst) worst = error, at = i;
    }
    EXPECT_LE(worst, loop::stated_ulp(function))
        << function << "(" << p.x[at] << ", " << p.y[at] << ") fma " << fma;
    EXPECT_GT(worst, 0.4) << "the comparison measures nothing";
  }
}

TEST(Power, IsAccurate) {
  expect_accurate<float, double>(pow_arguments<float>(600'000));
  expect_accurate<double, long double>(pow_arguments<double>(300'000));
}

TEST(Power, SubnormalBases) {
  Pairs<float> pairs;
  for (uint32_t bits = 1; bits < 0x800000; bits += 301) {
    pairs.add(std::bit_cast<float>(bits), -0.7f);
    pairs.add(std::bit_cast<float>(bits), 0.3f);
  }
  expect_accurate<float, double>(pairs);
}

template <class Real>
void expect_equal_to_libm(const Pairs<Real>& p) {
  for (const bool fma : {true, false}) {
    const std::vector<Real> got = run<Real>(fma, std::string("pow") + suffix<Real>(), p.x, p.y);
    for (size_t i = 0; i < got.size(); ++i) {
      const Real want = std::pow(p.x[i], p.y[i]);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got[i])) << p.x[i] << " to " << p.y[i] << " gives " << got[i];
        continue;
      }
      EXPECT_EQ(got[i], want) << p.x[i] << " to " << p.y[i];
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << p.x[i] << " to " << p.y[i];
    }
  }
}

template <class Real>
void expect_special_cases() {
  using Limits = std::numeric_limits<Real>;
  const Real odd_large = std::ldexp(Real{1}, Limits::digits) - 1;
  std::vector<Real> values = {
      0, 1, 2, 3, 4, 0.5, 0.25, odd_large, odd_large + 1, Limits::infinity(), Limits::max()};
  for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  values.push_back(Limits::quiet_NaN());
  Pairs<Real> pairs;
  for (const Real x : values) {
    for (const Real y : values) {
      const Real want = std::pow(x, y);
      // Where the result is neither exact nor special, IsAccurate is the judge.
      const bool special = std::isnan(want) || std::isinf(want) || want == 0;
      const bool short_fraction = std::fabs(want) < odd_large && want * 64 == std::round(want * 64);
      if (special || short_fraction) pairs.add(x, y);
    }
  }
  ASSERT_GT(pairs.x.size(), 300u);
  expect_equal_to_libm(pairs);
}

TEST(Power, SpecialCasesAreThoseOfC) {
  expect_special_cases<float>();
  expect_special_cases<double>();
}

template <class Real>
void expect_exact_results() {
  const double limit = std::ldexp(1.0, std::numeric_limits<Real>::digits);
  Pairs<Real> pairs;
  for (int base = -300; base <= 300; ++base) {
    double power = 1;
    for (int exponent = 0; std::fabs(power) <= limit && exponent < 60; ++exponent) {
      pairs.add(static_cast<Real>(base), static_cast<Real>(exponent));
      power *= base;
    }
    pairs.add(static_cast<Real>(base * base), Real{0.5});
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {  // squares of numbers with half the bits
    const Real root = static_cast<Real>(random() >> (34 - std::numeric_limits<Real>::digits / 2));
    pairs.add(root, 2);
    pairs.add(root * root, Real{0.5});
  }
  expect_equal_to_libm(pairs);
}

TEST(Power, ExactResultsAreExact) {
  expect_exact_results<float>();
  expect_exact_results<double>();
}

}  // namespace
}  // namespace backcast::testing
