// Windows over channels that lie outside of space give the same bits on turned copies, for poolings
// and convolutions of any kind, shape, stride and padding; compiled, C and LLVM agree to the bit.
// So do places of extremes.
#include "passes/schedule/turn_operands.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

/// One window over f32[n, c, y, x], perhaps with a sum behind it.
class RandomWindow {
 public:
  explicit RandomWindow(unsigned seed) : random_(seed) {
    batch_ = one_of({1, 1, 2});
    channels_ = one_of({1, 5, 16, 24, 33});
    for (int64_t* extent : {&rows_, &columns_}) *extent = one_of({7, 11, 16, 29});
    window_ = one_of({1, 2, 3, 5});
    stride_ = one_of({1, 1, 2});
    low_ = std::min(window_ - 1, one_of({0, 1, 2}));
    high_ = std::min(window_ - 1, one_of({0, 1}));
  }

  std::string text() {
    const int64_t kind = one_of({0, 1, 2, 2, 3, 4});
    const std::string window = kind < 2 ? pooling(kind == 0 ? "max" : "sum") : convolution(kind);
    const std::string result = fmt::format("f32[{},{},{},{}]", batch_, features_, y_, x_);
    const bool sums = one_of({0, 1}) == 1;
    return fmt::format(
        "func @main(%x: f32[{},{},{},{}], %r: {}) -> {} {{\n{}  %s = {} %w, %r\n  return %s\n}}\n",
        batch_, channels_, rows_, columns_, result, result, window, sums ? "add" : "max");
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  int64_t extent(int64_t in, int64_t dilation, int64_t spread) const {
    const int64_t wide = (in - 1) * spread + 1, reach = (window_ - 1) * dilation + 1;
    return (wide + low_ + high_ - reach) / stride_ + 1;
  }

  std::string pooling(const std::string& kind) {
    features_ = channels_;
    y_ = extent(rows_, 1, 1);
    x_ = extent(columns_, 1, 1);
    return fmt::format(
        "  %w = reduce_window %x {{kind={0}, window=[1,1,{1},{1}], strides=[1,1,{2},{2}], "
        "dilation=[1,1,1,1], pad_low=[0,0,{3},{3}], pad_high=[0,0,{4},{4}]}}\n",
        kind, window_, stride_, low_, high_);
  }

  /// Kinds: 2 depthwise, 3 dense and dilated, 4 of an input that is dilated itself.
  std::string convolution(int64_t kind) {
    const int64_t groups = kind == 2 ? channels_ : 1, dilation = kind == 3 ? 2 : 1;
    const int64_t spread = kind == 4 ? 2 : 1;
    if (kind == 3) window_ = std::min<int64_t>(window_, 3);
    features_ = kind == 2 ? channels_ : one_of({1, 8, 16, 19});
    y_ = extent(rows_, dilation, spread);
    x_ = extent(columns_, dilation, spread);
    const int64_t inputs = channels_ / groups;
    return fmt::format(
        "  %k = constant {{value=f32[{0},{1},{2},{2}] [{3}]}}\n"
        "  %w = conv %x, %k {{input_feature=1, input_spatial=[2,3], kernel_spatial=[2,3], "
        "output_feature=1, output_spatial=[2,3], strides=[{4},{4}], pad_low=[{5},{5}], "
        "pad_high=[{6},{6}], input_dilation=[{7},{7}], kernel_dilation=[{8},{8}], "
        "feature_groups={9}}}\n",
        features_, inputs, window_, random_numbers(features_ * inputs * window_ * window_, random_),
        stride_, low_, high_, spread, dilation, groups);
  }

  std::mt19937 random_;
  int64_t batch_ = 1, channels_ = 1, rows_ = 1, columns_ = 1, features_ = 1, y_ = 1, x_ = 1;
  int64_t window_ = 1, stride_ = 1, low_ = 0, high_ = 0;
};

loop::Program before_turning(const Module& module, const TargetInfo& target) {
  PipelineOptions options;
  options.stop_after = "narrow_constants";
  return run_pipeline(module, target, options).program;
}

class Windows : public testing::TestWithParam<unsigned> {};

TEST_P(Windows, KeepEveryBit) {
  const TargetInfo& target = *find_target("x86-64-v3");
  const Module module = parse_module(RandomWindow(GetParam()).text());
  const loop::Program program = before_turning(module, target);
  const loop::Program turned = turn_operands(program, target);
  loop::verify(turned, "turn_operands");
  const std::vector<Literal> inputs = random_inputs(module);
  EXPECT_EQ(loop::interpret(turned, "run", inputs).front(),
            loop::interpret(program, "run", inputs).front())
      << loop::print(turned);
}

TEST_P(Windows, CompiledToTheBit) {
  const Module module = parse_module(RandomWindow(GetParam()).text());
  const NodeCase one = compiled_case(module, "window", resolve_target("native"), {});
  expect_close_and_equal(one, 1e-5);
}

constexpr unsigned kWindows = 48;

INSTANTIATE_TEST_SUITE_P(TurnOperands, Windows, testing::Range(1u, kWindows + 1));

/// Places of maxima and minima among values of which many are equal or no numbers.
TEST(TurnOperands, PlacesOfExtremesCompiledToTheBit) {
  std::mt19937 random(3);
  const auto expect_places = [&](const std::string& type, std::vector<int64_t> extents,
                                 int64_t axis, const char* attrs) {
    const std::string shape = fmt::format("{}", fmt::join(extents, ","));
    std::vector<double> values(
        static_cast<size_t>(extents[0] * extents[1] * extents[2] * extents[3]));
    for (double& value : values) {
      const bool missing = type == "f32" && random() % 16 == 0;
      value = missing ? std::nan("") : static_cast<double>(random() % 5);
    }
    const Literal x = Literal::from_doubles(*element_type_from_name(type), extents, values);
    extents.erase(extents.begin() + axis);
    const Module module = parse_module(
        fmt::format("func @main(%x: {}[{}]) -> i64[{}] {{\n  %p = arg_reduce %x {{axis={}, {}}}\n"
                    "  return %p\n}}\n",
                    type, shape, fmt::join(extents, ","), axis, attrs));
    expect_exact_when_compiled(module, {x});
  };
  for (const int64_t axis : {1, 3}) {
    for (const char* attrs : {"kind=max, last=false", "kind=min, last=true"}) {
      for (const std::vector<int64_t>& extents :
           {std::vector<int64_t>{2, 21, 7, 19}, {1, 1, 5, 40}, {1, 33, 16, 64}}) {
        for (const char* type : {"f32", "i32", "u8"}) expect_places(type, extents, axis, attrs);
      }
    }
  }
}

TEST(TurnOperands, AreOftenTurned) {
  const TargetInfo& target = *find_target("x86-64-v3");
  unsigned turned = 0;
  for (unsigned seed = 1; seed <= kWindows; ++seed) {
    const loop::Program program = before_turning(parse_module(RandomWindow(seed).text()), target);
    turned += !loop::equal(turn_operands(program, target), program);
  }
  EXPECT_GT(turned, kWindows / 6);
  EXPECT_LT(turned, kWindows);
}

}  // namespace
}  // namespace backcast
