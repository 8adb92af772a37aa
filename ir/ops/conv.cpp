// conv: y[b, o, p…] = Σ_{c, k…} x[b, c, p · stride + k · kernel_dilation - pad_low …] · w[o, c, k…]
// (cross-correlation: the kernel is not flipped), x first dilated by input_dilation; dimensions lie
// where the attributes say. Feature groups split the input features and the kernel outputs; batch
// groups split the batch and the kernel outputs, and the groups' results follow one another along
// the output features. Floats accumulate in double, integers wrap around in their type.
#include <algorithm>
#include <utility>

#include "ir/ops/ops.h"
#include "ir/ops/taps.h"
#include "ir/ops/val.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

const Dim& extent_of(const TensorType& type, int64_t axis) {
  return type.shape[static_cast<size_t>(axis)];
}

void require_layout(int64_t first, int64_t second, const Ints& spatial, int64_t rank,
                    std::string_view what) {
  Ints all = spatial;
  all.push_back(first);
  all.push_back(second);
  require_axes(all, rank, what);
}

void check_attributes(const TensorType& x, const ConvAttrs& attrs) {
  if (x.rank() < 2) fail("operand 0 needs a batch and a feature dimension and is {}", to_string(x));
  const int64_t spatial = x.rank() - 2;
  const std::pair<size_t, const char*> lengths[] = {
      {attrs.input_spatial.size(), "input_spatial"},
      {attrs.kernel_spatial.size(), "kernel_spatial"},
      {attrs.output_spatial.size(), "output_spatial"},
      {attrs.strides.size(), "strides"},
      {attrs.pad_low.size(), "pad_low"},
      {attrs.pad_high.size(), "pad_high"},
      {attrs.input_dilation.size(), "input_dilation"},
      {attrs.kernel_dilation.size(), "kernel_dilation"}};
  for (const auto& [length, what] : lengths) {
    if (length != static_cast<size_t>(spatial)) {
      fail("{} has {} entries and {} has {} spatial dimensions", what, length, to_string(x),
           spatial);
    }
  }
  require_layout(attrs.input_batch, attrs.input_feature, attrs.input_spatial, x.rank(),
                 "the input layout");
  require_layout(attrs.kernel_output, attrs.kernel_input, attrs.kernel_spatial, x.rank(),
                 "the kernel layout");
  require_layout(attrs.output_batch, attrs.output_feature, attrs.output_spatial, x.rank(),
                 "the output layout");
  require_values(attrs.strides, 1, "strides");
  require_values(attrs.input_dilation, 1, "input_dilation");
  require_values(attrs.kernel_dilation, 1, "kernel_dilation");
  require_values({attrs.feature_groups}, 1, "feature_groups");
  require_values({attrs.batch_groups}, 1, "batch_groups");
  if (attrs.feature_groups > 1 && attrs.batch_groups > 1) {
    fail("feature_groups and batch_groups cannot both exceed 1");
  }
}

void check_groups(const TensorType& x, const TensorType& w, const ConvAttrs& attrs) {
  const Dim& features = extent_of(x, attrs.input_feature);
  const Dim& kernel_features = extent_of(w, attrs.kernel_input);
  if (!(features == kernel_features * Dim(attrs.feature_groups))) {
    fail("{} has {} features and the kernel {} takes {} in each of {} groups", to_string(x),
         features.to_string(), to_string(w), kernel_features.to_string(), attrs.feature_groups);
  }
  const int64_t groups = std::max(attrs.feature_groups, attrs.batch_groups);
  const Dim& outputs = extent_of(w, attrs.kernel_output);
  if (!(Dim::mod(outputs, groups) == Dim(0))) {
    fail("the {} outputs of the kernel {} are not divisible into {} groups", outputs.to_string(),
         to_string(w), groups);
  }
  const Dim& batch = extent_of(x, attrs.input_batch);
  if (!(Dim::mod(batch, attrs.batch_groups) == Dim(0))) {
    fail("the batch of {} is not divisible into {} groups", to_string(x), attrs.batch_groups);
  }
}

Type infer_conv(const InferContext& context) {
  const ConvAttrs& attrs = context.attrs.as<ConvAttrs>();
  const TensorType& x = require_kind(context, 0, kNumeric);
  require_same_element(context, 1, 0);
  const TensorType& w = context.tensor(1);
  check_attributes(x, attrs);
  if (w.rank() != x.rank()) {
    fail("operands 0 and 1 must have equally many dimensions and are {} and {}", to_string(x),
         to_string(w));
  }
  check_groups(x, w, attrs);
  TensorType result{x.element, Shape(x.shape.size())};
  result.shape[static_cast<size_t>(attrs.output_batch)] =
      Dim::floor_div(extent_of(x, attrs.input_batch), attrs.batch_groups);
  result.shape[static_cast<size_t>(attrs.output_feature)] = extent_of(w, attrs.kernel_output);
  for (size_t i = 0; i < attrs.strides.size(); ++i) {
    const WindowDimension dimension{.input = extent_of(x, attrs.input_spatial[i]),
                                    .window = extent_of(w, attrs.kernel_spatial[i]),
                                    .stride = attrs.strides[i],
                                    .pad_low = attrs.pad_low[i],
                                    .pad_high = attrs.pad_high[i],
                                    .input_dilation = attrs.input_dilation[i],
                                    .window_dilation = attrs.kernel_dilation[i]};
    result.shape[static_cast<size_t>(attrs.output_spatial[i])] =
        window_positions(dimension, context.module.symbols,
                         fmt::format("spatial dimension {} of {} with the kernel {}", i,
                                     to_string(x), to_string(w)));
  }
  return result;
}

/// One loop of the convolution: its extent and the strides of x, w and y.
struct Loop {
  int64_t extent;
  std::array<int64_t, 3> strides;
};

/// The loops over groups, batch, outputs and features, which are the same for every kernel
/// position.
std::vector<Loop> channel_loops(const ConvAttrs& attrs, const Literal& x, const Literal& w,
                                const std::vector<int64_t>& y_shape) {
  const auto stride = [](const std::vector<int64_t>& shape, int64_t axis) {
    return row_major_strides(shape)[static_cast<size_t>(axis)];
  };
  const int64_t groups = std::max(attrs.feature_groups, attrs.batch_groups);
  const int64_t batch = y_shape[static_cast<size_t>(attrs.output_batch)];
  const int64_t outputs = y_shape[static_cast<size_t>(attrs.output_feature)] / groups;
  const int64_t features = w.shape()[static_cast<size_t>(attrs.kernel_input)];
  const int64_t x_batch = stride(x.shape(), attrs.input_batch);
  const int64_t x_feature = stride(x.shape(), attrs.input_feature);
  const int64_t w_output = stride(w.shape(), attrs.kernel_output);
  const int64_t w_input = stride(w.shape(), attrs.kernel_input);
  const int64_t y_batch = stride(y_shape, attrs.output_batch);
  const int64_t y_feature = stride(y_shape, attrs.output_feature);
  const int64_t x_group = attrs.batch_groups > 1 ? batch * x_batch : features * x_feature;
  return {{batch, {x_batch, 0, y_batch}},
          {groups, {x_group, outputs * w_output, outputs * y_feature}},
          {outputs, {0, w_output, y_feature}},
          {features, {x_feature, w_input, 0}}};
}

/// y += x · w over the loops, the longest innermost.
template <class T>
void accumulate(std::vector<Loop> loops, std::array<int64_t, 3> start, const T* x, const T* w,
                T* y) {
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Loop& a, const Loop& b) { return a.extent < b.extent; });
  std::vector<int64_t> extents;
  std::array<std::vector<int64_t>, 3> strides;
  for (const Loop& loop : loops) {
    extents.push_back(loop.extent);
    for (size_t k = 0; k < 3; ++k) strides[k].push_back(loop.strides[k]);
  }
  Walk<3> walk(extents, strides);
  walk.rows(start, [&](const auto& at, const auto& steps, int64_t count) {
    const T* x_at = x + at[0];
    const T* w_at = w + at[1];
    T* y_at = y + at[2];
    for (int64_t i = 0; i < count; ++i) {
      T& sum = y_at[i * steps[2]];
      sum = wrapping_add(sum, wrapping_mul(x_at[i * steps[0]], w_at[i * steps[1]]));
    }
  });
}

std::vector<StaticWindow> static_windows(const EvalContext& context,
                                         const std::vector<int64_t>& y_shape) {
  const ConvAttrs& attrs = context.node.attrs.as<ConvAttrs>();
  const std::vector<int64_t> low = context.evaluate(attrs.pad_low);
  require_pads(low);
  std::vector<StaticWindow> windows;
  for (size_t i = 0; i < low.size(); ++i) {
    windows.push_back(
        {.input = context.tensor(0).shape()[static_cast<size_t>(attrs.input_spatial[i])],
         .output = y_shape[static_cast<size_t>(attrs.output_spatial[i])],
         .stride = attrs.strides[i],
         .pad_low = low[i],
         .input_dilation = attrs.input_dilation[i],
         .window_dilation = attrs.kernel_dilation[i]});
  }
  return windows;
}

template <class Codec>
void convolve(const EvalContext& context, const std::vector<StaticWindow>& windows,
              ResultBuffer& result) {
  using T = typename Codec::Value;
  const ConvAttrs& attrs = context.node.attrs.as<ConvAttrs>();
  const Literal& x = context.tensor(0);
  const Literal& w = context.tensor(1);
  const std::unique_ptr<T[]> x_values = decode<Codec>(x);
  const std::unique_ptr<T[]> w_values = decode<Codec>(w);
  const std::unique_ptr<T[]> y_values = make_array<T>(result.count());
  std::fill_n(y_values.get(), result.count(), T{0});

  const std::vector<Loop> channels = channel_loops(attrs, x, w, result.shape());
  const std::vector<int64_t> x_strides = row_major_strides(x.shape());
  const std::vector<int64_t> w_strides = row_major_strides(w.shape());
  const std::vector<int64_t> y_strides = row_major_strides(result.shape());
  std::vector<int64_t> kernel;
  for (const int64_t axis : attrs.kernel_spatial) {
    kernel.push_back(w.shape()[static_cast<size_t>(axis)]);
  }
  each_window_element(windows, kernel, [&](const WindowElement& element) {
    std::vector<Loop> loops = channels;
    std::array<int64_t, 3> start{};
    for (size_t i = 0; i < windows.size(); ++i) {
      const Taps& taps = element.taps[i];
      const int64_t x_stride = x_strides[static_cast<size_t>(attrs.input_spatial[i])];
      const int64_t y_stride = y_strides[static_cast<size_t>(attrs.output_spatial[i])];
      start[0] += taps.input * x_stride;
      start[1] += element.position[i] * w_strides[static_cast<size_t>(attrs.kernel_spatial[i])];
      start[2] += taps.output * y_stride;
      loops.push_back({taps.count, {taps.input_step * x_stride, 0, taps.output_step * y_stride}});
    }
    accumulate(std::move(loops), start, x_values.get(), w_values.get(), y_values.get());
  });
  encode<Codec>(y_values.get(), result);
}

Value evaluate_conv(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  ResultBuffer result(x.element(), context.result_shape());
  const bool nothing = x.element_count() == 0 || context.tensor(1).element_count() == 0;
  if (result.count() == 0 || nothing) return result.finish();  // sums of nothing are zero
  const std::vector<StaticWindow> windows = static_windows(context, result.shape());
  visit_codec_of<kNumeric>(
      x.element(), [&](auto codec) { convolve<decltype(codec)>(context, windows, result); });
  return result.finish();
}

/// Extents in one spatial dimension, all dilated: the output by the strides.
struct DilatedExtents {
  Dim input, kernel, output;
};

DilatedExtents dilated_extents(const GradientContext& context, const ConvAttrs& attrs, size_t i) {
  const SymbolRanges& ranges = context.builder.module().symbols;
  const TensorType& y = context.node.type.tensor();
  return {
      dilated(extent_of(context.type(0), attrs.input_spatial[i]), attrs.input_dilation[i], ranges),
      dilated(extent_of(context.type(1), attrs.kernel_spatial[i]), attrs.kernel_dilation[i],
              ranges),
      dilated(extent_of(y, attrs.output_spatial[i]), attrs.strides[i], ranges)};
}

/// Dimension `from`, which consists of `groups` groups, becomes a factor of dimension `to`, in
/// front of what is there: [g·a, b] → [a, g·b].
Val move_groups(const Val& x, int64_t from, int64_t to, int64_t groups) {
  if (groups == 1) return x;
  Shape split;  // the group dimension stands before `from`
  Ints permutation;
  Shape merged = x.shape();
  const size_t source = static_cast<size_t>(from), target = static_cast<size_t>(to);
  merged[source] = Dim::floor_div(merged[source], groups);
  merged[target] = merged[target] * Dim(groups);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d == from) split.push_back(groups);
    split.push_back(d == from ? merged[source] : x.shape()[static_cast<size_t>(d)]);
    if (d == to) permutation.push_back(from);
    permutation.push_back(d < from ? d : d + 1);
  }
  const Val moved = backcast::transpose(backcast::reshape(x, split), permutation);
  return backcast::reshape(moved, merged);
}

/// A convolution of a spread operand. Where the kernel has one element in a dimension, the result
/// is spread instead: nothing but zeros lies between.
Val convolve_then_spread(const Val& x, const Val& kernel, ConvAttrs attrs) {
  const size_t rank = x.shape().size();
  PadAttrs spread{Dims(rank, Dim(0)), Dims(rank, Dim(0)), Ints(rank, 0)};
  bool any = false;
  for (size_t i = 0; i < attrs.strides.size(); ++i) {
    const Dim taps = kernel.shape()[static_cast<size_t>(attrs.kernel_spatial[i])];
    if (!(taps == Dim(1)) || attrs.input_dilation[i] == 1 || attrs.strides[i] > 1) continue;
    const auto d = static_cast<size_t>(attrs.output_spatial[i]);
    spread.low[d] = std::exchange(attrs.pad_low[i], Dim(0));
    spread.high[d] = std::exchange(attrs.pad_high[i], Dim(0));
    spread.interior[d] = std::exchange(attrs.input_dilation[i], 1) - 1;
    any = true;
  }
  const Val result = x.emit(ops::conv, {kernel}, attrs);
  if (!any) return result;
  return result.emit(ops::pad, {x.builder().scalar(x.element(), 0)}, spread);
}

/// The cotangent, spread by the strides, convolved with the reversed kernel whose outputs and
/// features have changed places (per group). With batch groups the groups are feature groups of
/// the cotangent, and come out as groups of features that belong into the batch.
Val adjoint_of_input(const GradientContext& context, const Val& seed, const Val& w) {
  const ConvAttrs& attrs = context.node.attrs.as<ConvAttrs>();
  const int64_t groups = std::max(attrs.feature_groups, attrs.batch_groups);
  ConvAttrs back = attrs;
  back.input_batch = attrs.output_batch, back.input_feature = attrs.output_feature;
  back.input_spatial = attrs.output_spatial;
  back.kernel_output = attrs.kernel_input, back.kernel_input = attrs.kernel_output;
  back.output_batch = attrs.input_batch, back.output_feature = attrs.input_feature;
  back.output_spatial = attrs.input_spatial;
  back.feature_groups = groups, back.batch_groups = 1;
  back.strides = attrs.input_dilation, back.input_dilation = attrs.strides;
  Ints reversed;
  for (size_t i = 0; i < attrs.strides.size(); ++i) {
    const DilatedExtents extents = dilated_extents(context, attrs, i);
    const Dim& input = extent_of(context.type(0), attrs.input_spatial[i]);
    back.pad_low[i] = extents.kernel - Dim(1) - attrs.pad_low[i];
    back.pad_high[i] = (input - Dim(1)) * Dim(attrs.input_dilation[i]) + extents.kernel -
                       extents.output - back.pad_low[i];
    if (!(extents.kernel == Dim(1))) reversed.push_back(attrs.kernel_spatial[i]);
  }
  Val kernel = move_groups(w, attrs.kernel_output, attrs.kernel_input, groups);
  if (!reversed.empty()) kernel = kernel.emit(ops::reverse, {}, ReverseAttrs{reversed});
  const Val result = convolve_then_spread(seed, kernel, back);
  return move_groups(result, attrs.input_feature, attrs.input_batch, attrs.batch_groups);
}

/// The input, whose batch and features have changed places, convolved with the cotangent: strides
/// and kernel dilation change places, and so do feature and batch groups.
Val adjoint_of_kernel(const GradientContext& context, const Val& seed, const Val& x) {
  const ConvAttrs& attrs = context.node.attrs.as<ConvAttrs>();
  ConvAttrs back = attrs;
  back.input_batch = attrs.input_feature, back.input_feature = attrs.input_batch;
  back.kernel_output = attrs.output_feature, back.kernel_input = attrs.output_batch;
  back.kernel_spatial = attrs.output_spatial;
  back.output_batch = attrs.kernel_input, back.output_feature = attrs.kernel_output;
  back.output_spatial = attrs.kernel_spatial;
  back.feature_groups = attrs.batch_groups, back.batch_groups = attrs.feature_groups;
  back.strides = attrs.kernel_dilation, back.kernel_dilation = attrs.strides;
  for (size_t i = 0; i < attrs.strides.size(); ++i) {
    const DilatedExtents extents = dilated_extents(context, attrs, i);
    back.pad_high[i] = extents.kernel - Dim(1) + extents.output - extents.input - attrs.pad_low[i];
  }
  return x.emit(ops::conv, {seed}, back);
}

std::vector<Adjoint> gradient_of_conv(GradientContext& context) {
  const Val seed(context.builder, context.seed());
  const Val x(context.builder, context.operand(0)), w(context.builder, context.operand(1));
  for (const Val* value : {&seed, &x, &w}) {
    for (const Dim& dim : value->shape()) {
      if (dim == Dim(0)) return {};  // sums of nothing
    }
  }
  std::vector<Adjoint> result(2);
  if (context.wanted[0]) result[0] = adjoint_of_input(context, seed, w);
  if (context.wanted[1]) result[1] = adjoint_of_kernel(context, seed, x);
  return result;
}

}  // namespace

const OpDef conv = {
    .name = "conv",
    .documentation =
        "Convolution (cross-correlation) with general dimension numbers: strides, pads "
        "that may crop, dilation of input and kernel, feature and batch groups.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = ConvAttrs{},
    .infer = infer_conv,
    .evaluate = evaluate_conv,
    .gradient = gradient_of_conv,
};

}  // namespace backcast::ops
