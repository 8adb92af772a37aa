// Gradients held against differences: bends within a step, gradients that are wrong, losses that
// are rounded, or no numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "driver/gradient_check.h"

namespace backcast {
namespace {

constexpr double kStep = 1e-5;

/// The loss leaky(p), which bends at zero, and its gradient times `factor`.
class Bend : public LossFunctionUnderTest {
 public:
  explicit Bend(double factor) : factor_(factor) {}
  std::vector<Literal> evaluate(const std::vector<Literal>& parameters) const override {
    const double p = parameters[0].as_double(0);
    const double slope = p < 0 ? 0.25 : 1;
    return {Literal::scalar(ElementType::f64, slope * p),
            Literal::from_doubles(ElementType::f64, {1}, {factor_ * slope})};
  }

 private:
  double factor_;
};

/// A loss that is a number at one point only.
class Point : public LossFunctionUnderTest {
 public:
  std::vector<Literal> evaluate(const std::vector<Literal>& parameters) const override {
    const double p = parameters[0].as_double(0);
    const double loss = p == 1 ? 0 : std::numeric_limits<double>::quiet_NaN();
    return {Literal::scalar(ElementType::f64, loss),
            Literal::from_doubles(ElementType::f64, {1}, {0})};
  }
};

/// Of what adds up to one, whatever is rounded on the way; `gradient` should be zero.
class Constant : public LossFunctionUnderTest {
 public:
  explicit Constant(double gradient) : gradient_(gradient) {}
  std::vector<Literal> evaluate(const std::vector<Literal>& parameters) const override {
    const double e = std::exp(parameters[0].as_double(0));
    const double sum = e / (e + 1) + 1 / (e + 1);
    return {Literal::scalar(ElementType::f64, (sum - 0.9999) * (sum - 0.9999)),
            Literal::from_doubles(ElementType::f64, {1}, {gradient_})};
  }

 private:
  double gradient_;
};

bool agree(const LossFunctionUnderTest& function, double p) {
  const Literal parameter = Literal::from_doubles(ElementType::f64, {1}, {p});
  return check_against_differences(function, {"p"}, {parameter}, kStep, 1e-4).passed();
}

TEST(Differences, AgreeWhereTheFunctionBendsWithinAStep) {
  for (const double p : {1.0, kStep / 2, kStep / 8, kStep / 100, -kStep / 8, -kStep / 2, -1.0}) {
    EXPECT_TRUE(agree(Bend(1), p)) << p;
    EXPECT_FALSE(agree(Bend(1.001), p)) << p;
  }
}

TEST(Differences, KnowsWhatRoundingDoes) {
  for (int k = 0; k < 100; ++k) {
    const double p = 0.37 + 0.01 * k;
    EXPECT_TRUE(agree(Constant(0), p)) << p;
    EXPECT_FALSE(agree(Constant(1e-8), p)) << p;
  }
}

TEST(Differences, LossesThatAreNoNumbersDisagree) { EXPECT_FALSE(agree(Point(), 1)); }

}  // namespace
}  // namespace backcast
