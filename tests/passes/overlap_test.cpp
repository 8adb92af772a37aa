// Results that lie partly over what they are computed from, forwards and backwards: a planned
// program, interpreted in one arena, has the bits it has when every buffer has memory of its own.
#include "ir/loop/overlap.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <utility>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/liveness.h"
#include "ir/loop/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

/// Channels last, padded so that stride 1 keeps the shape; the weights are `w_` and the result's
/// name.
std::string conv_text(const std::string& result, const std::string& from, int64_t features,
                      int64_t each, int64_t kernel, int64_t stride, int64_t groups,
                      std::mt19937& random) {
  return fmt::format(
      "  %w_{0} = constant {{value=f32[{1},{2},{3},{3}] [{4}]}}\n"
      "  %{0} = conv %{5}, %w_{0} {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], "
      "output_feature=3, output_spatial=[1,2], strides=[{6},{6}], pad_low=[{7},{7}], "
      "pad_high=[{7},{7}], input_dilation=[1,1], kernel_dilation=[1,1], feature_groups={8}}}\n",
      result, features, each, kernel, random_numbers(features * each * kernel * kernel, random),
      from, stride, kernel / 2, groups);
}

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
    const int64_t kernel = one_of({1, 1, 3, 3, 5});
    const int64_t groups = kernel > 1 && one_of({0, 0, 1}) == 0 ? channels_ : 1;
    std::string text = conv_text(fmt::format("c{}", i), value_, channels_, channels_ / groups,
                                 kernel, 1, groups, random_);
    text += fmt::format("  %r{0} = relu %c{0}\n", i);
    value_ = fmt::format("r{}", i);
    return text;
  }

  std::mt19937 random_;
  int64_t rows_ = 1, columns_ = 1, channels_ = 1;
  std::string value_ = "x";
};

/// Blocks that expand, mix positions and project, most with a residual: chains that run in bands.
class RandomBlocks {
 public:
  explicit RandomBlocks(unsigned seed) : random_(seed) {
    rows_ = one_of({9, 12, 16, 21});
    columns_ = one_of({3, 4, 7});
  }

  std::string text() {
    const std::string input = type();
    std::string body = conv(channels_, 1, 1, 1);
    const int64_t blocks = one_of({1, 2, 3});
    for (int64_t i = 0; i < blocks; ++i) body += block();
    body += conv(2, 1, 1, 1);
    channels_ = 2;
    return fmt::format("func @main(%x: {}) -> {} {{\n{}  return %{}\n}}\n", input, type(), body,
                       value_);
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }
  std::string type() const { return fmt::format("f32[1,{},{},{}]", rows_, columns_, channels_); }

  std::string block() {
    const std::string from = value_;
    const int64_t stride = one_of({1, 1, 1, 2}), wide = channels_ * one_of({3, 6});
    std::string text = conv(wide, 1, 1, 1);
    text += relu();
    inner_ = wide;
    text += conv(wide, one_of({3, 5}), stride, wide);
    text += relu();
    text += conv(channels_, 1, 1, 1);
    inner_ = 0;
    rows_ = (rows_ - 1) / stride + 1;
    columns_ = (columns_ - 1) / stride + 1;
    if (stride > 1) return text;
    text += fmt::format("  %v{} = add %{}, %{}\n", ++count_, value_, from);
    value_ = fmt::format("v{}", count_);
    return text;
  }

  std::string relu() {
    const std::string from = std::exchange(value_, fmt::format("v{}", ++count_));
    return fmt::format("  %{} = relu %{}\n", value_, from);
  }

  std::string conv(int64_t features, int64_t kernel, int64_t stride, int64_t groups) {
    const int64_t each = (inner_ > 0 ? inner_ : channels_) / groups;
    const std::string from = std::exchange(value_, fmt::format("v{}", ++count_));
    return conv_text(value_, from, features, each, kernel, stride, groups, random_);
  }

  std::mt19937 random_;
  int64_t rows_ = 1, columns_ = 1, channels_ = 6, inner_ = 0;
  int64_t count_ = 0;
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

constexpr unsigned kChains = 60, kBlocks = 30;

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

/// Whether two storages that live together in several steps share bytes.
bool shares_bytes(const loop::Program& program) {
  const std::vector<loop::LiveRange> ranges = loop::live_ranges(program, program.entries[0]);
  const auto begin = [&](size_t id) { return program.buffers[id].offset; };
  const auto end = [&](size_t id) {
    return begin(id) + program.storage_bytes(static_cast<loop::BufferId>(id));
  };
  for (size_t a = 0; a < ranges.size(); ++a) {
    for (size_t b = 0; b < ranges.size(); ++b) {
      if (begin(a) < 0 || begin(b) < 0 || begin(a) >= end(b) || begin(b) >= end(a)) continue;
      if (ranges[a].first < ranges[b].first && ranges[b].first < ranges[a].last) return true;
    }
  }
  return false;
}

/// In bands, if that makes it fit into a share of what it takes otherwise.
std::optional<loop::Program> in_bands(const Module& module, const TargetInfo& target) {
  PipelineOptions options;
  options.passes.ram = run_pipeline(module, target, options).program.arena_bytes * 7 / 10;
  try {
    return run_pipeline(module, target, options).program;
  } catch (const CompileError&) {
    return std::nullopt;
  }
}

TEST_P(Overlaps, OfBandsKeepEveryBit) {
  const TargetInfo target = one_thread(GetParam());
  unsigned shared = 0;
  for (unsigned seed = 1; seed <= kBlocks; ++seed) {
    const Module module = parse_module(RandomBlocks(seed).text());
    const std::optional<loop::Program> program = in_bands(module, target);
    if (!program) continue;
    shared += shares_bytes(*program);
    const std::vector<Literal> inputs = random_inputs(module);
    const std::vector<Literal> results = loop::interpret(*program, "run", inputs);
    ASSERT_EQ(results, loop::interpret(apart(*program), "run", inputs)) << "blocks " << seed << "\n"
                                                                        << loop::print(*program);
    EXPECT_LT(error_of(results[0], evaluate_main(module, inputs)[0]), 1e-5) << "blocks " << seed;
  }
  EXPECT_GT(shared, 0u);  // few where calls at borders are passed rows that they do not read
}

TEST(OverlapDistance, KnowsWhatSizesCallsPass) {
  const auto distance = [](const std::string& sizes) {
    const loop::Program program = loop::parse_program(fmt::format(
        "program @p\nsymbol n in 0..3\nsymbol N in 1..3\nbuffer %x : f32[8] input\n"
        "buffer %a : f32[8] arena\nbuffer %b : f32[8] arena\nbuffer %y : f32[N] output\n"
        "kernel @k(x: f32[8] read, y: f32[8] write) sizes(n) {{\n  for i in 0 .. 5 {{\n"
        "    store y[i] = load f32 x[i + n]\n  }}\n}}\n"
        "entry @run(%x) -> (%y) {{\n  call @k(%a, %b) sizes({})\n}}\n",
        sizes));
    return loop::overlap_distance(program, program.entries[0].steps[0], 1, 2);
  };
  ASSERT_TRUE(distance("0") && distance("2"));
  EXPECT_EQ(distance("0")->read_above, 0);
  EXPECT_EQ(distance("2")->read_above, -2 * 4);
  EXPECT_FALSE(distance("N"));
}

INSTANTIATE_TEST_SUITE_P(Targets, Overlaps,
                         testing::Values("cortex-m4", "cortex-m55", "armv7-neon", "x86-64-v3",
                                         "x86-64-v4"));

}  // namespace
}  // namespace backcast
