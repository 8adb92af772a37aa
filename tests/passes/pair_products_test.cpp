// Products of integers by pairs and by fours against the evaluator, bit for bit, for random
// convolutions; words hold what their target's rules say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/target/target_info.h"
#include "passes/pipeline.h"

namespace backcast {
namespace {

class RandomProduct {
 public:
  explicit RandomProduct(unsigned seed) : random_(seed) {
    channels_ = one_of({2, 3, 4, 6, 8, 12, 16, 20});
    small_ = one_of({0, 1, 1}) == 1;
  }

  bool has_pairs() const { return channels_ % 2 == 0; }
  bool has_bytes() const { return small_ && channels_ % 4 == 0; }

  Module module() {
    // Every position is read several times, or `add` would be computed where it is read.
    const int64_t kernel = one_of({1, 1, 3}), pad = kernel / 2;
    const int64_t stride = kernel == 1 ? 1 : one_of({1, 2});
    const int64_t height = one_of({3, 4, 7}), width = one_of({3, 5, 8});
    const int64_t features = one_of({3, 5, 8});
    const auto size = [&](int64_t extent) { return (extent + 2 * pad - kernel) / stride + 1; };
    const std::string result = fmt::format("i32[1,{},{},{}]", size(height), size(width), features);
    const int64_t count = features * channels_ * kernel * kernel;
    shape_ = {1, height, width, channels_};
    return parse_module(fmt::format(
        R"(func @main(%x: i16[{0}]) -> {1} {{
  %d = add %x, %x
  %a = cast %d {{to=i32}}
  %w = constant {{value={2}[{3},{4},{5},{5}] [{6}]}}
  %b = cast %w {{to=i32}}
  %y = conv %a, %b {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[{7},{7}], pad_low=[{8},{8}], pad_high=[{8},{8}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  return %y
}}
)",
        fmt::join(shape_, ","), result, small_ ? "i8" : "i16", features, channels_, kernel,
        weights(count), stride, pad));
  }

  Literal input() {
    std::vector<double> values;
    const int64_t count = shape_[1] * shape_[2] * shape_[3];
    for (int64_t i = 0; i < count; ++i) values.push_back(number(16383));
    return Literal::from_doubles(ElementType::i16, shape_, values);
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }
  int number(int limit) { return std::uniform_int_distribution<int>(-limit - 1, limit)(random_); }

  /// The lowest and the largest among them; without `small_`, one that is no byte.
  std::string weights(int64_t count) {
    std::string text = small_ ? "-128" : "128";
    for (int64_t i = 1; i < count; ++i) text += fmt::format(",{}", i == 1 ? 127 : number(127));
    return text;
  }

  std::mt19937 random_;
  int64_t channels_ = 0;
  bool small_ = false;
  std::vector<int64_t> shape_;
};

class PairProducts : public testing::TestWithParam<const char*> {};

TEST_P(PairProducts, AreTheEvaluators) {
  const TargetInfo& target = *find_target(GetParam());
  int64_t with_bytes = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    RandomProduct product(seed);
    const Module module = product.module();
    const Literal input = product.input();
    const Value expected = evaluate(module, module.function("main"), std::vector<Value>{input});
    const loop::Program program = run_pipeline(module, target, {}).program;
    const std::string text = loop::print(program);
    const bool bytes = product.has_bytes() && target.vector_bits == 0;
    EXPECT_EQ(text.find("dot2") != std::string::npos, product.has_pairs());
    EXPECT_EQ(text.find("even_bytes") != std::string::npos, bytes);
    EXPECT_EQ(loop::interpret(program, "run", {input}).at(0), expected.tensor);
    with_bytes += bytes;
  }
  EXPECT_EQ(with_bytes > 20, target.vector_bits == 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, PairProducts,
                         testing::Values("cortex-m4", "cortex-m55", "x86-64-v3"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace backcast
