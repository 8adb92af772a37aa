// Models of sequences for the tests of streams: layers of every kind that has a rule for pieces,
// and some that have none.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"

namespace backcast {

/// `x` is f64 with two other axes than the sequence's, at a place that depends on the seed. Outputs
/// are the last layer, and of half of the models what a layer without a rule makes of all of it.
class RandomSequenceModel {
 public:
  explicit RandomSequenceModel(unsigned seed) : random_(seed), b_(module_, "main") {
    axis_ = one_of({1, 2, 2});
    input_axis_ = axis_;
    features_ = axis_ == 1 ? 2 : 1;
    add_step();
  }

  Module make() {
    Shape shape(3, Dim(2));
    shape[0] = one_of({1, 1, 2});
    shape[static_cast<size_t>(axis_)] = one_of({12, 16, 20, 24, 27, 32});
    b_.set_loc({"x", "input"});
    value_ = b_.parameter("x", TensorType{ElementType::f64, shape});
    const int64_t layers = one_of({1, 2, 3, 4, 5});
    for (int64_t i = 0; i < layers; ++i) {
      b_.set_loc({"layer" + std::to_string(i), "Layer"});
      add_layer();
    }
    std::vector<ValueId> results{value_};
    if (one_of({0, 1}) == 1) results.push_back(whole());
    if (one_of({0, 0, 1}) == 1) std::swap(results.front(), results.back());
    module_.functions["main"] = b_.finish(b_.emit(ops::tuple, results), names(results.size()));
    return module_;
  }

  int64_t axis() const { return input_axis_; }
  int64_t one_of(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

 private:
  static std::vector<std::string> names(size_t count) {
    return count == 1 ? std::vector<std::string>{"y"} : std::vector<std::string>{"y", "z"};
  }

  Shape shape() const { return b_.tensor_type(value_).shape; }
  int64_t extent(int64_t axis) const { return shape()[static_cast<size_t>(axis)].constant(); }
  int64_t length() const { return extent(axis_); }

  ValueId random_constant(const std::vector<int64_t>& extents) {
    int64_t count = 1;
    for (const int64_t extent : extents) count *= extent;
    std::vector<double> values;
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < count; ++i) values.push_back(normal(random_));
    return b_.constant(Literal::from_doubles(ElementType::f64, extents, values));
  }

  void add_layer() {
    switch (one_of({0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})) {
      case 0:
        return convolution();
      case 1:
        return pooling();
      case 2:
        return padding();
      case 3:
        return cropping();
      case 4:
        return pointwise();
      case 5:
        return turned();
      case 6:
        return joined();
      case 7:
        return split();
      case 8:
        return shortcut();
      case 9:
        return beside();
      case 10:
        return loop();
      default:
        return product();
    }
  }

  ValueId convolved(ValueId x, int64_t taps, int64_t stride, int64_t apart, int64_t spread,
                    int64_t low, int64_t high) {
    const TensorType type = b_.tensor_type(x);
    const int64_t channels = type.shape[static_cast<size_t>(features_)].constant();
    const int64_t groups = channels % 2 == 0 ? one_of({1, 1, 2}) : 1;
    ConvAttrs attrs;
    attrs.input_feature = attrs.output_feature = features_;
    attrs.input_spatial = attrs.output_spatial = {axis_};
    attrs.kernel_spatial = {2};
    attrs.strides = {stride};
    attrs.pad_low = {Dim(low)};
    attrs.pad_high = {Dim(high)};
    attrs.input_dilation = {apart};
    attrs.kernel_dilation = {spread};
    attrs.feature_groups = groups;
    const ValueId w = random_constant({groups * one_of({1, 2}), channels / groups, taps});
    return b_.emit(ops::conv, {x, w}, attrs);
  }

  void convolution() {
    const int64_t taps = one_of({1, 2, 3, 3, 4}), spread = one_of({1, 1, 2});
    const int64_t apart = length() < 16 ? one_of({1, 1, 2, 3}) : 1;
    const int64_t low = one_of({0, 0, 1, 2, (taps - 1) * spread}), high = one_of({0, 0, 1, 2});
    if ((length() - 1) * apart + 1 + low + high < (taps - 1) * spread + 1) return;
    value_ = convolved(value_, taps, one_of({1, 1, 1, 2, 3}), apart, spread, low, high);
  }

  void pooling() {
    ReduceWindowAttrs attrs;
    attrs.kind = one_of({0, 1}) ? Reduction::max : Reduction::sum;
    attrs.window = attrs.strides = attrs.dilation = Ints(3, 1);
    attrs.pad_low = attrs.pad_high = Dims(3, Dim(0));
    const size_t d = static_cast<size_t>(axis_);
    attrs.window[d] = one_of({2, 3});
    attrs.strides[d] = one_of({1, 2});
    attrs.pad_low[d] = one_of({0, 1});
    attrs.pad_high[d] = one_of({0, 1});
    if (length() >= 3) value_ = b_.emit(ops::reduce_window, {value_}, attrs);
  }

  void padding() {
    PadAttrs attrs{Dims(3, Dim(0)), Dims(3, Dim(0)), Ints(3, 0)};
    const size_t d = static_cast<size_t>(axis_);
    attrs.low[d] = one_of({0, 1, 2, -1});
    attrs.high[d] = one_of({0, 1, -1});
    attrs.interior[d] = length() < 16 ? one_of({0, 0, 1}) : 0;
    if (length() < 3) return;
    const ValueId value = b_.scalar(ElementType::f64, one_of({0, 1}) ? 0.5 : 0);
    value_ = b_.emit(ops::pad, {value_, value}, attrs);
  }

  ValueId cropped(ValueId x, int64_t start, int64_t behind, int64_t stride) {
    const Shape shape = b_.tensor_type(x).shape;
    const size_t d = static_cast<size_t>(axis_);
    SliceAttrs attrs{Dims(3, Dim(0)), shape, Ints(3, 1)};
    attrs.start[d] = start;
    attrs.limit[d] = shape[d].constant() - behind;
    attrs.stride[d] = stride;
    return b_.emit(ops::slice, {x}, attrs);
  }

  void cropping() {
    if (length() > 6) value_ = cropped(value_, one_of({0, 1, 3}), one_of({0, 2}), one_of({1, 2}));
  }

  void pointwise() {
    const ValueId per_feature = random_constant({extent(features_)});
    const ValueId spread =
        b_.emit(ops::broadcast, {per_feature}, BroadcastAttrs{shape(), {features_}});
    value_ = b_.emit(ops::tanh, {b_.emit(one_of({0, 1}) ? ops::add : ops::mul, {value_, spread})});
  }

  /// The sequence and the features change places.
  void turned() {
    value_ = b_.emit(ops::transpose, {value_}, TransposeAttrs{{0, 2, 1}});
    std::swap(axis_, features_);
  }

  /// Some positions become one of more features, or features positions.
  void joined() {
    const int64_t factor = one_of({2, 3});
    if (axis_ != 1 || length() % factor != 0) return pointwise();
    Shape now = shape();
    now[1] = length() / factor;
    now[2] = extent(2) * factor;
    value_ = b_.emit(ops::reshape, {value_}, ReshapeAttrs{now});
  }

  void split() {
    if (axis_ != 1 || extent(2) % 2 != 0) return pointwise();
    Shape now = shape();
    now[1] = length() * 2;
    now[2] = extent(2) / 2;
    value_ = b_.emit(ops::reshape, {value_}, ReshapeAttrs{now});
  }

  /// A convolution beside its operand: padded to the same length, or the operand cropped.
  void shortcut() {
    const int64_t low = one_of({0, 1, 2}), high = one_of({0, 2 - low});
    if (length() < 4) return;
    const ValueId x = value_;
    const ValueId y = convolved(x, 3, 1, 1, 1, low, high);
    const ValueId gate = convolved(x, 1, 1, 1, 1, 0, 0);
    const ValueId short_gate =
        cropped(gate, low == 0 ? 2 : 0, high == 0 && low < 2 ? 2 - low - (low == 0 ? 2 : 0) : 0, 1);
    value_ = y;
    if (b_.tensor_type(y) == b_.tensor_type(short_gate)) {
      value_ = b_.emit(ops::mul, {y, b_.emit(ops::sigmoid, {short_gate})});
    }
  }

  void beside() {
    if (length() < 3) return;
    const ValueId a = convolved(value_, 3, 1, 1, 1, 1, 1);
    const ValueId b = convolved(value_, 2, 1, 1, 1, 1, 0);
    value_ = b_.emit(ops::concat, {a, b}, ConcatAttrs{features_});
  }

  /// body(c, x, w) = (c / 2 + x · w, the same · x)
  void add_step() {
    Module empty;
    Builder step(empty, "step");
    const TensorType row{ElementType::f64, {Dim(2)}};
    const ValueId c = step.parameter("c", row), x = step.parameter("x", row);
    const ValueId w = step.parameter("w", row);
    step.set_loc({"step", ""});
    const ValueId half = step.emit(ops::broadcast, {step.scalar(ElementType::f64, 0.5)},
                                   BroadcastAttrs{row.shape, {}});
    const ValueId next =
        step.emit(ops::add, {step.emit(ops::mul, {c, half}), step.emit(ops::mul, {x, w})});
    const ValueId y = step.emit(ops::mul, {next, x});
    module_.functions["step"] = step.finish(step.emit(ops::tuple, {next, y}));
  }

  /// A scan over the sequence, of the first example's first two features.
  void loop() {
    if (extent(features_) < 2) return;
    const int64_t count = length();
    SliceAttrs part{Dims(3, Dim(0)), shape(), Ints(3, 1)};
    part.limit[0] = 1;
    part.limit[static_cast<size_t>(features_)] = 2;
    ValueId rows = b_.emit(ops::slice, {value_}, part);
    if (axis_ == 2) rows = b_.emit(ops::transpose, {rows}, TransposeAttrs{{0, 2, 1}});
    rows = b_.emit(ops::reshape, {rows}, ReshapeAttrs{{Dim(count), Dim(2)}});
    const ValueId trips = b_.scalar(ElementType::i64, static_cast<double>(count));
    ScanAttrs attrs;
    attrs.body = {"step"};
    attrs.carries = attrs.xs = 1;
    attrs.length = count;
    const ValueId scan =
        b_.emit(ops::scan, {trips, random_constant({2}), rows, random_constant({2})}, attrs);
    const ValueId ys = b_.emit(ops::get, {scan}, GetAttrs{1});
    value_ = b_.emit(ops::reshape, {ys}, ReshapeAttrs{{Dim(1), Dim(count), Dim(2)}});
    axis_ = 1, features_ = 2;
  }

  void product() {
    DotGeneralAttrs attrs;
    attrs.lhs_contract = {features_};
    attrs.rhs_contract = {0};
    const ValueId w = random_constant({extent(features_), one_of({1, 2, 3})});
    value_ = b_.emit(ops::dot_general, {value_, w}, attrs);
    axis_ = 1, features_ = 2;
  }

  /// What needs all positions, and a layer behind it.
  ValueId whole() {
    const int64_t kind = one_of({0, 1, 2});
    if (kind == 0) return b_.emit(ops::reduce, {value_}, ReduceAttrs{Reduction::sum, {1, 2}});
    if (kind == 1) {
      const ValueId sums =
          b_.emit(ops::cumulative, {value_}, CumulativeAttrs{Reduction::sum, axis_, false, false});
      return b_.emit(ops::tanh, {sums});
    }
    DotGeneralAttrs attrs;
    attrs.lhs_contract = {axis_};
    attrs.rhs_contract = {0};
    return b_.emit(ops::dot_general, {value_, random_constant({length(), 2})}, attrs);
  }

  std::mt19937 random_;
  Module module_;
  Builder b_;
  ValueId value_;
  int64_t axis_ = 2, features_ = 1, input_axis_ = 2;
};

}  // namespace backcast
