// Gradients keep every bit when the backward pass makes values again: layers of products, scales
// and activations of any kind, residual or not; and most of what is clipped or gated is made again.
#include "passes/lower/recompute_maps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "passes/graph/differentiate.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

constexpr const char* kShape = "f64[37,16]";

/// Layers y = act(x·w·s + b), perhaps + x, on f64[37, 16].
class RandomLayers {
 public:
  explicit RandomLayers(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string params = fmt::format("%x0: {}", kShape), body;
    const int64_t layers = one_of({1, 2, 3});
    for (int64_t i = 0; i < layers; ++i) {
      params += fmt::format(", %w{0}: f64[16,16], %s{0}: f64[16], %b{0}: f64[16]", i);
      body += fmt::format(
          "  %c{0} = dot_general %x{0}, %w{0} {{lhs_contract=[1], rhs_contract=[0]}}\n"
          "  %ws{0} = broadcast %s{0} {{shape=[37,16], dims=[1]}}\n"
          "  %wb{0} = broadcast %b{0} {{shape=[37,16], dims=[1]}}\n"
          "  %m{0} = mul %c{0}, %ws{0}\n"
          "  %n{0} = add %m{0}, %wb{0}\n",
          i);
      body += activation(i);
      const bool residual = one_of({0, 1}) == 1;
      body += residual ? fmt::format("  %x{} = add %a{}, %x{}\n", i + 1, i, i)
                       : fmt::format("  %x{} = neg %a{}\n", i + 1, i);
    }
    return fmt::format("func @main({}) -> {} {{\n{}  return %x{}\n}}\n", params, kShape, body,
                       layers);
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  /// a = clip(n), n·clip(n + 1), n > 0 ? n : n / 8, tanh(n).
  std::string activation(int64_t i) {
    const std::string bounds = fmt::format(
        "  %low{0} = constant {{value=f64[] -0.5}}\n  %high{0} = constant {{value=f64[] 1.5}}\n"
        "  %one{0} = broadcast %high{0} {{shape=[37,16], dims=[]}}\n",
        i);
    switch (one_of({0, 1, 2, 3})) {
      case 0:
        return bounds + fmt::format("  %a{0} = clamp %n{0}, %low{0}, %high{0}\n", i);
      case 1:
        return bounds + fmt::format(
                            "  %o{0} = add %n{0}, %one{0}\n"
                            "  %g{0} = clamp %o{0}, %low{0}, %high{0}\n"
                            "  %a{0} = mul %n{0}, %g{0}\n",
                            i);
      case 2:
        return bounds + fmt::format(
                            "  %p{0} = compare %n{0}, %one{0} {{direction=gt}}\n"
                            "  %q{0} = mul %n{0}, %one{0}\n"
                            "  %a{0} = select %p{0}, %n{0}, %q{0}\n",
                            i);
      default:
        return fmt::format("  %a{0} = tanh %n{0}\n", i);
    }
  }

  std::mt19937 random_;
};

struct Gradients {
  Module module;
  loop::Program program;
};

Gradients lowered(unsigned seed) {
  const Module both = add_vjp(parse_module(RandomLayers(seed).text()), "main");
  Gradients result{both, {}};
  Function vjp = both.function("main_vjp");
  vjp.name = "main";
  result.module.functions["main"] = std::move(vjp);
  PipelineOptions options;
  options.stop_after = "lower";
  result.program = run_pipeline(result.module, *find_target("x86-64-v3"), options).program;
  return result;
}

class Layers : public testing::TestWithParam<unsigned> {};

TEST_P(Layers, KeepEveryBit) {
  const Gradients gradients = lowered(GetParam());
  const loop::Program again = recompute_maps(gradients.program);
  loop::verify(again, "recompute_maps");
  const std::vector<Literal> inputs = random_inputs(gradients.module);
  const std::vector<Literal> expected = loop::interpret(gradients.program, "run", inputs);
  const std::vector<Literal> found = loop::interpret(again, "run", inputs);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i], expected[i]) << "result " << i << "\n" << loop::print(again);
  }
}

constexpr unsigned kLayers = 40;

INSTANTIATE_TEST_SUITE_P(RecomputeMaps, Layers, testing::Range(1u, kLayers + 1));

TEST(RecomputeMaps, ValuesAreOftenMadeAgain) {
  unsigned changed = 0;
  for (unsigned seed = 1; seed <= kLayers; ++seed) {
    const loop::Program program = lowered(seed).program;
    changed += !loop::equal(recompute_maps(program), program);
  }
  EXPECT_GT(changed, kLayers / 2);
  EXPECT_LT(changed, kLayers);
}

}  // namespace
}  // namespace backcast
