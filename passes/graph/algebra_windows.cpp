// Rules about what is in front of windows that slide over an image: convolutions and pooling.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/graph/algebra.h"

namespace backcast {
namespace {

using Result = std::optional<ValueId>;

/// Has every window an element that is no padding?
bool is_never_empty(const ReduceWindowAttrs& attrs) {
  for (size_t d = 0; d < attrs.window.size(); ++d) {
    for (const Dim& pad : {attrs.pad_low[d], attrs.pad_high[d]}) {
      if (pad == Dim(0)) continue;
      if (!pad.is_constant() || pad.constant() >= attrs.window[d]) return false;
      if (attrs.dilation[d] != 1) return false;
    }
  }
  return true;
}

/// The largest of integers that were converted, and scaled by one positive number: neither changes
/// their order.
Result maximum_of_integers(Builder& b, const Node& node) {
  const ReduceWindowAttrs& attrs = node.attrs.as<ReduceWindowAttrs>();
  if (attrs.kind != Reduction::max || !is_never_empty(attrs)) return std::nullopt;
  const Node inner = b.node(node.operands[0]);
  const Shape& shape = node.type.tensor().shape;
  if (inner.op == &ops::cast && is_exact_float(b, inner)) {
    const ValueId largest = b.emit(ops::reduce_window, {inner.operands[0]}, node.attrs);
    return b.emit(ops::cast, {largest}, inner.attrs);
  }
  if (inner.op != &ops::mul) return std::nullopt;
  const Node whole = b.node(inner.operands[0]), wide = b.node(inner.operands[1]);
  const std::optional<double> scale = splat_of(b, inner.operands[1]);
  if (whole.op != &ops::cast || !is_exact_float(b, whole) || wide.op != &ops::broadcast) {
    return std::nullopt;
  }
  if (!scale || !(*scale > 0) || !std::isfinite(*scale) ||
      !wide.attrs.as<BroadcastAttrs>().dims.empty()) {
    return std::nullopt;
  }
  const ValueId largest = b.emit(ops::reduce_window, {inner.operands[0]}, node.attrs);
  const ValueId by = b.emit(ops::broadcast, {wide.operands[0]}, BroadcastAttrs{shape, {}});
  return b.emit(ops::mul, {largest, by});
}

/// A border that is only added, around the listed axes.
bool is_border_of(const PadAttrs& pad, const Ints& axes) {
  for (size_t d = 0; d < pad.low.size(); ++d) {
    if (pad.interior[d] != 0) return false;
    const bool listed = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    for (const Dim& extent : {pad.low[d], pad.high[d]}) {
      if (extent == Dim(0)) continue;
      if (!listed || !extent.is_constant() || extent.constant() < 0) return false;
    }
  }
  return true;
}

/// Zeros around an image are the convolution's own border, and need no memory there.
Result convolution_of_padded(Builder& b, const Node& node) {
  const Node pad = b.node(node.operands[0]);
  if (pad.op != &ops::pad || !is_splat(b, pad.operands[1], 0)) return std::nullopt;
  ConvAttrs attrs = node.attrs.as<ConvAttrs>();
  const PadAttrs& border = pad.attrs.as<PadAttrs>();
  if (!is_border_of(border, attrs.input_spatial)) return std::nullopt;
  for (size_t i = 0; i < attrs.input_spatial.size(); ++i) {
    const auto d = static_cast<size_t>(attrs.input_spatial[i]);
    if (border.low[d] == Dim(0) && border.high[d] == Dim(0)) continue;
    if (attrs.input_dilation[i] != 1) return std::nullopt;
    attrs.pad_low[i] = attrs.pad_low[i] + border.low[d];
    attrs.pad_high[i] = attrs.pad_high[i] + border.high[d];
  }
  return b.emit(ops::conv, {pad.operands[0], node.operands[1]}, attrs);
}

bool is_never_negative(const Builder& b, ValueId id) {
  const Node& node = b.node(id);
  if (node.op != &ops::clamp) return node.op == &ops::relu;
  const std::optional<double> low = splat_of(b, node.operands[1]);
  return low && *low >= 0;
}

/// A border that changes nothing in any window is the window's own: zeros in a sum, the lowest
/// number in a maximum, and zeros there among numbers that are not negative.
Result windows_of_padded(Builder& b, const Node& node) {
  const Node pad = b.node(node.operands[0]);
  if (pad.op != &ops::pad || !is_float(node.type.tensor().element)) return std::nullopt;
  const std::optional<double> value = splat_of(b, pad.operands[1]);
  if (!value) return std::nullopt;
  ReduceWindowAttrs attrs = node.attrs.as<ReduceWindowAttrs>();
  const PadAttrs& border = pad.attrs.as<PadAttrs>();
  Ints axes;
  for (size_t d = 0; d < attrs.window.size(); ++d) {
    axes.push_back(static_cast<int64_t>(d));
    attrs.pad_low[d] = attrs.pad_low[d] + border.low[d];
    attrs.pad_high[d] = attrs.pad_high[d] + border.high[d];
  }
  if (!is_border_of(border, axes)) return std::nullopt;
  const bool changes_nothing =
      attrs.kind == Reduction::sum ? *value == 0
      : attrs.kind == Reduction::max
          ? *value == -std::numeric_limits<double>::infinity() ||
                (*value == 0 && is_never_negative(b, pad.operands[0]) && is_never_empty(attrs))
          : false;
  if (!changes_nothing) return std::nullopt;
  return b.emit(ops::reduce_window, {pad.operands[0]}, attrs);
}

const AlgebraicRule kRules[] = {
    {"max(c * wide(x)) = c * wide(max(x))", &ops::reduce_window, maximum_of_integers},
    {"conv(pad(x)) = conv(x) with a border", &ops::conv, convolution_of_padded},
    {"window(pad(x)) = window(x) with a border", &ops::reduce_window, windows_of_padded},
};

}  // namespace

std::span<const AlgebraicRule> window_rules() { return kRules; }

}  // namespace backcast
