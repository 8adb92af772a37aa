// Convolutions. ConvTranspose is a convolution of the dilated input with the reversed kernel.
#include <algorithm>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

Ints static_spatial(const NodeContext& n, const Shape& weights) {
  Ints result;
  for (size_t i = 2; i < weights.size(); ++i) {
    if (!weights[i].is_constant()) n.fail("the weights need fixed spatial extents");
    result.push_back(weights[i].constant());
  }
  return result;
}

ConvAttrs channels_first(int64_t spatial_rank) {
  ConvAttrs attrs;
  attrs.input_spatial = attrs.kernel_spatial = attrs.output_spatial = counting(spatial_rank, 2);
  attrs.strides.assign(static_cast<size_t>(spatial_rank), 1);
  attrs.input_dilation = attrs.kernel_dilation = attrs.strides;
  return attrs;
}

int64_t groups_of(const NodeContext& n, const Shape& x, const Shape& w) {
  const int64_t group = n.attr_int("group", 1);
  if (w.size() != x.size()) {
    n.fail(fmt::format("the input has rank {} and the weights have rank {}", x.size(), w.size()));
  }
  if (group < 1 || group > INT32_MAX) n.fail(fmt::format("attribute \"group\" is {}", group));
  return group;
}

ValueId add_bias(NodeContext& n, ValueId y, size_t input) {
  if (!n.has(input)) return y;
  if (n.rank(input) != 1) n.fail("the bias has to be a vector");
  return n.e.add(y, n.e.broadcast_in(n.input(input), n.e.shape(y), {1}));
}

void conv(NodeContext& n) { n.result(biased_convolution(n)); }

/// Pads of the forward view, from output_shape, auto_pad or pads.
void transposed_pads(const NodeContext& n, const Shape& x, const Ints& kernel, const Ints& strides,
                     const Ints& dilations, const Ints& output_padding, Ints& low, Ints& high) {
  const size_t rank = kernel.size();
  const std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  std::optional<Ints> output_shape = n.attr_ints("output_shape");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") {
    n.fail(fmt::format("attribute \"auto_pad\" is \"{}\"", auto_pad));
  }
  low.assign(rank, 0);
  high.assign(rank, 0);
  if (!output_shape && !same) {
    const Ints pads = n.attr_ints("pads").value_or(Ints(rank * 2, 0));
    if (pads.size() != rank * 2) n.fail("attribute \"pads\" has the wrong number of values");
    if (auto_pad == "VALID") return;
    std::copy_n(pads.begin(), rank, low.begin());
    std::copy_n(pads.begin() + static_cast<int64_t>(rank), rank, high.begin());
    return;
  }
  if (output_shape && output_shape->size() > rank) {
    output_shape->erase(output_shape->begin(), output_shape->end() - static_cast<int64_t>(rank));
  }
  if (output_shape && output_shape->size() != rank) {
    n.fail("attribute \"output_shape\" has the wrong number of values");
  }
  for (size_t i = 0; i < rank; ++i) {
    if (!x[i + 2].is_constant()) {
      n.fail(
          fmt::format("needs a known input size for auto_pad or output_shape; bind {} with "
                      "--dim",
                      x[i + 2].to_string()));
    }
    const int64_t input = x[i + 2].constant();
    const int64_t output = output_shape ? (*output_shape)[i] : input * strides[i];
    const int64_t total =
        strides[i] * (input - 1) + output_padding[i] + (kernel[i] - 1) * dilations[i] + 1 - output;
    // Rounds down: a negative total adds elements at the end.
    const int64_t half = total >= 0 ? total / 2 : (total - 1) / 2;
    low[i] = auto_pad == "SAME_UPPER" ? half : total - half;
    high[i] = total - low[i];
  }
}

Ints attribute_per_axis(const NodeContext& n, std::string_view name, size_t rank, int64_t fallback,
                        int64_t least) {
  const Ints values = n.attr_ints(name).value_or(Ints(rank, fallback));
  bool good = values.size() == rank;
  for (const int64_t value : values) good = good && value >= least && value <= INT32_MAX;
  if (!good)
    n.fail(fmt::format("attribute \"{}\" needs {} values of {} or more", name, rank, least));
  return values;
}

/// [C, M/g, k…] with the groups in C becomes [M, C/g, k…].
ValueId swap_features(NodeContext& n, ValueId w, int64_t group) {
  const Shape shape = n.e.shape(w);
  if (!(Dim::mod(shape[0], group) == Dim(0))) {
    n.fail("the weights' first extent is no multiple of attribute \"group\"");
  }
  const Dim inner = Dim::floor_div(shape[0], group);
  Shape split = {Dim(group), inner, shape[1]};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  Ints permutation = counting(static_cast<int64_t>(split.size()));
  std::swap(permutation[1], permutation[2]);
  Shape merged = {shape[1] * group, inner};
  merged.insert(merged.end(), shape.begin() + 2, shape.end());
  return n.e.reshape(n.e.transpose(n.e.reshape(w, split), permutation), merged);
}

void conv_transpose(NodeContext& n) {
  const Shape x = n.shape(0), weights = n.shape(1);
  const int64_t group = groups_of(n, x, weights);
  if (x.size() < 3) n.fail("needs an input of rank 3 or more");
  const size_t rank = x.size() - 2;
  const Ints kernel = static_spatial(n, weights);
  if (n.attr_ints("kernel_shape").value_or(kernel) != kernel) {
    n.fail("attribute \"kernel_shape\" differs from the extents of the weights");
  }
  const Ints strides = attribute_per_axis(n, "strides", rank, 1, 1);
  const Ints dilations = attribute_per_axis(n, "dilations", rank, 1, 1);
  const Ints output_padding = attribute_per_axis(n, "output_padding", rank, 0, 0);
  Ints low, high;
  transposed_pads(n, x, kernel, strides, dilations, output_padding, low, high);

  ConvAttrs attrs = channels_first(static_cast<int64_t>(rank));
  attrs.input_dilation = strides;
  attrs.kernel_dilation = dilations;
  attrs.feature_groups = group;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t reach = (kernel[i] - 1) * dilations[i];
    attrs.pad_low.push_back(Dim(reach) - low[i]);
    attrs.pad_high.push_back(Dim(reach) - high[i] + output_padding[i]);
  }
  ValueId w = n.input(1);
  if (group == 1) {
    attrs.kernel_output = 1;
    attrs.kernel_input = 0;
  } else {
    w = swap_features(n, w, group);
  }
  w = n.e.reverse(w, counting(static_cast<int64_t>(rank), 2));
  n.result(add_bias(n, n.e.emit(ops::conv, {n.input(0), w}, std::move(attrs)), 2));
}

constexpr int64_t kNew = kNewestOpset;
#define CONV_ATTRIBUTES "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"

const OperatorRule kRules[] = {
    {"Conv", 7, kNew, 2, 3, conv, CONV_ATTRIBUTES},
    {"ConvTranspose", 7, kNew, 2, 3, conv_transpose,
     CONV_ATTRIBUTES " output_padding:I output_shape:I"},
};

}  // namespace

ValueId convolve(NodeContext& n, ValueId x, ValueId w) {
  const Shape input = n.e.shape(x), weights = n.e.shape(w);
  const int64_t group = groups_of(n, input, weights);
  const Window window = window_of(n, input, static_spatial(n, weights));
  ConvAttrs attrs = channels_first(static_cast<int64_t>(input.size()) - 2);
  attrs.strides = window.strides;
  attrs.kernel_dilation = window.dilations;
  attrs.pad_low = window.pad_low;
  attrs.pad_high = window.pad_high;
  attrs.feature_groups = group;
  return n.e.emit(ops::conv, {x, w}, std::move(attrs));
}

ValueId biased_convolution(NodeContext& n) {
  return add_bias(n, convolve(n, n.input(0), n.input(1)), 2);
}

std::span<const OperatorRule> convolution_rules() { return kRules; }

}  // namespace backcast
