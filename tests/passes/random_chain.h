// Chains of layers for the tests of bands of rows, and the passes before and behind.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/passes/random_convolution.h"

namespace backcast {

/// A chain of convolutions and poolings, channels last, with sums of what has the same shape.
/// Weights are constants or, where it is `trained`, parameters behind %x.
class RandomChain {
 public:
  RandomChain(unsigned seed, std::string type, bool trained = false)
      : random_(seed), type_(std::move(type)), trained_(trained) {}

  std::string text() {
    shape_ = {one_of({1, 1, 1, 2}), one_of({7, 11, 16, 23, 24}), one_of({1, 5, 8}),
              one_of({1, 3, 8, 17})};
    params_ = "%x: " + type_text();
    const int64_t layers = one_of({2, 3, 4, 5});
    std::string body;
    for (int64_t i = 0; i < layers; ++i) body += layer(i);
    return fmt::format("func @main({}) -> {} {{\n{}  return %{}\n}}\n", params_, type_text(), body,
                       value_);
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  std::string type_text() const { return fmt::format("{}[{}]", type_, fmt::join(shape_, ",")); }

  std::string layer(int64_t i) {
    const int64_t kind = one_of({0, 0, 1, 1, 1, 2, 3});
    std::string text = kind == 3 ? pooling(i) : convolution(i, kind);
    const std::string now = type_text();
    if (i > 0 && kept_type_ == now && one_of({0, 1}) == 1) {
      text += fmt::format("  %s{0} = add %{1}, %{2}\n", i, value_, kept_);
      value_ = fmt::format("s{}", i);
    } else {
      text += fmt::format("  %r{0} = relu %{1}\n", i, value_);
      value_ = fmt::format("r{}", i);
    }
    if (kept_type_ != now || one_of({0, 1}) == 1) {
      kept_ = value_;
      kept_type_ = now;
    }
    return text;
  }

  /// Kinds: dense, depthwise, of one position.
  std::string convolution(int64_t i, int64_t kind) {
    const int64_t kernel = kind == 2 ? 1 : one_of({3, 3, 5, 2}), stride = one_of({1, 1, 2});
    const int64_t low = std::min<int64_t>(kernel / 2, one_of({0, 1, 2})), high = kernel / 2;
    const int64_t channels = shape_[3], groups = kind == 1 ? channels : 1;
    const int64_t features = kind == 1 ? channels : one_of({1, 3, 8, 17});
    if (std::min(shape_[1], shape_[2]) + low + high < kernel) return same(i);
    for (size_t d : {1u, 2u}) shape_[d] = (shape_[d] + low + high - kernel) / stride + 1;
    shape_[3] = features;
    const std::string weights =
        fmt::format("{}[{},{},{},{}]", type_, features, channels / groups, kernel, kernel);
    std::string text;
    if (trained_) {
      params_ += fmt::format(", %w{}: {}", i, weights);
    } else {
      text = fmt::format("  %w{} = constant {{value={} [{}]}}\n", i, weights,
                         random_numbers(features * (channels / groups) * kernel * kernel, random_));
    }
    text += fmt::format(
        "  %c{0} = conv %{1}, %w{0} {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], "
        "output_feature=3, output_spatial=[1,2], strides=[{2},{2}], pad_low=[{3},{3}], "
        "pad_high=[{4},{4}], input_dilation=[1,1], kernel_dilation=[1,1], feature_groups={5}}}\n",
        i, value_, stride, low, high, groups);
    value_ = fmt::format("c{}", i);
    return text;
  }

  std::string same(int64_t i) {
    const std::string text = fmt::format("  %c{} = abs %{}\n", i, value_);
    value_ = fmt::format("c{}", i);
    return text;
  }

  std::string pooling(int64_t i) {
    if (shape_[1] < 2 || shape_[2] < 2) return same(i);
    const std::string text = fmt::format(
        "  %c{} = reduce_window %{} {{kind=max, window=[1,2,2,1], strides=[1,2,2,1], "
        "dilation=[1,1,1,1], pad_low=[0,0,0,0], pad_high=[0,0,0,0]}}\n",
        i, value_);
    shape_[1] /= 2;
    shape_[2] /= 2;
    value_ = fmt::format("c{}", i);
    return text;
  }

  std::mt19937 random_;
  std::string type_, params_, value_ = "x", kept_, kept_type_;
  bool trained_ = false;
  std::vector<int64_t> shape_;
};

/// The passes before and after bands are chosen.
inline PipelineResult until_bands(const Module& module, const TargetInfo& target) {
  PipelineOptions options;
  options.stop_after = "winograd";
  return run_pipeline(module, target, options);
}

inline void run_rest(PipelineResult& state, const TargetInfo& target) {
  bool after = false;
  for (const std::string& name : pass_names()) {
    if (after) run_pass(state, name, target, "model");
    after = after || name == "row_bands";
  }
}

/// C and LLVM give the same bits for a program whose bands are chosen, close to the evaluator's.
inline void expect_equal_backends(const std::string& name, const Module& module,
                                  PipelineResult state, const TargetInfo& target,
                                  double tolerance) {
  run_rest(state, target);
  NodeCase one;
  one.name = one.model.model_file = name;
  const std::vector<Literal> inputs = random_inputs(module);
  one.sets.push_back({"set", inputs, evaluate_main(module, inputs)});
  one.model.target = target;
  one.model.result = std::move(state);
  one.model.abi = abi_of(one.model.result.program);
  expect_close_and_equal(one, tolerance);
}

/// Up to a share of the largest value, or of one.
inline bool are_close(const Literal& a, const Literal& b, double tolerance) {
  if (a.shape() != b.shape()) return false;
  double largest = 1;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    largest = std::max(largest, std::abs(a.as_double(i)));
  }
  for (int64_t i = 0; i < a.element_count(); ++i) {
    if (!(std::abs(a.as_double(i) - b.as_double(i)) <= tolerance * largest)) return false;
  }
  return true;
}

/// Whether sums are made of the bands' sums, and so rounded in another order.
inline bool splits_sums(const loop::Program& program) {
  return std::any_of(program.kernels.begin(), program.kernels.end(), [](const auto& kernel) {
    return kernel.first.find("_finish") != std::string::npos;
  });
}

}  // namespace backcast
