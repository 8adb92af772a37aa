// Gradients keep their values in bands of rows: sums of the bands' sums, and results that others
// read, too. C and LLVM agree to the bit.
#include "passes/lower/row_sums.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "passes/graph/differentiate.h"
#include "passes/lower/row_bands.h"
#include "tests/passes/random_chain.h"

namespace backcast {
namespace {

/// A chain's result and the gradients by its input and weights.
Module gradients(unsigned seed, const std::string& type) {
  const Module both = add_vjp(parse_module(RandomChain(seed, type, true).text()), "main");
  Function vjp = both.function("main_vjp");
  vjp.name = "main";
  Module result = both;
  result.functions["main"] = std::move(vjp);
  return result;
}

/// The sum over all positions of a chain's result, or the largest value.
Module pooled(unsigned seed, const std::string& type) {
  std::string text = RandomChain(seed, type).text();
  const size_t end = text.find("  return ");
  const std::string value = text.substr(end + 9, text.find('\n', end) - end - 9);
  const size_t arrow = text.find("-> ") + 3;
  const std::string whole = text.substr(arrow, text.find(" {", arrow) - arrow);
  const std::string batch = whole.substr(0, whole.find(',')),
                    features = whole.substr(whole.rfind(','));
  text.replace(end, std::string::npos,
               "  %all = reduce " + value + (seed % 2 ? " {kind=sum" : " {kind=max") +
                   ", axes=[1,2]}\n  return %all\n}\n");
  text.replace(arrow, whole.size(), batch + features);
  return parse_module(text);
}

/// In any bands that all of these steps, or only some, can run in; returns how many of those have
/// sums.
int64_t expect_close_in_any_bands(const Module& module) {
  const TargetInfo& target = *find_target("cortex-m4");
  const loop::Program program = until_bands(module, target).program;
  const std::vector<Literal> inputs = random_inputs(module);
  const std::vector<Literal> expected = loop::interpret(program, "run", inputs);
  const size_t steps = program.entries[0].steps.size();
  int64_t sums = 0;
  for (size_t last = 1; last < steps; ++last) {
    for (size_t first = last < kMaxBandSteps ? 0 : last - kMaxBandSteps; first < last; ++first) {
      for (const BandHeight height : {BandHeight{1}, {2}, {3}, {7}, {1, 2}}) {
        const std::optional<loop::Program> bands = band_steps(program, {{first, last, height}});
        if (!bands) continue;
        loop::verify(*bands, "row_bands");
        sums += splits_sums(*bands);
        const std::vector<Literal> found = loop::interpret(*bands, "run", inputs);
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_TRUE(are_close(expected[i], found[i], 1e-12))
              << "result " << i << ", steps " << first << " to " << last << ", height "
              << height.rows << "/" << height.trips << "\n"
              << loop::print(*bands);
        }
      }
    }
  }
  return sums;
}

class Sums : public testing::TestWithParam<unsigned> {};

TEST_P(Sums, OfGradientsKeepTheirValues) {
  expect_close_in_any_bands(gradients(GetParam(), "f64"));
}

TEST_P(Sums, OfResultsKeepTheirValues) { expect_close_in_any_bands(pooled(GetParam(), "f64")); }

TEST_P(Sums, AgreeToTheBitInBothBackends) {
  const Module module = gradients(GetParam(), "f32");
  const TargetInfo target = resolve_target("native");
  PipelineResult state = until_bands(module, target);
  const size_t steps = state.program.entries[0].steps.size();
  std::optional<loop::Program> bands;
  for (size_t first = 0; first + 1 < steps && !bands; ++first) {
    for (size_t last = steps; last-- > first + 1 && !bands;) {
      bands = band_steps(state.program, {{first, last, {3}}});
      if (bands && !splits_sums(*bands)) bands.reset();
    }
  }
  if (!bands) return;
  state.program = *bands;
  expect_equal_backends("gradients", module, std::move(state), target, 1e-4);
}

constexpr unsigned kChains = 24;

INSTANTIATE_TEST_SUITE_P(Bands, Sums, testing::Range(1u, kChains + 1));

TEST(Bands, HaveSumsOfMostGradientsAndResults) {
  int64_t with_gradients = 0, with_results = 0;
  for (unsigned seed = 1; seed <= kChains; ++seed) {
    with_gradients += expect_close_in_any_bands(gradients(seed, "f64")) > 0;
    with_results += expect_close_in_any_bands(pooled(seed, "f64")) > 0;
  }
  EXPECT_GT(with_gradients, kChains / 2);
  EXPECT_GT(with_results, kChains / 3);  // others are one kernel
}

/// A state whose new rows take the place of the old ones: kernels say so in bands, too.
TEST(Bands, UpdateStateInPlace) {
  std::mt19937 random(1);
  const Module module =
      parse_module("state \"w\" parameter = f32[12,8] [" + random_numbers(12 * 8, random) + R"(]
entry "step" @step
func @step(%w: f32[12,8], %x: f32[5,12], %y: f32[5,8]) -> f32[12,8] results("w") {
  %g = dot_general %x, %y {lhs_contract=[0], rhs_contract=[0]}
  %r = reverse %g {axes=[1]}
  %n = sub %w, %r
  return %n
})");
  PipelineOptions options;
  options.stop_after = "winograd";
  const loop::Program program = run_pipeline(module, *find_target("cortex-m4"), options).program;
  ASSERT_EQ(program.entries[0].steps.size(), 2u) << loop::print(program);
  const std::optional<loop::Program> bands = band_steps(program, {{0, 1, {3}}});
  ASSERT_TRUE(bands);
  loop::verify(*bands, "row_bands");
  int64_t in_place = 0;
  for (const auto& [name, kernel] : bands->kernels) {
    for (const loop::BufferParam& param : kernel.buffers) in_place += !param.over.empty();
  }
  EXPECT_EQ(in_place, 1) << loop::print(*bands);
}

}  // namespace
}  // namespace backcast
