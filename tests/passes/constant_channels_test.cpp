// Constant channels on random networks: every value lies within its bounds, what is taken for fixed
// is fixed, and the results stay when channels go, for inputs inside and at the corners of the
// range that was promised.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "ir/ops/ops.h"
#include "passes/graph/drop_constant_channels.h"
#include "passes/graph/simplify.h"

namespace backcast {
namespace {

constexpr double kRange = 100;

/// Networks of convolutions, poolings, residual sums, concatenations and layouts, in which many
/// channels have a bias that nothing overcomes or weights that nothing sees.
class Network {
 public:
  explicit Network(unsigned seed) : random_(seed), builder_(module_, "main") {
    builder_.set_loc({"test", "Test"});
    features_last_ = pick(0, 1) == 1;
    const int64_t channels = pick(1, 4), height = pick(1, 7), width = pick(1, 7);
    ValueId x =
        builder_.parameter("x", TensorType{ElementType::f32, shape(channels, height, width)});
    const int64_t layers = pick(2, 7);
    for (int64_t i = 0; i < layers; ++i) x = layer(x);
    module_.functions["main"] = builder_.finish(head(x));
  }

  const Module& module() const { return module_; }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  double real() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

  Shape shape(int64_t channels, int64_t height, int64_t width) const {
    return features_last_ ? Shape{1, height, width, channels} : Shape{1, channels, height, width};
  }
  int64_t feature_axis() const { return features_last_ ? 3 : 1; }
  Ints spatial() const { return features_last_ ? Ints{1, 2} : Ints{2, 3}; }
  int64_t extent(ValueId x, int64_t axis) const {
    return builder_.tensor_type(x).shape[static_cast<size_t>(axis)].constant();
  }

  ValueId layer(ValueId x) {
    switch (pick(0, 9)) {
      case 0:
        return pool(x);
      case 1: {  // a residual
        const int64_t channels = extent(x, feature_axis());
        return builder_.emit(ops::add, {x, clipped(conv(x, channels, 3, 1, 1, 1, true))});
      }
      case 2:
        return builder_.emit(ops::concat, {clipped(conv(x, pick(1, 6), 1, 1, 0, 1)), x},
                             ConcatAttrs{feature_axis()});
      case 3: {  // depthwise
        const int64_t channels = extent(x, feature_axis());
        return clipped(conv(x, channels * pick(1, 2), 3, pick(1, 2), 1, channels));
      }
      case 4:
        return transposed(x);
      case 5:
        return scaled(x);
      default:
        return clipped(conv(x, pick(1, 13), pick(0, 1) ? 1 : 3, pick(1, 2), 1, 1));
    }
  }

  ValueId conv(ValueId x, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad,
               int64_t groups, bool keeps_size = false) {
    for (const int64_t axis : spatial()) {
      if (extent(x, axis) + pad < kernel || extent(x, axis) < 2) kernel = 1;
    }
    const int64_t inputs = extent(x, feature_axis()) / groups;
    if (kernel == 1 && (keeps_size || pick(0, 3) != 0)) pad = 0;
    ConvAttrs attrs;
    attrs.input_feature = attrs.output_feature = feature_axis();
    attrs.input_spatial = attrs.output_spatial = spatial();
    attrs.kernel_spatial = {2, 3};
    attrs.strides = {stride, stride};
    const int64_t less = keeps_size ? pad : 0;
    attrs.pad_low = {pad, pick(less, pad)};
    attrs.pad_high = {pick(less, pad), pad};
    attrs.input_dilation = attrs.kernel_dilation = {1, 1};
    attrs.feature_groups = groups;
    std::vector<double> weights, bias;
    for (int64_t o = 0; o < outputs; ++o) {
      const int64_t kind = pick(0, 5);
      const double size = kind <= 1 ? 1e-30 : kind == 2 ? 1e-3 : 1;
      for (int64_t i = 0; i < inputs * kernel * kernel; ++i) {
        weights.push_back(pick(0, 9) ? real() * size : 0);
      }
      bias.push_back(kind == 0 ? 2 + real() : kind == 1 ? -1 : kind == 2 ? -1e5 : real());
    }
    const ValueId w = builder_.constant(
        Literal::from_doubles(ElementType::f32, {outputs, inputs, kernel, kernel}, weights));
    const ValueId y = builder_.emit(ops::conv, {x, w}, attrs);
    if (pick(0, 5) == 0) return y;
    const ValueId b = builder_.constant(Literal::from_doubles(ElementType::f32, {outputs}, bias));
    const ValueId wide = builder_.emit(
        ops::broadcast, {b}, BroadcastAttrs{builder_.tensor_type(y).shape, {feature_axis()}});
    return builder_.emit(ops::add, {y, wide});
  }

  ValueId clipped(ValueId x) {
    if (pick(0, 2) != 0) return builder_.emit(ops::relu, {x});
    if (pick(0, 3) == 0) return x;
    return builder_.emit(ops::clamp, {x, builder_.scalar(ElementType::f32, 0),
                                      builder_.scalar(ElementType::f32, 6)});
  }

  ValueId scaled(ValueId x) {
    std::vector<double> scale;
    for (int64_t i = 0; i < extent(x, feature_axis()); ++i) scale.push_back(real());
    const int64_t count = static_cast<int64_t>(scale.size());
    const ValueId s = builder_.constant(Literal::from_doubles(ElementType::f32, {count}, scale));
    const ValueId wide = builder_.emit(
        ops::broadcast, {s}, BroadcastAttrs{builder_.tensor_type(x).shape, {feature_axis()}});
    return builder_.emit(pick(0, 1) ? ops::mul : ops::max, {x, wide});
  }

  ValueId pool(ValueId x) {
    ReduceWindowAttrs attrs;
    attrs.kind = pick(0, 1) ? Reduction::max : Reduction::sum;
    attrs.window.assign(4, 1);
    attrs.strides = attrs.dilation = attrs.window;
    attrs.pad_low.assign(4, 0);
    attrs.pad_high.assign(4, 0);
    for (const int64_t axis : spatial()) {
      if (extent(x, axis) < 2) continue;
      attrs.window[static_cast<size_t>(axis)] = 2;
      attrs.pad_low[static_cast<size_t>(axis)] = pick(0, 1);
    }
    return builder_.emit(ops::reduce_window, {x}, attrs);
  }

  ValueId transposed(ValueId x) {
    const Ints permutation = features_last_ ? Ints{0, 3, 1, 2} : Ints{0, 2, 3, 1};
    features_last_ = !features_last_;
    return builder_.emit(ops::transpose, {x}, TransposeAttrs{permutation});
  }

  /// A dense layer on all elements, or on means over space.
  ValueId head(ValueId x) {
    ValueId flat;
    if (pick(0, 1)) {
      flat = builder_.emit(ops::reduce, {x}, ReduceAttrs{Reduction::sum, spatial()});
    } else {
      int64_t count = 1;
      for (int64_t axis = 0; axis < 4; ++axis) count *= extent(x, axis);
      flat = builder_.emit(ops::reshape, {x}, ReshapeAttrs{{1, count}});
    }
    const int64_t inputs = extent(flat, 1), outputs = pick(1, 3);
    std::vector<double> weights;
    for (int64_t i = 0; i < inputs * outputs; ++i) weights.push_back(real());
    const ValueId w =
        builder_.constant(Literal::from_doubles(ElementType::f32, {inputs, outputs}, weights));
    return builder_.emit(ops::dot_general, {flat, w}, DotGeneralAttrs{{}, {}, {1}, {0}});
  }

  std::mt19937 random_;
  Module module_;
  Builder builder_;
  bool features_last_ = false;
};

InputBounds bounds_of_test() {
  InputBounds bounds;
  bounds.low = -kRange;
  bounds.high = kRange;
  return bounds;
}

/// Inside of the range, and at its corners.
std::vector<Literal> inputs_of(const Module& module, unsigned seed) {
  const Function& main = module.function("main");
  const TensorType& type = main.type(main.params[0]).tensor();
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> real(-kRange, kRange);
  std::vector<Literal> inputs;
  for (int kind = 0; kind < 5; ++kind) {
    std::vector<double> values;
    for (int64_t i = 0; i < type.element_count().constant(); ++i) {
      const double inside = real(random);
      values.push_back(kind == 0   ? kRange
                       : kind == 1 ? -kRange
                       : kind == 2 ? std::copysign(kRange, inside)
                                   : inside);
    }
    inputs.push_back(Literal::from_doubles(type.element, static_shape(type.shape), values));
  }
  return inputs;
}

std::vector<Literal> all_values(const Module& module, const Literal& input) {
  const Function& main = module.function("main");
  std::vector<Literal> values;
  for (const Node& node : main.nodes) {
    std::vector<Value> operands;
    for (const ValueId id : node.operands) operands.push_back(values[size_t(id.index)]);
    values.push_back(is_parameter(node) ? input : evaluate_node(module, node, operands).tensor);
  }
  return values;
}

/// Which entry of the bounds holds for element i.
size_t entry_of(const Bounds& bounds, const std::vector<int64_t>& shape, int64_t i) {
  const std::vector<int64_t> strides = row_major_strides(bounds.shape);
  int64_t entry = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    if (bounds.shape[d] != 1) entry += i % shape[d] * strides[d];
    i /= shape[d];
  }
  return static_cast<size_t>(entry);
}

TEST(ConstantChannels, ValuesLieWithinTheirBounds) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Module module = simplify(Network(seed).module());
    const Function& main = module.function("main");
    const std::vector<Bounds> bounds = bounds_of_values(module, main, bounds_of_test());
    const std::vector<Literal> first = all_values(module, inputs_of(module, seed)[0]);
    for (const Literal& input : inputs_of(module, seed)) {
      const std::vector<Literal> values = all_values(module, input);
      for (size_t v = 0; v < values.size(); ++v) {
        for (int64_t i = 0; i < values[v].element_count(); ++i) {
          const size_t entry = entry_of(bounds[v], values[v].shape(), i);
          const double value = values[v].as_double(i);
          ASSERT_GE(value, bounds[v].planes[Bounds::low][entry]) << "seed " << seed << " %" << v;
          ASSERT_LE(value, bounds[v].planes[Bounds::high][entry]) << "seed " << seed << " %" << v;
          if (bounds[v].is_fixed(static_cast<int64_t>(entry))) {
            ASSERT_EQ(value, first[v].as_double(i)) << "seed " << seed << " %" << v;
          }
        }
      }
    }
  }
}

TEST(ConstantChannels, ResultsStay) {
  int changed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Module before = simplify(Network(seed).module());
    DroppedChannels dropped;
    const Module after = drop_constant_channels(before, bounds_of_test(), &dropped);
    verify(after, "drop_constant_channels");
    changed += dropped.channels > 0;
    const Function& main = before.function("main");
    const Bounds bounds =
        bounds_of_values(before, main, bounds_of_test())[size_t(main.result.index)];
    for (const Literal& input : inputs_of(before, seed)) {
      const Literal wanted = evaluate(before, main, {input}).tensor;
      const Literal found = evaluate(after, after.function("main"), {input}).tensor;
      ASSERT_EQ(found.shape(), wanted.shape());
      for (int64_t i = 0; i < wanted.element_count(); ++i) {
        // Both sum in double and round every value to f32.
        const size_t entry = entry_of(bounds, wanted.shape(), i);
        ASSERT_NEAR(found.as_double(i), wanted.as_double(i),
                    1e-5 * bounds.planes[Bounds::reach][entry])
            << "seed " << seed;
      }
    }
  }
  EXPECT_GT(changed, 150);
}

TEST(ConstantChannels, PromiseNothingAndNothingGoes) {
  InputBounds off;
  off.known = false;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Module module = simplify(Network(seed).module());
    EXPECT_TRUE(equal(drop_constant_channels(module, off), module));
  }
}

TEST(ConstantChannels, RangesAreRead) {
  const InputBounds bounds = parse_input_bounds({"-1,2", "x=0,255"});
  EXPECT_EQ(bounds.describe(), "inputs in -1..2, \"x\" in 0..255");
  EXPECT_FALSE(parse_input_bounds({"off"}).known);
  EXPECT_EQ(InputBounds{}.describe(), "inputs within ±1e+06");
  for (const char* word : {"", "1", "2,1", "x=", "a,b", "1,inf", "1,2,3"}) {
    EXPECT_THROW(parse_input_bounds({word}), CompileError) << word;
  }
}

}  // namespace
}  // namespace backcast
