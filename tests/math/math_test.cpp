// Accuracy of the functions of one argument against libm, their limits, and the index of the
// library.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>
#include <set>
#include <span>

#include "ir/loop/interpreter.h"
#include "ir/loop/visit.h"
#include "tests/math/reference.h"
#include "tests/math/test_support.h"

namespace backcast::testing {
namespace {

using loop::MathFunction;

template <class Real, class Wide>
void expect_accurate(const std::string& name, const std::vector<Real>& x) {
  const Reference<Wide> reference = references<Wide>().at(name);
  const std::string function = name + suffix<Real>();
  for (const bool fma : {true, false}) {
    const std::vector<Real> y = run<Real>(fma, function, x);
    double worst = 0;
    Real at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!in_domain(name, x[i])) continue;
      const double error = ulp_error<Real, Wide>(y[i], reference(x[i]));
      if (error > worst) worst = error, at = x[i];
    }
    EXPECT_LE(worst, loop::stated_ulp(function)) << function << " at " << at << " fma " << fma;
    EXPECT_GT(worst, 0) << function << ": the comparison measures nothing";
  }
}

TEST(Accuracy, FloatsOfEveryMagnitude) {
  std::vector<float> x;
  for (uint64_t bits = 7; bits < uint64_t{1} << 32; bits += 4099) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const auto& [name, f] : references<double>()) expect_accurate<float, double>(name, x);
}

TEST(Accuracy, FloatsOfOrdinarySize) {
  std::vector<float> x;
  for (int i = -400'000; i <= 400'000; ++i) x.push_back(static_cast<float>(i) * 0x1.4p-14f);
  for (const auto& [name, f] : references<double>()) expect_accurate<float, double>(name, x);
}

TEST(Accuracy, Doubles) {
  std::mt19937_64 random(20);
  std::vector<double> x;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t bits = random();
    const uint64_t exponent = i % 4 == 0 ? bits >> 52 & 0x7ff : 983 + (bits >> 52) % 56;
    x.push_back(std::bit_cast<double>((bits & 0x800fffffffffffff) | exponent << 52));
  }
  for (const auto& [name, f] : references<long double>()) {
    expect_accurate<double, long double>(name, x);
  }
}

template <class Real>
std::vector<Real> near_quarter_turns() {
  std::vector<Real> x;
  for (int n = 1; n < 63'600; ++n) {
    const Real turn = static_cast<Real>(n * (std::acos(-1.0L) / 2));
    for (const Real v : {turn, std::nextafter(turn, Real{0}), std::nextafter(turn, Real{1e9})}) {
      x.push_back(v);
    }
  }
  return x;
}

TEST(Accuracy, AnglesNearMultiplesOfQuarterTurns) {
  for (const char* name : {"sin", "cos", "tan"}) {
    expect_accurate<float, double>(name, near_quarter_turns<float>());
    expect_accurate<double, long double>(name, near_quarter_turns<double>());
  }
}

TEST(Limits, AnglesBeyondTheDomainStayBounded) {
  std::vector<float> x;
  for (uint64_t bits = 0x47000000; bits < 0x7f800000; bits += 997) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const bool fma : {true, false}) {
    for (const char* name : {"sin.f32", "cos.f32"}) {
      for (const float y : run<float>(fma, name, x)) ASSERT_LE(std::fabs(y), 1) << name;
    }
  }
}

template <class Real>
void expect_limits_like_libm() {
  using Limits = std::numeric_limits<Real>;
  const Real infinity = Limits::infinity();
  std::vector<Real> x = {0, infinity,  Limits::quiet_NaN(),  Limits::max(),
                         1, Real(1.5), Limits::denorm_min(), Limits::min()};
  for (size_t i = 0, n = x.size(); i < n; ++i) x.push_back(-x[i]);
  const std::set<std::string> odd = {"sin",   "tan",   "asin", "atan", "sinh",
                                     "asinh", "atanh", "tanh", "erf"};
  for (const auto& [name, reference] : references<long double>()) {
    for (const bool fma : {true, false}) {
      const std::vector<Real> y = run<Real>(fma, name + suffix<Real>(), x);
      for (size_t i = 0; i < x.size(); ++i) {
        if (!in_domain(name, x[i])) continue;
        const Real want = static_cast<Real>(reference(x[i]));
        EXPECT_EQ(std::isnan(y[i]), std::isnan(want)) << name << " of " << x[i];
        EXPECT_EQ(std::isinf(y[i]), std::isinf(want)) << name << " of " << x[i];
        if (std::isinf(want)) {
          EXPECT_EQ(y[i], want) << name << " of " << x[i];
        }
        if (x[i] == 0 && odd.contains(name)) {
          EXPECT_EQ(y[i], want) << name;
          EXPECT_EQ(std::signbit(y[i]), std::signbit(x[i])) << name;
        }
      }
    }
  }
}

TEST(Limits, InfinitiesZerosAndNan) {
  expect_limits_like_libm<float>();
  expect_limits_like_libm<double>();
}

/// Every node of a function, lets and result.
void for_each_node(const MathFunction& f, const std::function<void(const loop::Expr&)>& visitor) {
  for (const auto& [name, value] : f.lets) loop::visit(value, visitor);
  loop::visit(f.result, visitor);
}

TEST(Library, OnlyFmaVariantsUseFma) {
  for (const bool fma : {true, false}) {
    int count = 0;
    for (const auto& [name, f] : loop::math_library(fma)) {
      EXPECT_EQ(name, f.name);
      for_each_node(f, [&](const loop::Expr& e) { count += e->kind == loop::ExprKind::fma; });
    }
    EXPECT_EQ(count > 0, fma);
  }
}

TEST(Library, NamesAreBoundOnceBeforeUse) {
  for (const auto& [name, f] : loop::math_library(true)) {
    std::set<std::string> bound;
    for (const MathFunction::Param& p : f.params) EXPECT_TRUE(bound.insert(p.name).second);
    const auto check = [&](const loop::Expr& e) {
      if (e->kind == loop::ExprKind::var) {
        EXPECT_TRUE(bound.contains(e->name)) << name;
      }
      if (e->kind == loop::ExprKind::call) {
        EXPECT_TRUE(loop::math_library(true).contains(e->name)) << name;
      }
    };
    for (const auto& [let_name, value] : f.lets) {
      loop::visit(value, check);
      EXPECT_TRUE(bound.insert(let_name).second) << name << " " << let_name;
    }
    loop::visit(f.result, check);
  }
}

TEST(Library, WideningReachesEveryNode) {
  for (const auto& [name, f] : loop::math_library(true)) {
    const MathFunction wide = f.widen(8);
    EXPECT_EQ(wide.name, name + "x8");
    EXPECT_EQ(wide.lets.size(), f.lets.size());
    for (const MathFunction::Param& p : wide.params) EXPECT_EQ(p.type.lanes, 8);
    for_each_node(wide, [&](const loop::Expr& e) {
      ASSERT_EQ(e->type.lanes, 8) << name;
      if (e->kind == loop::ExprKind::call) {
        EXPECT_TRUE(e->name.ends_with("x8")) << e->name;
      }
    });
  }
}

loop::Kernel kernel_calling(const std::string& function, int32_t lanes) {
  const loop::Type type = {loop::Scalar::f32, lanes};
  loop::Kernel kernel;
  kernel.name = "k";
  kernel.buffers = {{"y", loop::Scalar::f32, {}, loop::AccessMode::write}};
  const loop::Expr argument = loop::float_constant(type, 1);
  kernel.body = loop::store("y", 0, loop::call(function, type, {argument}));
  return kernel;
}

TEST(Library, CollectsWhatKernelsCallTransitively) {
  std::map<std::string, loop::Kernel> kernels;
  kernels["a"] = kernel_calling("asinh.f32x4", 4);
  kernels["b"] = kernel_calling("tanh.f32", 1);
  kernels["c"] = kernel_calling("erf.f32", 8);  // lanes from the call's type
  std::set<std::string> names;
  for (const auto& [name, f] : loop::functions_for(kernels, true)) {
    EXPECT_EQ(name, f.name);
    names.insert(name);
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"asinh.f32x4", "log1p.f32x4", "tanh.f32", "erf.f32x8"}));
}

/// y[i] = function(x[i]) on `count` elements, `lanes` at a time.
loop::Kernel mapping_kernel(const std::string& function, int64_t count, int32_t lanes) {
  const loop::Type type = {loop::Scalar::f32, lanes};
  const backcast::Dims shape = {backcast::Dim(count)};
  loop::Kernel kernel;
  kernel.name = "map";
  kernel.buffers = {{"x", loop::Scalar::f32, shape, loop::AccessMode::read},
                    {"y", loop::Scalar::f32, shape, loop::AccessMode::write}};
  const loop::Expr at = loop::var("i") * loop::Expr(lanes);
  const loop::Expr value =
      loop::call(loop::lane_name(function, lanes), type, {loop::load(type, "x", at)});
  kernel.body = loop::for_loop("i", 0, count / lanes, loop::store("y", at, value));
  return kernel;
}

TEST(Library, InterpreterAgreesBitForBitOnEveryWidth) {
  std::vector<float> x;
  for (uint64_t bits = 5; bits < uint64_t{1} << 32; bits += 16'777'259) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  x.resize(x.size() / 8 * 8);
  for (const bool fma : {true, false}) {
    for (const auto& [base, reference] : references<double>()) {
      const std::string function = base + ".f32";
      const std::vector<float> want = run<float>(fma, function, x);
      for (const int32_t lanes : {1, 8}) {
        const loop::Kernel kernel = mapping_kernel(function, static_cast<int64_t>(x.size()), lanes);
        std::vector<float> y(x.size());
        loop::interpret(
            kernel, loop::functions_for({{"map", kernel}}, fma),
            {std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y))}, {});
        for (size_t i = 0; i < x.size(); ++i) {
          if (std::isnan(want[i]) && std::isnan(y[i])) continue;
          ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(want[i]))
              << function << " of " << x[i] << " on " << lanes << " lanes";
        }
      }
    }
  }
}

}  // namespace
}  // namespace backcast::testing
