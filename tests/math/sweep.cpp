// Measures every float function of the math library: all 2^32 arguments of f32 (or every n-th),
// random ones of f64, and prints the largest error in ULP with its argument. Run by
// scripts/sweep-math.
#include <fmt/format.h>

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

template <class Real, class Wide, class Next>
Worst measure(const std::string& name, Reference<Wide> reference, CompiledFunctions::Batch batch,
              const Next& next) {
  Worst worst;
  std::vector<Real> x(kBlock), y(kBlock);
  size_t count = 0;
  do {
    count = 0;
    while (count < kBlock && next(x[count])) count += in_domain(name, x[count]) ? 1 : 0;
    const void* arguments[] = {x.data()};
    batch(arguments, y.data(), static_cast<long>(count));
    for (size_t i = 0; i < count; ++i) {
      const double error = ulp_error<Real, Wide>(y[i], reference(x[i]));
      if (error > worst.error) worst = {error, x[i]};
    }
  } while (count == kBlock);
  return worst;
}

Worst measure_f32(const std::string& name, CompiledFunctions::Batch batch, uint64_t stride) {
  uint64_t bits = 0;
  return measure<float, double>(name, references<double>().at(name), batch, [&](float& x) {
    if (bits >> 32) return false;
    x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    bits += stride;
    return true;
  });
}

Worst measure_f64(const std::string& name, CompiledFunctions::Batch batch, int64_t samples) {
  std::mt19937_64 random(1);
  // All exponents, then again those between 2^-40 and 2^16 where most happens.
  return measure<double, long double>(
      name, references<long double>().at(name), batch, [&](double& x) {
        if (samples-- <= 0) return false;
        const uint64_t bits = random();
        const uint64_t exponent = samples % 4 == 0 ? bits >> 52 & 0x7ff : 983 + (bits >> 52) % 56;
        x = std::bit_cast<double>((bits & 0x800fffffffffffff) | exponent << 52);
        return true;
      });
}

}  // namespace
}  // namespace backcast::testing

/// sweep [stride of f32 [samples of f64 [only this function]]]
int main(int argc, char** argv) {
  using namespace backcast;
  const uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const int64_t samples = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 10'000'000;
  const std::string only = argc > 3 ? argv[3] : "";
  const testing::CompiledFunctions fused(loop::math_library(true));
  const testing::CompiledFunctions plain(loop::math_library(false));
  fmt::print("{:10} {:>6}  {:>22}  {:>22}\n", "function", "stated", "fma: ULP at",
             "no fma: ULP at");
  for (const auto& [name, reference] : testing::references<double>()) {
    if (!only.empty() && name != only) continue;
    for (const char* suffix : {".f32", ".f64"}) {
      const std::string function = name + suffix;
      std::string row = fmt::format("{:10} {:6}", function, loop::stated_ulp(function));
      for (const testing::CompiledFunctions* variant : {&fused, &plain}) {
        const testing::CompiledFunctions::Batch batch = variant->batch(function);
        const testing::Worst worst = function.ends_with("32")
                                         ? testing::measure_f32(name, batch, stride)
                                         : testing::measure_f64(name, batch, samples);
        row += fmt::format("  {:6.3f} {:15.8g}", worst.error, worst.argument);
      }
      fmt::print("{}\n", row);
      std::fflush(stdout);
    }
  }
}
