// Measures every float function of the math library: all 2^32 arguments of f32 (or every n-th),
// random ones of f64, and prints the largest error in ULP with its argument. Run by
// scripts/sweep-math.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "ir/loop/math_library.h"
#include "tests/math/c_translation.h"
#include "tests/math/reference.h"

namespace backcast::testing {
namespace {

struct Worst {
  double error = 0, argument = 0;
};

constexpr size_t kBlock = 1 << 14;
using Variants = std::array<CompiledFunctions::Batch, 2>;
using Figures = std::array<Worst, 2>;

/// Both variants on the same arguments. next(x) gives the next argument, or false at the end.
template <class Real, class Wide, class Next>
Figures measure(const std::string& name, const Variants& variants, const Next& next) {
  const Reference<Wide> reference = references<Wide>().at(name);
  Figures figures;
  std::vector<Real> x(kBlock), y(kBlock);
  std::vector<Wide> want(kBlock);
  size_t count = 0;
  do {
    count = 0;
    while (count < kBlock && next(x[count])) count += in_domain(name, x[count]) ? 1 : 0;
    for (size_t i = 0; i < count; ++i) want[i] = reference(x[i]);
    for (size_t variant = 0; variant < variants.size(); ++variant) {
      const void* arguments[] = {x.data()};
      variants[variant](arguments, y.data(), static_cast<long>(count));
      Worst& worst = figures[variant];
      for (size_t i = 0; i < count; ++i) {
        // Correctly rounded results are within half an ULP; most are, and need no closer look.
        if (y[i] == static_cast<Real>(want[i])) continue;
        const double error = ulp_error<Real, Wide>(y[i], want[i]);
        if (error > worst.error) worst = {error, static_cast<double>(x[i])};
      }
    }
  } while (count == kBlock);
  return figures;
}

Figures measure_f32(const std::string& name, const Variants& variants, uint64_t stride) {
  uint64_t bits = 0;
  return measure<float, double>(name, variants, [&](float& x) {
    if (bits >> 32) return false;
    x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    bits += stride;
    return true;
  });
}

Figures measure_f64(const std::string& name, const Variants& variants, int64_t samples) {
  std::mt19937_64 random(1);
  // A quarter over all exponents, the rest between 2^-40 and 2^16 where most happens.
  return measure<double, long double>(name, variants, [&](double& x) {
    if (samples-- <= 0) return false;
    const uint64_t bits = random();
    const uint64_t exponent = samples % 4 == 0 ? bits >> 52 & 0x7ff : 983 + (bits >> 52) % 56;
    x = std::bit_cast<double>((bits & 0x800fffffffffffff) | exponent << 52);
    return true;
  });
}

template <class Real, class Wide>
Figures measure_pow(const Variants& variants, int64_t samples) {
  const Pairs<Real> pairs = pow_arguments<Real>(samples);
  std::vector<Real> got(pairs.x.size());
  Figures figures;
  for (size_t variant = 0; variant < variants.size(); ++variant) {
    const void* arguments[] = {pairs.x.data(), pairs.y.data()};
    variants[variant](arguments, got.data(), static_cast<long>(got.size()));
    Worst& worst = figures[variant];
    for (size_t i = 0; i < got.size(); ++i) {
      const Wide want = std::pow(Wide{pairs.x[i]}, Wide{pairs.y[i]});
      const double error = ulp_error<Real, Wide>(got[i], want);
      if (error > worst.error) worst = {error, static_cast<double>(pairs.x[i])};
    }
  }
  return figures;
}

Figures measure(const std::string& name, bool wide, const Variants& variants, uint64_t stride,
                int64_t samples) {
  if (name == "pow") {
    return wide ? measure_pow<double, long double>(variants, samples)
                : measure_pow<float, double>(variants, samples);
  }
  return wide ? measure_f64(name, variants, samples) : measure_f32(name, variants, stride);
}

}  // namespace
}  // namespace backcast::testing

/// math_sweep [stride of f32 [samples of f64 [functions…]]]
int main(int argc, char** argv) {
  using namespace backcast;
  const uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const int64_t samples = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 10'000'000;
  std::vector<std::string> names(argv + std::min(argc, 3), argv + argc);
  if (names.empty()) {
    for (const auto& [name, reference] : testing::references<double>()) names.push_back(name);
    names.push_back("pow");
  }
  if (stride == 0) return 1;
  const testing::CompiledFunctions fused(loop::math_library(true));
  const testing::CompiledFunctions plain(loop::math_library(false));
  fmt::print("{:11} {:>6}  {:>6} {:15}  {:>6} {:15}\n", "function", "stated", "fma", "at", "no fma",
             "at");
  for (const std::string& name : names) {
    for (const bool wide : {false, true}) {
      const std::string function = name + (wide ? ".f64" : ".f32");
      const testing::Variants variants = {fused.batch(function), plain.batch(function)};
      const testing::Figures figures = testing::measure(name, wide, variants, stride, samples);
      fmt::print("{:11} {:6}  {:6.3f} {:<15.8g}  {:6.3f} {:<15.8g}\n", function,
                 loop::stated_ulp(function), figures[0].error, figures[0].argument,
                 figures[1].error, figures[1].argument);
      std::fflush(stdout);
    }
  }
}
