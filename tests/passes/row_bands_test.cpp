// Bands of rows leave every value as it was, for any chain of windows and products and for
// attention, any shape and height of bands; C and LLVM agree to the bit. What is chosen is what the
// model says pays.
#include "passes/lower/row_bands.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/liveness.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "tests/passes/random_chain.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

/// Attention over `tokens`, perhaps between residual sums and with two dense layers behind it.
class RandomAttention {
 public:
  explicit RandomAttention(unsigned seed) : random_(seed) {
    batch_ = one_of({1, 1, 1, 2});
    tokens_ = one_of({1, 5, 7, 11, 16});
    heads_ = one_of({1, 2, 3, 4});
    width_ = one_of({1, 3, 8});
  }

  int64_t scores() const { return batch_ * heads_ * tokens_ * tokens_; }

  std::string text() {
    const int64_t features = heads_ * width_;
    const std::string type = fmt::format("f32[{},{},{}]", batch_, tokens_, features);
    std::vector<std::string> operands{"q", "k", "v"};
    std::shuffle(operands.begin(), operands.end(), random_);
    for (const std::string& name : operands) {
      dense(name, "x", features, features);
      line("{0}h = reshape %{0} {{shape=[{1},{2},{3},{4}]}}", name, batch_, tokens_, heads_,
           width_);
      line("{0}t = transpose %{0}h {{permutation=[0,2,{1}]}}", name, name == "k" ? "3,1" : "1,3");
    }
    softmax();
    product("a", "p", "vt");
    line("b = transpose %a {{permutation=[0,2,1,3]}}");
    line("c = reshape %b {{shape=[{},{},{}]}}", batch_, tokens_, features);
    dense("d", "c", features, features);
    line("e = add %d, %x");
    if (one_of({0, 1}) == 1) return whole(type, "e");
    const int64_t wide = one_of({5, 16});
    dense("f", "e", features, wide);
    line("g = erf %f");
    dense("h", "g", wide, features);
    line("i = add %h, %e");
    return whole(type, "i");
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    body_ += "  %" + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void dense(const std::string& name, const std::string& operand, int64_t from, int64_t to) {
    line("w{0} = constant {{value=f32[{1},{2}] [{3}]}}", name, from, to,
         random_numbers(from * to, random_));
    line("{0} = dot_general %{1}, %w{0} {{lhs_contract=[2], rhs_contract=[0]}}", name, operand);
  }

  void product(const std::string& name, const std::string& a, const std::string& b) {
    line(
        "{} = dot_general %{}, %{} {{lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], "
        "rhs_contract=[2]}}",
        name, a, b);
  }

  void softmax() {
    product("s", "qt", "kt");
    const std::string rows = fmt::format("{},{},{}", batch_, heads_, tokens_);
    const auto spread = [&](const std::string& name) {
      line("{0}r = reshape %{0} {{shape=[{1},1]}}", name, rows);
      line("{0}b = broadcast %{0}r {{shape=[{1},{2}], dims=[0,1,2,3]}}", name, rows, tokens_);
    };
    line("m = reduce %s {{kind=max, axes=[3]}}");
    spread("m");
    line("y = sub %s, %mb");
    line("z = exp %y");
    line("n = reduce %z {{axes=[3]}}");
    spread("n");
    line("p = div %z, %nb");
  }

  std::string whole(const std::string& type, const std::string& result) const {
    return fmt::format("func @main(%x: {0}) -> {0} {{\n{1}  return %{2}\n}}\n", type, body_,
                       result);
  }

  std::mt19937 random_;
  int64_t batch_ = 1, tokens_ = 1, heads_ = 1, width_ = 1;
  std::string body_;
};

/// Of the longest chain of steps that ends with the last one.
std::optional<loop::Program> longest_bands(const loop::Program& program,
                                           Borders borders = Borders::apart) {
  const size_t steps = program.entries[0].steps.size();
  std::optional<loop::Program> bands;
  for (size_t first = 0; first + 1 < steps && !bands; ++first) {
    bands = band_steps(program, {{first, steps - 1, {3}}}, borders);
  }
  return bands;
}

void expect_same_values_in_any_bands(const Module& module, Borders borders = Borders::apart) {
  const TargetInfo& target = *find_target("x86-64-v3");
  const loop::Program program = until_bands(module, target).program;
  const std::vector<Literal> inputs = random_inputs(module);
  const Literal expected = loop::interpret(program, "run", inputs).front();
  const size_t steps = program.entries[0].steps.size();
  for (size_t last = 1; last < steps; ++last) {
    for (size_t first = 0; first < last; ++first) {
      std::vector<BandHeight> heights{{1, 2}, {1, 3}, {1, 4}, {3, 2}};
      for (int64_t height = 1; height < 12; ++height) heights.push_back({height});
      for (const BandHeight height : heights) {
        const std::optional<loop::Program> bands =
            band_steps(program, {{first, last, height}}, borders);
        if (!bands) continue;
        loop::verify(*bands, "row_bands");
        const loop::Program parsed =
            loop::parse_program(loop::print(*bands), loop::print_constants(*bands));
        EXPECT_TRUE(loop::equal(parsed, *bands));
        const Literal found = loop::interpret(*bands, "run", inputs).front();
        EXPECT_TRUE(splits_sums(*bands) ? are_close(expected, found, 1e-5) : expected == found)
            << "steps " << first << " to " << last << ", height " << height.rows << "/"
            << height.trips << "\n"
            << loop::print(*bands);
      }
    }
  }
}

void expect_longest_bands_to_the_bit(const Module& module, Borders borders = Borders::apart) {
  const TargetInfo target = resolve_target("native");
  PipelineResult state = until_bands(module, target);
  const std::optional<loop::Program> bands = longest_bands(state.program, borders);
  if (!bands) return;
  state.program = *bands;
  expect_equal_backends("chain", module, std::move(state), target, 1e-5);
}

class Chains : public testing::TestWithParam<unsigned> {};

TEST_P(Chains, KeepEveryValueInAnyBands) {
  expect_same_values_in_any_bands(parse_module(RandomChain(GetParam(), "f32").text()));
}

TEST_P(Chains, KeepEveryValueWithOneKernelForBorders) {
  expect_same_values_in_any_bands(parse_module(RandomChain(GetParam(), "f32").text()),
                                  Borders::shared);
}

TEST_P(Chains, CompiledToTheBit) {
  const Module module = parse_module(RandomChain(GetParam(), "f32").text());
  expect_longest_bands_to_the_bit(module);
  expect_longest_bands_to_the_bit(module, Borders::shared);
}

class Attention : public testing::TestWithParam<unsigned> {};

TEST_P(Attention, KeepsEveryValueInAnyBands) {
  expect_same_values_in_any_bands(parse_module(RandomAttention(GetParam()).text()));
}

TEST_P(Attention, CompiledToTheBit) {
  expect_longest_bands_to_the_bit(parse_module(RandomAttention(GetParam()).text()));
}

constexpr unsigned kChains = 24;

INSTANTIATE_TEST_SUITE_P(RowBands, Chains, testing::Range(1u, kChains + 1));
INSTANTIATE_TEST_SUITE_P(RowBands, Attention, testing::Range(1u, kChains + 1));

/// Whether a step, or a step within one, names a buffer of so many elements.
bool mentions_size(const loop::Program& program, int64_t elements) {
  bool found = false;
  for (const loop::Step* step : loop::flat_steps(program.entries[0].steps)) {
    for (const loop::BufferId id : step->buffers) {
      found = found || (id >= 0 && program.storage_bytes(id) == elements * 4);
    }
  }
  return found;
}

TEST(RowBands, LeaveNoMatrixOfScores) {
  unsigned without = 0, with = 0;
  for (unsigned seed = 1; seed <= kChains; ++seed) {
    RandomAttention attention(seed);
    const Module module = parse_module(attention.text());
    const loop::Program program = until_bands(module, *find_target("x86-64-v3")).program;
    const std::optional<loop::Program> bands = longest_bands(program);
    with += mentions_size(program, attention.scores());
    without += bands && !mentions_size(*bands, attention.scores());
  }
  EXPECT_EQ(with, kChains);
  EXPECT_GT(without, kChains / 2);
}

TEST(RowBands, FitMostChains) {
  unsigned count = 0;
  for (unsigned seed = 1; seed <= kChains; ++seed) {
    const Module module = parse_module(RandomChain(seed, "f32").text());
    const TargetInfo& target = *find_target("x86-64-v3");
    count += longest_bands(until_bands(module, target).program).has_value();
  }
  EXPECT_GT(count, kChains * 3 / 4);
}

/// Expands, mixes positions and projects, as inverted residual blocks do.
Module block_of(int64_t rows, int64_t width) {
  std::mt19937 random(5);
  return parse_module(fmt::format(
      R"(
func @main(%x: f32[1,{0},{0},8]) -> f32[1,{0},{0},8] {{
  %w = constant {{value=f32[{1},8,1,1] [{2}]}}
  %d = constant {{value=f32[{1},1,3,3] [{3}]}}
  %p = constant {{value=f32[8,{1},1,1] [{4}]}}
  %a = conv %x, %w {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[0,0], pad_high=[0,0], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %b = relu %a
  %c = conv %b, %d {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[1,1], pad_high=[1,1], input_dilation=[1,1], kernel_dilation=[1,1], feature_groups={1}}}
  %e = relu %c
  %f = conv %e, %p {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[0,0], pad_high=[0,0], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %y = add %f, %x
  return %y
}})",
      rows, width, random_numbers(width * 8, random), random_numbers(width * 9, random),
      random_numbers(width * 8, random)));
}

PipelineResult compile(const Module& module, const TargetInfo& target) {
  return run_pipeline(module, target, {});
}

size_t loops(const PipelineResult& result) {
  size_t count = 0;
  for (const loop::Step* step : loop::flat_steps(result.program.entries[0].steps)) {
    count += step->kind == loop::StepKind::loop;
  }
  return count;
}

TEST(RowBands, AreChosenForWhatLeavesTheCache) {
  const TargetInfo& target = *find_target("x86-64-v4");
  const Module large = block_of(64, 96);
  EXPECT_EQ(loops(compile(large, target)), 1u);
  EXPECT_EQ(loops(compile(block_of(16, 96), target)), 0u);
  TargetInfo uncached = target;
  uncached.l2_bytes = 0;
  const PipelineResult whole = compile(large, uncached);
  EXPECT_EQ(loops(whole), 0u);
  EXPECT_LT(compile(large, target).program.arena_bytes * 2, whole.program.arena_bytes);
}

TEST(RowBands, MultiplyNothingTwice) {
  const Module module = block_of(64, 96);
  const auto products = [](const loop::Program& program) {
    int64_t sum = 0;
    for (const loop::Step& step : program.entries[0].steps) {
      const bool repeats = step.kind == loop::StepKind::loop;
      for (const loop::Step& call : repeats ? step.body : std::vector<loop::Step>{step}) {
        if (call.kind != loop::StepKind::call) continue;
        sum += program.kernels.at(call.kernel).macs * (repeats ? step.count.constant() : 1);
      }
    }
    return sum;
  };
  const TargetInfo& target = *find_target("x86-64-v4");
  const loop::Program whole = until_bands(module, target).program;
  const loop::Program bands = row_bands(whole, target);
  EXPECT_FALSE(loop::equal(bands, whole));
  EXPECT_EQ(products(bands), products(whole));
}

/// Kernels that differ in more than their names.
size_t distinct_kernels(const loop::Program& program) {
  std::set<std::string> bodies;
  for (auto [name, kernel] : program.kernels) {
    kernel.name = "k";
    bodies.insert(loop::print(kernel));
  }
  return bodies.size();
}

TEST(RowBands, ShareKernelsAtBorders) {
  // Four bands of four rows: the first step computes five at the top, three at the bottom, the
  // second, which padding surrounds, and the third always as many.
  const loop::Program whole = until_bands(block_of(16, 8), *find_target("cortex-m4")).program;
  const auto kernels = [&](Borders borders) {
    return distinct_kernels(*band_steps(whole, {{0, 2, {4}}}, borders));
  };
  EXPECT_EQ(kernels(Borders::apart), 3u + 3u + 1u);
  EXPECT_EQ(kernels(Borders::shared), 3u + 1u + 1u);
}

/// With --ram.
PipelineResult fitted(const Module& module, const TargetInfo& target, int64_t ram) {
  PipelineOptions options;
  options.passes.ram = ram;
  return run_pipeline(module, target, options);
}

void expect_to_fit(const Module& module, const std::vector<int64_t>& percents) {
  const std::vector<Literal> inputs = random_inputs(module);
  for (const char* name : {"cortex-m4", "x86-64-v3"}) {
    const TargetInfo& target = *find_target(name);
    const PipelineResult whole = fitted(module, target, int64_t{1} << 40);
    EXPECT_EQ(whole.notes.bands, "");
    EXPECT_EQ(loops(whole), 0u);
    const Literal expected = loop::interpret(whole.program, "run", inputs).front();
    const int64_t arena = whole.program.arena_bytes;
    int64_t before = arena;
    for (const int64_t percent : percents) {
      const PipelineResult less = fitted(module, target, arena * percent / 100);
      EXPECT_LE(less.program.arena_bytes, arena * percent / 100) << name;
      EXPECT_LT(less.program.arena_bytes, before) << name;
      EXPECT_NE(less.notes.bands.find("in bands"), std::string::npos);
      EXPECT_LT(error_of(loop::interpret(less.program, "run", inputs).front(), expected), 1e-6);
      before = less.program.arena_bytes;
    }
    EXPECT_THROW(fitted(module, target, arena / 100), CompileError);
  }
}

TEST(RowBands, FitAGivenMemoryAndTakeNoMoreThanThat) {
  expect_to_fit(block_of(24, 16), {75, 50, 30});
}

TEST(RowBands, AreMadeUnaskedWhereMemoryIsScarce) {
  const Module module = block_of(24, 16);
  const std::vector<Literal> inputs = random_inputs(module);
  const TargetInfo& target = *find_target("cortex-m4");
  PipelineOptions without;
  without.passes.bands = false;
  const PipelineResult whole = run_pipeline(module, target, without);
  const PipelineResult bands = compile(module, target);
  EXPECT_EQ(whole.notes.bands, "");
  EXPECT_NE(bands.notes.bands.find("in bands"), std::string::npos);
  EXPECT_LT(bands.program.arena_bytes * 2, whole.program.arena_bytes);
  const Literal expected = loop::interpret(whole.program, "run", inputs).front();
  EXPECT_LT(error_of(loop::interpret(bands.program, "run", inputs).front(), expected), 1e-6);
  EXPECT_EQ(compile(module, *find_target("x86-64-v3")).notes.bands, "");
  EXPECT_EQ(fitted(module, target, whole.program.arena_bytes).notes.bands, "");  // it fits
}

TEST(RowBands, AreNotMadeUnaskedForTheSakeOfFewBytes) {
  EXPECT_EQ(compile(block_of(4, 2), *find_target("cortex-m4")).notes.bands, "");
}

/// Tokens of which each looks at all: the scores are most of what it takes.
TEST(RowBands, FitAttentionIntoAGivenMemory) {
  expect_to_fit(parse_module(R"(
func @main(%q: f32[1,64,4,8], %k: f32[1,64,4,8], %v: f32[1,64,4,8]) -> f32[1,64,4,8] {
  %a = transpose %q {permutation=[0,2,1,3]}
  %b = transpose %k {permutation=[0,2,3,1]}
  %c = transpose %v {permutation=[0,2,1,3]}
  %s = dot_general %a, %b {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]}
  %m = reduce %s {kind=max, axes=[3]}
  %n = reshape %m {shape=[1,4,64,1]}
  %o = broadcast %n {shape=[1,4,64,64], dims=[0,1,2,3]}
  %d = sub %s, %o
  %e = exp %d
  %f = reduce %e {axes=[3]}
  %g = reshape %f {shape=[1,4,64,1]}
  %h = broadcast %g {shape=[1,4,64,64], dims=[0,1,2,3]}
  %p = div %e, %h
  %y = dot_general %p, %c {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]}
  %z = transpose %y {permutation=[0,2,1,3]}
  return %z
})"),
                {60, 30});
}

}  // namespace
}  // namespace backcast
