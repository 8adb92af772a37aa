// Products of integers by pairs and by fours against the evaluator, bit for bit, for random
// convolutions; words hold what their target's rules say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
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
    channels_ = one_of({2, 3, 4, 6, 8, 12, 16, 20, 32});
    small_ = one_of({0, 1, 1}) == 1;
    type_ = std::vector<std::string>{"i16", "u8", "i8"}[random_() % 3];
  }

  int64_t channels() const { return channels_; }
  bool has_small_weights() const { return small_; }
  const std::string& type() const { return type_; }

  Module module() {
    // Every position is read several times, or `add` would be computed where it is read.
    const int64_t kernel = one_of({1, 1, 3}), pad = kernel / 2;
    const int64_t stride = kernel == 1 ? 1 : one_of({1, 2});
    const int64_t height = one_of({3, 4, 7}), width = one_of({3, 5, 8});
    const int64_t features = one_of({3, 5, 6, 8});
    const auto size = [&](int64_t extent) { return (extent + 2 * pad - kernel) / stride + 1; };
    const std::string result = fmt::format("i32[1,{},{},{}]", size(height), size(width), features);
    const int64_t count = features * channels_ * kernel * kernel;
    shape_ = {1, height, width, channels_};
    return parse_module(fmt::format(
        R"(func @main(%x: {9}[{0}]) -> {1} {{
  %d = add %x, %x
  %a = cast %d {{to=i32}}
  %w = constant {{value={2}[{3},{4},{5},{5}] [{6}]}}
  %b = cast %w {{to=i32}}
  %y = conv %a, %b {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[{7},{7}], pad_low=[{8},{8}], pad_high=[{8},{8}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  return %y
}}
)",
        fmt::join(shape_, ","), result, small_ ? "i8" : "i16", features, channels_, kernel,
        weights(count), stride, pad, type_));
  }

  Literal input() {
    std::vector<double> values;
    const int64_t count = shape_[1] * shape_[2] * shape_[3];
    // Twice a value fits in its type.
    const bool bytes = type_ != "i16", positive = type_ == "u8";
    for (int64_t i = 0; i < count; ++i) {
      const int value = number(bytes ? 63 : 16383);
      values.push_back(positive ? value + 64 : value);
    }
    return Literal::from_doubles(
        bytes ? positive ? ElementType::u8 : ElementType::i8 : ElementType::i16, shape_, values);
  }

 private:
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }
  int number(int limit) { return std::uniform_int_distribution<int>(-limit - 1, limit)(random_); }

  /// The lowest and the largest among them; without `small_`, one that is no byte.
  std::string weights(int64_t count) {
    std::string text = small_ ? "-128" : "128";
    const int limit = one_of({127, 126});
    for (int64_t i = 1; i < count; ++i) text += fmt::format(",{}", i == 1 ? 127 : number(limit));
    return text;
  }

  std::mt19937 random_;
  int64_t channels_ = 0;
  bool small_ = false;
  std::string type_;
  std::vector<int64_t> shape_;
};

class PairProducts : public testing::TestWithParam<const char*> {};

/// What a program for the target multiplies with: "dot4", "dot4_signed", "bytes" (taken apart),
/// "dot2" or nothing.
std::string expected_form(const RandomProduct& product, const TargetInfo& target) {
  const bool small = product.has_small_weights();
  std::string type = product.type();
  int64_t channels = product.channels();
  // Registers of 16 bytes are not filled up.
  if (target.summed_byte_products) {
    return small && channels % 16 == 0 && type == "i8" ? "dot4_signed" : "";
  }
  // Channels that fill no words are padded with zeros, and stored anew.
  const bool bytes = type != "i16" && target.keeps_bytes(type == "i8");
  const int64_t word = bytes ? 4 : 2;
  const bool gains = target.pair_products || (bytes && target.multiplies_bytes(type == "i8"));
  if (gains && small && channels >= 3 && channels % word != 0) {
    channels += word - channels % word;
    if (!bytes) type = "i16";
  }
  const bool by_four = small && channels % 4 == 0, scalar = target.vector_bits == 0;
  if (!scalar && by_four && type == "u8" && target.byte_products) return "dot4";
  if (!scalar && by_four && type == "i8" && target.signed_byte_products) return "dot4_signed";
  if (!target.pair_products) return "";
  if (scalar && by_four) return "bytes";
  return type == "i16" && channels % 2 == 0 ? "dot2" : "";
}

TEST_P(PairProducts, AreTheEvaluators) {
  const TargetInfo& target = *find_target(GetParam());
  std::map<std::string, int> seen;
  for (unsigned seed = 0; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    RandomProduct product(seed);
    const Module module = product.module();
    const Literal input = product.input();
    const Value expected = evaluate(module, module.function("main"), std::vector<Value>{input});
    const loop::Program program = run_pipeline(module, target, {}).program;
    const std::string text = loop::print(program);
    const auto has = [&](const char* op) { return text.find(op) != std::string::npos; };
    const std::string form = has("dot4_signed")  ? "dot4_signed"
                             : has("dot4")       ? "dot4"
                             : has("even_bytes") ? "bytes"
                             : has("dot2")       ? "dot2"
                                                 : "";
    EXPECT_EQ(form, expected_form(product, target)) << product.type() << text;
    EXPECT_EQ(loop::interpret(program, "run", {input}).at(0), expected.tensor);
    ++seen[form];
    seen["shared"] += has("_shared");
    seen["summed"] += has("reduce_lanes(add, dot4_signed");
  }
  EXPECT_EQ(seen["dot4"] > 20, target.byte_products);
  EXPECT_EQ(seen["dot4_signed"] > 20, target.signed_byte_products);
  EXPECT_EQ(seen["dot4_signed"] > 8, target.signed_byte_products || target.summed_byte_products);
  EXPECT_EQ(seen["summed"], target.summed_byte_products ? seen["dot4_signed"] : 0);
  EXPECT_EQ(seen["bytes"] > 40, target.vector_bits == 0 && target.pair_products);
  EXPECT_EQ(seen["shared"] > 5, target.vector_bits == 0 && target.pair_products);
  EXPECT_EQ(seen["dot2"] > 10, target.pair_products);
}

/// Two results share words as long as sums of the first, times 256, fit in 32 bits.
TEST(SharedWords, OfSumsThatLeaveRoom) {
  for (const auto& [steps, weight, shares] :
       {std::tuple{256, 127, true}, {260, 127, false}, {256, -128, false}, {28, 1, false}}) {
    const std::string text = fmt::format(
        "func @main(%x: u8[3,{0}]) -> i32[3,2] {{\n"
        "  %half = cast %x {{to=i32}}\n  %one = constant {{value=i32[] 1}}\n"
        "  %ones = broadcast %one {{shape=[3,{0}]}}\n  %more = max %half, %ones\n"
        "  %bytes = cast %more {{to=u8}}\n  %words = cast %bytes {{to=i32}}\n"
        "  %small = constant {{value=i8[{0},2] [{1}]}}\n  %w = cast %small {{to=i32}}\n"
        "  %y = dot_general %words, %w {{lhs_contract=[1], rhs_contract=[0]}}\n  return %y\n}}\n",
        steps, fmt::join(std::vector<int>(static_cast<size_t>(2 * steps), weight), ","));
    const Module module = parse_module(text);
    const loop::Program program = run_pipeline(module, *find_target("cortex-m4"), {}).program;
    const std::vector<double> most(static_cast<size_t>(3 * steps), 255);
    const Literal input = Literal::from_doubles(ElementType::u8, {3, steps}, most);
    EXPECT_EQ(loop::print(program).find("_shared") != std::string::npos, shares) << steps << weight;
    EXPECT_EQ(loop::interpret(program, "run", {input}).at(0),
              Literal::from_doubles(ElementType::i32, {3, 2},
                                    std::vector<double>(6, 255.0 * steps * weight)));
  }
}

/// Words are taken apart once for all columns where there are rows and columns enough.
TEST(UnpackedWords, OfTheEvaluator) {
  std::mt19937 random(5);
  int seen = 0;
  for (const int rows : {1, 2, 3, 5, 7, 12}) {
    for (const int steps : {32, 36, 64, 100}) {
      for (const int columns : {2, 6, 16, 18}) {
        for (const char* type : {"u8", "i8"}) {
          std::vector<int> weights;
          for (int i = 0; i < steps * columns; ++i) {
            weights.push_back(static_cast<int>(random() % 255) - 127);
          }
          const Module module = parse_module(fmt::format(
              "func @main(%x: {0}[{1},{2}]) -> i32[{1},{3}] {{\n"
              "  %d = add %x, %x\n  %words = cast %d {{to=i32}}\n"
              "  %small = constant {{value=i8[{2},{3}] [{4}]}}\n  %w = cast %small {{to=i32}}\n"
              "  %y = dot_general %words, %w {{lhs_contract=[1], rhs_contract=[0]}}\n"
              "  return %y\n}}\n",
              type, rows, steps, columns, fmt::join(weights, ",")));
          std::vector<double> values;
          for (int i = 0; i < rows * steps; ++i)
            values.push_back(static_cast<double>(random() % 100));
          const Literal input = Literal::from_doubles(
              type[0] == 'u' ? ElementType::u8 : ElementType::i8, {rows, steps}, values);
          const loop::Program program = run_pipeline(module, *find_target("cortex-m4"), {}).program;
          seen += loop::print(program).find("unpacked") != std::string::npos;
          const Value expected =
              evaluate(module, module.function("main"), std::vector<Value>{input});
          EXPECT_EQ(loop::interpret(program, "run", {input}).at(0), expected.tensor)
              << type << " " << rows << " " << steps << " " << columns;
        }
      }
    }
  }
  EXPECT_GT(seen, 40);
}

INSTANTIATE_TEST_SUITE_P(Targets, PairProducts,
                         testing::Values("cortex-m4", "cortex-m55-nomve", "x86-64-v3",
                                         "cascadelake", "aarch64-i8mm", "cortex-a76", "cortex-m55",
                                         "armv7-neon"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace backcast
