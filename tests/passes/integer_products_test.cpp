// Quantised convolutions one behind another, of any shape, border and zero point, with a residual
// sum: as the evaluator has them on every kind of target. Scales are powers of two and sums short,
// so that floating-point arithmetic is exact and every rounding, ties included, has one answer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "passes/graph/simplify.h"
#include "passes/pipeline.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

using Sizes = std::vector<int64_t>;

class QuantisedNetwork {
 public:
  explicit QuantisedNetwork(unsigned seed) : random_(seed) {
    shape_ = {one_of({1, 2}), one_of({1, 3, 4, 6, 8, 16, 17}), one_of({1, 5, 7}),
              one_of({3, 6, 8})};
    type_ = one_of({0, 1}) ? "i8" : "u8";
  }

  std::string text() {
    const std::string input = tensor(type_, shape_);
    std::string value = dequantised("%x", shape_, 0.25, zero_point());
    const Sizes first = convolved(value, one_of({2, 4, 5, 8, 12}), one_of({1, 3}), false);
    quantised(value, first);
    if (one_of({0, 0, 1})) quantised_again(value, first);
    const std::string kept = value = dequantised(value, first, 0.5, zero_);
    const bool depthwise = one_of({0, 0, 1});
    const Sizes second = convolved(value, depthwise ? first[1] : one_of({first[1], 3, 8}),
                                   one_of({1, 3}), depthwise);
    if (second == first) value = add("add {}, {}", f32(first), value, kept);
    quantised(value, second);
    if (one_of({0, 1})) {  // a function of one byte
      value = dequantised(value, second, 0.5, zero_);
      value = add("mul {}, {}", f32(second), value, value);
      value = add("add {}, {}", f32(second), value, wide("f32", -40, second));
      quantised(value, second);
    }
    return fmt::format("func @main(%x: {}) -> {} {{\n{}  return {}\n}}\n", input,
                       tensor(type_, second), body_, value);
  }

  std::vector<Literal> inputs() {
    std::vector<double> values(static_cast<size_t>(count(shape_)));
    for (double& value : values) value = any_byte();
    return {
        Literal::from_doubles(type_ == "i8" ? ElementType::i8 : ElementType::u8, shape_, values)};
  }

 private:
  int64_t one_of(const Sizes& values) { return values[random_() % values.size()]; }
  double any_byte() { return static_cast<double>(random_() % 256) - (type_ == "i8" ? 128 : 0); }
  double zero_point() { return one_of({0, 1}) ? (type_ == "i8" ? -128 : 0) : any_byte(); }
  static int64_t count(const Sizes& shape) {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
  }
  static std::string tensor(const std::string& type, const Sizes& shape) {
    return fmt::format("{}[{}]", type, fmt::join(shape, ","));
  }
  static std::string f32(const Sizes& shape) { return tensor("f32", shape); }

  /// Emits a node; returns its name.
  template <class... Args>
  std::string add(const std::string& form, const std::string& type, const Args&... args) {
    const std::string name = fmt::format("%v{}", next_++);
    body_ += fmt::format("  {} = {} : {}\n", name, fmt::format(fmt::runtime(form), args...), type);
    return name;
  }

  std::string wide(const std::string& type, double value, const Sizes& shape) {
    const std::string one = add("constant {{value={}[] {}}}", type + "[]", type, value);
    return add("broadcast {} {{shape=[{}]}}", tensor(type, shape), one, fmt::join(shape, ","));
  }

  std::string dequantised(const std::string& q, const Sizes& shape, double scale, double zero) {
    const std::string whole = add("cast {} {{to=i32}}", tensor("i32", shape), q);
    const std::string less =
        add("sub {}, {}", tensor("i32", shape), whole, wide("i32", zero, shape));
    const std::string real = add("cast {}", f32(shape), less);
    return add("mul {}, {}", f32(shape), real, wide("f32", scale, shape));
  }

  /// value becomes a convolution of it with a bias; returns its shape.
  Sizes convolved(std::string& value, int64_t features, int64_t window, bool depthwise) {
    const Sizes& x = extents_.empty() ? shape_ : extents_;
    const int64_t channels = depthwise ? 1 : x[1];
    Sizes low{window / 2, window / 2}, strides{one_of({1, 1, 2}), one_of({1, 2})};
    if (window == 3 && one_of({0, 1})) low = strides = {1, 1};
    for (size_t d : {0u, 1u}) {
      if (x[2 + d] + 2 * low[d] < window) low[d] = 1;
    }
    Sizes y{x[0], features};
    for (size_t d : {0u, 1u}) y.push_back((x[2 + d] + 2 * low[d] - window) / strides[d] + 1);
    const Sizes w{features, channels, window, window};
    Sizes weights;
    const int64_t lowest = one_of({-128, -127});
    std::vector<double> scales, bias;
    for (int64_t i = 0; i < features; ++i) {
      // Some are clipped whatever comes in.
      const bool dull = one_of({0, 0, 0, 1}) == 1;
      for (int64_t k = 0; k < count(w) / features; ++k) {
        weights.push_back(dull ? one_of({0, 1}) : one_of({lowest, -5, -1, 0, 1, 2, 7, 127}));
      }
      scales.push_back(one_of({0, 1}) ? 0.0625 : 0.015625);
      bias.push_back(dull ? static_cast<double>(one_of({-4000, 4000}))
                          : static_cast<double>(one_of({-40, 0, 3, 25})) / 4);
    }
    const std::string bytes = add("constant {{value={} [{}]}}", tensor("i8", w), tensor("i8", w),
                                  fmt::join(weights, ","));
    const auto spread = [&](const std::vector<double>& values, const Sizes& shape, int64_t axis) {
      const Sizes one{features};
      const std::string small =
          add("constant {{value={} [{}]}}", f32(one), f32(one), fmt::join(values, ","));
      return add("broadcast {} {{shape=[{}], dims=[{}]}}", f32(shape), small, fmt::join(shape, ","),
                 axis);
    };
    std::string whole = bytes;
    if (one_of({0, 1})) {
      std::vector<int64_t> zeros;
      for (int64_t f = 0; f < features; ++f) zeros.push_back(one_of({0, 0, 3, -1}));
      const Sizes one{features};
      const std::string small = add("constant {{value={} [{}]}}", tensor("i32", one),
                                    tensor("i32", one), fmt::join(zeros, ","));
      const std::string wide =
          add("broadcast {} {{shape=[{}], dims=[0]}}", tensor("i32", w), small, fmt::join(w, ","));
      whole = add("sub {}, {}", tensor("i32", w),
                  add("cast {} {{to=i32}}", tensor("i32", w), bytes), wide);
    }
    const std::string kernel =
        add("mul {}, {}", f32(w), add("cast {}", f32(w), whole), spread(scales, w, 0));
    value = add(
        "conv {}, {} {{input_spatial=[2,3], kernel_spatial=[2,3], output_spatial=[2,3], "
        "strides=[{}], pad_low=[{}], pad_high=[{}], input_dilation=[1,1], kernel_dilation=[1,1], "
        "feature_groups={}}}",
        f32(y), value, kernel, fmt::join(strides, ","), fmt::join(low, ","), fmt::join(low, ","),
        depthwise ? features : 1);
    value = add("add {}, {}", f32(y), value, spread(bias, y, 1));
    if (one_of({0, 1})) value = add("relu {}", f32(y), value);
    return extents_ = y;
  }

  void quantised(std::string& value, const Sizes& shape) {
    zero_ = zero_point();
    value = add("div {}, {}", f32(shape), value, wide("f32", one_of({4, 32}), shape));
    value = add("round_even {}", f32(shape), value);
    value = add("add {}, {}", f32(shape), value, wide("f32", zero_, shape));
    value = add("cast {} {{to={}}}", tensor(type_, shape), value, type_);
  }

  /// By the scale of before, in another shape.
  void quantised_again(std::string& value, const Sizes& shape) {
    const Sizes flat{shape[0], count(shape) / shape[0]};
    value = dequantised(value, shape, 0.5, zero_);
    value = add("reshape {} {{shape=[{}]}}", f32(flat), value, fmt::join(flat, ","));
    value = add("div {}, {}", f32(flat), value, wide("f32", 0.5, flat));
    value = add("round_even {}", f32(flat), value);
    zero_ = zero_point();
    value = add("add {}, {}", f32(flat), value, wide("f32", zero_, flat));
    value = add("cast {} {{to={}}}", tensor(type_, flat), value, type_);
    value = add("reshape {} {{shape=[{}]}}", tensor(type_, shape), value, fmt::join(shape, ","));
  }

  std::mt19937 random_;
  std::string type_, body_;
  Sizes shape_, extents_;
  double zero_ = 0;
  int next_ = 0;
};

class IntegerProducts : public testing::TestWithParam<int> {};

TEST_P(IntegerProducts, OfTheEvaluatorOnAnyTarget) {
  QuantisedNetwork network(static_cast<unsigned>(GetParam()));
  const Module module = parse_module(network.text());
  const std::vector<Literal> inputs = network.inputs();
  for (const char* target :
       {"x86-64-v3", "cascadelake", "aarch64-i8mm", "cortex-a76", "cortex-m4", "cortex-m0"}) {
    expect_exact_on(target, module, inputs);
  }
}

TEST_P(IntegerProducts, OfTheEvaluatorWhenCompiled) {
  QuantisedNetwork network(static_cast<unsigned>(GetParam()));
  const Module module = parse_module(network.text());
  expect_exact_when_compiled(module, network.inputs());
}

TEST(IntegerChannels, GoWithoutAnyPromise) {
  int smaller = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    PipelineOptions options;
    options.stop_after = "drop_constant_channels";
    const Module module = parse_module(QuantisedNetwork(seed).text());
    const PipelineResult result = run_pipeline(module, *find_target("cortex-m0"), options);
    smaller += result.notes.dropped.channels > 0;
  }
  EXPECT_GT(smaller, 10);
}

INSTANTIATE_TEST_SUITE_P(Random, IntegerProducts, testing::Range(0, 40));

// Converted they would take more room than simplification lets constants grow.
TEST(ZeroPoints, OfManyChannelsVanish) {
  std::string zeros = "0";
  for (int i = 1; i < 2048; ++i) zeros += ",0";
  const Module module = parse_module(fmt::format(R"(
func @main(%x: i8[3,2048]) -> i32[3,2048] {{
  %w = cast %x {{to=i32}}
  %z8 = constant {{value=i8[2048] [{}]}}
  %z = cast %z8 {{to=i32}}
  %zero = broadcast %z {{shape=[3,2048], dims=[1]}}
  %y = sub %w, %zero
  return %y
}})",
                                                 zeros));
  EXPECT_EQ(print(simplify(module)).find("sub"), std::string::npos);
}

TEST(Rounding, OfWhatMayBeNoNumber) {
  const Module module = parse_module(R"(
func @main(%x: f32[12]) -> (i8[12], u8[12]) {
  %s = constant {value=f32[] 0.3}
  %t = broadcast %s {shape=[12]}
  %d = div %x, %t
  %r = round_even %d
  %z = constant {value=f32[] -5}
  %w = broadcast %z {shape=[12]}
  %a = add %r, %w
  %y = cast %a {to=i8}
  %q = round_even %x
  %u = cast %q {to=u8}
  %o = tuple %y, %u
  return %o
})");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Literal input = Literal::from_doubles(
      ElementType::f32, {12},
      {std::nan(""), kInfinity, -kInfinity, 1e30, -1e30, 0.15, 0.45, 2.5, 3.5, -2.5, 254.5, 255.5});
  for (const char* target : {"cortex-m0", "cortex-m4", "cortex-m7", "x86-64", "x86-64-v3"}) {
    expect_exact_on(target, module, {input});
  }
}

}  // namespace
}  // namespace backcast
