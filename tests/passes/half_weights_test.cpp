// Products with weights of half floats: the results of the same in single precision, and weights
// that are halves where few rows read them, of zeros among factors as well.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "tests/passes/random_convolution.h"
#include "tests/passes/zero_factors.h"

namespace backcast {
namespace {

struct Layer {
  int64_t rows, width, results;
  bool halves_on_hosts;
};

const Layer kLayers[] = {{1, 64, 96, true},
                         {1, 67, 129, true},
                         {7, 65, 96, true},
                         {9, 64, 96, true},
                         {40, 64, 96, false}};

/// relu(x)·w, where only w is of the type; `whole`: so are x and the result.
Module module_of(const Layer& c, const std::string& type, bool whole) {
  std::mt19937 random(5);
  const std::string outside = whole ? type : "f32";
  return parse_module(fmt::format(
      R"(
entry "run" @main
func @main(%x: {4}[{0},{1}]) -> {4}[{0},{2}] {{
  %wide = cast %x {{to=f32}}
  %a = relu %wide
  %h = constant {{value={3}[{1},{2}] [{5}]}}
  %w = cast %h {{to=f32}}
  %y = dot_general %a, %w {{lhs_contract=[1], rhs_contract=[0]}}
  %result = cast %y {{to={4}}}
  return %result
}})",
      c.rows, c.width, c.results, type, outside, random_numbers(c.width * c.results, random)));
}

class HalfWeights : public testing::TestWithParam<Layer> {};

TEST_P(HalfWeights, LikeTheEvaluator) {
  for (const char* type : {"f16", "bf16"}) {
    for (const bool whole : {false, true}) {
      const Module module = module_of(GetParam(), type, whole);
      const std::vector<Literal> inputs = random_inputs(module);
      const Literal expected = evaluate_main(module, inputs).at(0);
      // One of another order of the sum, rounded.
      const double unit = !whole ? 2e-5 : std::string_view(type) == "f16" ? 0x1p-10 : 0x1p-7;
      for (const char* name : {"x86-64", "x86-64-v3", "x86-64-v4", "cortex-a53", "armv7-neon",
                               "cortex-m4", "cortex-m55", "cortex-m0", "esp32", "wasm32"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", type, whole, name));
        const PipelineResult compiled = compile(module, *find_target(name));
        expect_like(loop::interpret(compiled.program, "run", inputs).at(0), expected, unit);
      }
    }
  }
}

/// Bytes of the largest constant.
int64_t weight_bytes(const Layer& layer, const char* type, const char* target) {
  const PipelineResult compiled = compile(module_of(layer, type, false), *find_target(target));
  int64_t bytes = 0;
  for (const loop::Buffer& buffer : compiled.program.buffers) {
    if (buffer.kind != loop::BufferClass::constant) continue;
    bytes = std::max(bytes, static_cast<int64_t>(buffer.value.bytes().size()));
  }
  return bytes;
}

TEST_P(HalfWeights, StayHalvesWhereFewReadThem) {
  const Layer& layer = GetParam();
  const int64_t halves = 2 * layer.width * layer.results, most = halves + halves / 4;
  for (const char* type : {"f16", "bf16"}) {
    for (const char* target : {"cortex-m4", "cortex-m0", "cortex-m55"}) {
      EXPECT_LE(weight_bytes(layer, type, target), most) << target << " " << type;
    }
    for (const char* target : {"x86-64-v3", "x86-64-v4", "cortex-a53"}) {
      EXPECT_EQ(weight_bytes(layer, type, target) <= most, layer.halves_on_hosts)
          << target << " " << type;
    }
  }
  for (const char* target : {"x86-64", "armv7-neon", "wasm32", "esp32"}) {
    EXPECT_GT(weight_bytes(layer, "f16", target), most) << target << " converts by shifting bits";
  }
}

TEST(HalfWeightsOf, OneRowLeaveOutZeros) {
  for (const char* target : {"x86-64-v4", "cortex-a53", "cortex-m4"}) {
    const Module module = module_of({1, 256, 256, true}, "f16", false);
    EXPECT_EQ(compile(module, *find_target(target)).notes.skipping.size(), 1) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, HalfWeights, testing::ValuesIn(kLayers),
                         [](const testing::TestParamInfo<Layer>& info) {
                           return fmt::format("r{}_k{}_n{}", info.param.rows, info.param.width,
                                              info.param.results);
                         });

}  // namespace
}  // namespace backcast
