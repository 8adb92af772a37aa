// The positions that windows choose, and what is scattered to them, for any shape, border and type:
// as the evaluator has them on every kind of target, ties, infinities and NaN included.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "ir/graph/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

class RandomWindows {
 public:
  explicit RandomWindows(unsigned seed) : random_(seed) {
    element_ = std::vector<std::string>{"f32", "f32", "f32", "i32", "u8", "i8", "f64"}[seed % 7];
    const int64_t channels = one_of({1, 3, 8, 16, 24, 37});
    shape_ = {one_of({1, 2}), one_of({5, 8, 11}), one_of({3, 8, 13}), channels};
    for (size_t d : {1u, 2u}) {
      window_[d] = one_of({1, 2, 3});
      strides_[d] = one_of({1, 2, 3});
      dilation_[d] = one_of({1, 1, 1, 2});
      low_[d] = one_of({0, 0, 1, 2});
      high_[d] = one_of({0, 0, 1});
    }
    for (size_t d = 0; d < 4; ++d) {
      const int64_t reach = (window_[d] - 1) * dilation_[d] + 1;
      high_[d] += std::max<int64_t>(reach - shape_[d] - low_[d] - high_[d], 0);
      out_.push_back((shape_[d] + low_[d] + high_[d] - reach) / strides_[d] + 1);
    }
  }

  std::string text() {
    const std::string attrs =
        fmt::format("window=[{}], strides=[{}], dilation=[{}], pad_low=[{}], pad_high=[{}]",
                    fmt::join(window_, ","), fmt::join(strides_, ","), fmt::join(dilation_, ","),
                    fmt::join(low_, ","), fmt::join(high_, ","));
    const std::string in = fmt::format("{}", fmt::join(shape_, ","));
    const std::string out = fmt::format("{}", fmt::join(out_, ","));
    return fmt::format(
        R"(
func @main(%x: {0}[{1}], %g: f32[{2}]) -> (u8[{2}], f32[{1}]) {{
  %p = arg_window %x {{kind={3}, {4}}}
  %s = scatter_window %g, %p {{shape=[{1}], {4}}}
  %r = tuple %p, %s
  return %r
}})",
        element_, in, out, one_of({0, 1}) ? "max" : "min", attrs);
  }

  /// Few different values, so that many are equal, and sums that every order leaves exact.
  std::vector<Literal> inputs(const Module& module) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const Function& main = module.function("main");
    const std::vector<double> special{kInf, -kInf, std::numeric_limits<double>::quiet_NaN()};
    std::vector<Literal> result;
    for (const ValueId id : main.params) {
      const TensorType& type = main.type(id).tensor();
      const bool chosen_from = result.empty();
      std::vector<double> values(static_cast<size_t>(type.element_count().constant()));
      for (double& value : values) {
        value = static_cast<double>(one_of({0, 1, 2, 3}));
        if (!chosen_from || element_ != "u8") value -= 2;
        if (chosen_from && is_float(type.element) && one_of({0, 1, 2, 3}) == 0) {
          value = special[random_() % special.size()];
        }
      }
      result.push_back(Literal::from_doubles(type.element, chosen_from ? shape_ : out_, values));
    }
    return result;
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  std::mt19937 random_;
  std::string element_;
  std::vector<int64_t> shape_, out_;
  std::vector<int64_t> window_{1, 1, 1, 1}, strides_ = window_, dilation_ = window_;
  std::vector<int64_t> low_{0, 0, 0, 0}, high_ = low_;
};

class WindowPositions : public testing::TestWithParam<int> {};

TEST_P(WindowPositions, OfTheEvaluatorOnAnyTarget) {
  RandomWindows windows(static_cast<unsigned>(GetParam()));
  const Module module = parse_module(windows.text());
  const std::vector<Literal> inputs = windows.inputs(module);
  for (const char* target : {"x86-64-v3", "x86-64-v4", "aarch64", "armv7-neon", "cortex-m4"}) {
    expect_exact_on(target, module, inputs);
  }
}

TEST_P(WindowPositions, OfTheEvaluatorWhenCompiled) {
  RandomWindows windows(static_cast<unsigned>(GetParam()));
  const Module module = parse_module(windows.text());
  expect_exact_when_compiled(module, windows.inputs(module));
}

INSTANTIATE_TEST_SUITE_P(Random, WindowPositions, testing::Range(0, 42));

}  // namespace
}  // namespace backcast
