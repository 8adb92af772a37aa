// Results that lie partly over what they are computed from, forwards and backwards: a planned
// program, interpreted in one arena, has the bits it has when every buffer has memory of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

/// Convolutions and pointwise products that keep their operand's shape, channels last.
class RandomChain {
 public:
  explicit RandomChain(unsigned seed) : random_(seed) {
    rows_ = one_of({1, 2, 5, 9, 13});
    columns_ = one_of({1, 3, 4, 7});
    channels_ = one_of({1, 3, 4, 8, 17});
  }

  std::string text() {
    const std::string type = fmt::format("f32[1,{},{},{}]", rows_, columns_, channels_);
    std::string body;
    const int64_t layers = one_of({3, 4, 6, 7});
    for (int64_t i = 0; i < layers; ++i) body += layer(i);
    return fmt::format("func @main(%x: {0}) -> {0} {{\n{1}  return %{2}\n}}\n", type, body, value_);
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  std::string layer(int64_t i) {
    const int64_t kernel = one_of({1, 1, 3, 3, 5}), pad = kernel / 2;
    const int64_t groups = kernel > 1 && one_of({0, 0, 1}) == 0 ? channels_ : 1;
    const int64_t each = channels_ / groups;
    std::string text =
        fmt::format("  %w{0} = constant {{value=f32[{1},{2},{3},{3}] [{4}]}}\n", i, channels_, each,
                    kernel, random_numbers(channels_ * each * kernel * kernel, random_));
    text += fmt::format(
        "  %c{0} = conv %{1}, %w{0} {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], "
        "output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[{2},{2}], "
        "pad_high=[{2},{2}], input_dilation=[1,1], kernel_dilation=[1,1], feature_groups={3}}}\n",
        i, value_, pad, groups);
    text += fmt::format("  %r{0} = relu %c{0}\n", i);
    value_ = fmt::format("r{}", i);
    return text;
  }

  std::mt19937 random_;
  int64_t rows_ = 1, columns_ = 1, channels_ = 1;
  std::string value_ = "x";
};

TargetInfo one_thread(const char* name) {
  TargetInfo target = *find_target(name);
  target.parallel_grain = 0;
  return target;
}

loop::Program planned(unsigned seed, const TargetInfo& target) {
  const Module module = parse_module(RandomChain(seed).text());
  return run_pipeline(module, target, {}).program;
}

/// With memory of its own for every buffer.
loop::Program apart(loop::Program program) {
  for (loop::Buffer& buffer : program.buffers) {
    if (buffer.kind == loop::BufferClass::arena) buffer.offset = -1;
  }
  return program;
}

/// Whether a call writes over part of what it reads.
bool has_overlap(const loop::Program& program) {
  for (const loop::Step& step : program.entries[0].steps) {
    for (const loop::BufferId a : step.buffers) {
      for (const loop::BufferId b : step.buffers) {
        const loop::Buffer &x = program.buffer(a), &y = program.buffer(b);
        if (x.offset < 0 || y.offset < 0 || x.offset >= y.offset) continue;
        if (y.offset < x.offset + program.storage_bytes(a)) return true;
      }
    }
  }
  return false;
}

constexpr unsigned kChains = 60;

class Overlaps : public testing::TestWithParam<const char*> {};

TEST_P(Overlaps, KeepEveryBit) {
  const TargetInfo target = one_thread(GetParam());
  for (unsigned seed = 1; seed <= kChains; ++seed) {
    const Module module = parse_module(RandomChain(seed).text());
    const loop::Program program = planned(seed, target);
    const std::vector<Literal> inputs = random_inputs(module);
    const std::vector<Literal> results = loop::interpret(program, "run", inputs);
    ASSERT_EQ(results, loop::interpret(apart(program), "run", inputs)) << "chain " << seed << "\n"
                                                                       << loop::print(program);
    EXPECT_LT(error_of(results[0], evaluate_main(module, inputs)[0]), 1e-5) << "chain " << seed;
  }
}

TEST_P(Overlaps, AreFoundInBothDirections) {
  const TargetInfo target = one_thread(GetParam());
  unsigned overlaps = 0, backwards = 0;
  for (unsigned seed = 1; seed <= kChains; ++seed) {
    const loop::Program program = planned(seed, target);
    overlaps += has_overlap(program);
    backwards += loop::print(program).find("_back in ") != std::string::npos;
  }
  EXPECT_GT(overlaps, kChains / 2);
  EXPECT_GT(backwards, kChains / 6);
}

INSTANTIATE_TEST_SUITE_P(Targets, Overlaps,
                         testing::Values("cortex-m4", "cortex-m55", "x86-64-v3", "x86-64-v4"));

}  // namespace
}  // namespace backcast
