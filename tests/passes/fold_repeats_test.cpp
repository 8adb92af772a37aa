// Convolutions of what nearest neighbours repeat have the same values, and the same gradients,
// folded into their weights: for any factor, window, stride, padding and group, alone or beside
// what they were concatenated with; compiled, C and LLVM agree to the bit.
#include "passes/graph/fold_repeats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "passes/graph/differentiate.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

class RandomRepeat {
 public:
  explicit RandomRepeat(unsigned seed) : random_(seed) {
    for (size_t d : {0u, 1u}) {
      in_[d] = one_of({3, 5, 8});
      times_[d] = one_of({1, 2, 2, 3, 4});
      taps_[d] = one_of({1, 2, 3, 3, 5});
      strides_[d] = one_of({1, 1, 1, 2});
      low_[d] = std::min(taps_[d] - 1, one_of({0, 1, 2}));
      high_[d] = std::min(taps_[d] - 1, one_of({0, 1}));
    }
    groups_ = one_of({1, 1, 2});
    beside_ = groups_ == 1 ? one_of({0, 0, 3}) : 0;
  }

  std::string text(const std::string& type) {
    const int64_t channels = 4, features = one_of({2, 6, 16});
    const auto up = [&](size_t d) { return in_[d] * times_[d]; };
    const auto out = [&](size_t d) {
      return (up(d) + low_[d] + high_[d] - taps_[d]) / strides_[d] + 1;
    };
    const std::string x = fmt::format("{}[2,{},{},{}]", type, in_[0], in_[1], channels);
    const std::string other = fmt::format("{}[2,{},{},{}]", type, up(0), up(1), beside_);
    const std::string w = fmt::format("{}[{},{},{},{}]", type, taps_[0], taps_[1],
                                      (channels + beside_) / groups_, features);
    const std::string y = fmt::format("{}[2,{},{},{}]", type, out(0), out(1), features);
    // Batch, rows and columns with what repeats them, channels.
    std::vector<int64_t> spread{2}, dims{0};
    for (size_t d : {0u, 1u}) {
      dims.push_back(static_cast<int64_t>(spread.size()));
      spread.push_back(in_[d]);
      if (times_[d] > 1) spread.push_back(times_[d]);
    }
    dims.push_back(static_cast<int64_t>(spread.size()));
    spread.push_back(channels);
    std::string body = fmt::format(
        "  %s = broadcast %x {{shape=[{}], dims=[{}]}}\n"
        "  %r = reshape %s {{shape=[2,{},{},{}]}}\n",
        fmt::join(spread, ","), fmt::join(dims, ","), up(0), up(1), channels);
    if (beside_ > 0) body += "  %c = concat %o, %r {axis=3}\n";
    body += fmt::format(
        "  %y = conv %{0}, %w {{input_feature=3, input_spatial=[1,2], kernel_output=3, "
        "kernel_input=2, kernel_spatial=[0,1], output_feature=3, output_spatial=[1,2], "
        "strides=[{1},{2}], pad_low=[{3},{4}], pad_high=[{5},{6}], input_dilation=[1,1], "
        "kernel_dilation=[1,1], feature_groups={7}}}\n",
        beside_ > 0 ? "c" : "r", strides_[0], strides_[1], low_[0], low_[1], high_[0], high_[1],
        groups_);
    return fmt::format("func @main(%x: {0}, %w: {1}{2}) -> {3} {{\n{4}  return %y\n}}\n", x, w,
                       beside_ > 0 ? ", %o: " + other : "", y, body);
  }

  /// Whether fewer products or fewer elements are left.
  bool gains() const {
    int64_t before = 1, after = 1;
    bool pointwise = times_[0] * times_[1] > 1;
    for (size_t d : {0u, 1u}) {
      const int64_t out = (in_[d] * times_[d] + low_[d] + high_[d] - taps_[d]) / strides_[d] + 1;
      if (times_[d] > 1 && taps_[d] > out) return false;
      before *= times_[d] > 1 ? taps_[d] * times_[d] : 1;
      after *= times_[d] > 1 ? taps_[d] + times_[d] - 1 : 1;
      pointwise = pointwise && (times_[d] == 1 || (taps_[d] == 1 && strides_[d] == 1));
    }
    return after < before || pointwise;
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  std::mt19937 random_;
  int64_t in_[2], times_[2], taps_[2], strides_[2], low_[2], high_[2], groups_ = 1, beside_ = 0;
};

/// The adjoints of every operand for some cotangent of the result.
std::vector<Literal> gradients(const Module& module) {
  const Module both = add_vjp(module, "main");
  const Function& vjp = both.function("main_vjp");
  Module alone = both;
  alone.functions["main"] = vjp;
  alone.functions["main"].name = "main";
  return evaluate_main(alone, random_inputs(alone));
}

class Repeats : public testing::TestWithParam<unsigned> {};

TEST_P(Repeats, KeepValuesAndGradients) {
  RandomRepeat random(GetParam());
  const Module module = parse_module(random.text("f64"));
  const Module folded = fold_repeats(module);
  verify(folded);
  EXPECT_EQ(!equal(module.function("main"), folded.function("main")), random.gains())
      << print(folded);
  const std::vector<Literal> inputs = random_inputs(module);
  EXPECT_LT(error_of(evaluate_main(folded, inputs).front(), evaluate_main(module, inputs).front()),
            1e-13);
  const std::vector<Literal> expected = gradients(module);
  const std::vector<Literal> found = gradients(folded);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_LT(error_of(found[i], expected[i]), 1e-13);
}

TEST_P(Repeats, CompiledToTheBit) {
  expect_close_and_equal(compiled_case(parse_module(RandomRepeat(GetParam()).text("f32")), "repeat",
                                       resolve_target("native"), {}),
                         5e-6);
}

INSTANTIATE_TEST_SUITE_P(FoldRepeats, Repeats, testing::Range(1u, 49u));

}  // namespace
}  // namespace backcast
