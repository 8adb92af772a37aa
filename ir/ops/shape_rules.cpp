// Checks of operands and attributes, and the arithmetic of sliding windows.
#include "ir/ops/shape_rules.h"

#include <algorithm>
#include <numeric>

#include "ir/graph/dim_math.h"

namespace backcast::ops {
namespace {

constexpr int64_t kMaxValue = int64_t{1} << 30;
constexpr int64_t kMaxPad = int64_t{1} << 40;

std::string_view kinds_text(unsigned kinds) {
  switch (kinds) {
    case kBool:
      return "a bool";
    case kInteger:
      return "an integer";
    case kFloat:
      return "a floating-point";
    case kNumeric:
      return "a numeric";
    case kBits:
      return "an integer or bool";
    default:
      return "any";
  }
}

}  // namespace

const TensorType& require_kind(const InferContext& context, size_t i, unsigned kinds) {
  const TensorType& type = context.tensor(i);
  const unsigned kind =
      visit_codec(type.element, [](auto codec) -> unsigned { return decltype(codec)::kKind; });
  if ((kind & kinds) == 0) {
    fail("operand {} must be {} tensor and is {}", i, kinds_text(kinds), to_string(type));
  }
  return type;
}

void require_same_type(const InferContext& context, size_t i, size_t j) {
  const TensorType& a = context.tensor(i);
  const TensorType& b = context.tensor(j);
  if (!(a == b)) {
    fail("operands {} and {} must have equal types and are {} and {}", j, i, to_string(b),
         to_string(a));
  }
}

void require_same_element(const InferContext& context, size_t i, size_t j) {
  const TensorType& a = context.tensor(i);
  const TensorType& b = context.tensor(j);
  if (a.element != b.element) {
    fail("operands {} and {} must have equal element types and are {} and {}", j, i, to_string(b),
         to_string(a));
  }
}

void require_axis(int64_t axis, int64_t rank, std::string_view what) {
  if (axis < 0 || axis >= rank) {
    fail("{} {} is out of range for {} dimensions", what, axis, rank);
  }
}

void require_axes(const Ints& axes, int64_t rank, std::string_view what) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    require_axis(axis, rank, what);
    if (seen[static_cast<size_t>(axis)]) fail("{} names dimension {} twice", what, axis);
    seen[static_cast<size_t>(axis)] = true;
  }
}

void require_increasing(const Ints& axes, int64_t rank, std::string_view what) {
  require_axes(axes, rank, what);
  if (!std::is_sorted(axes.begin(), axes.end())) fail("{} must increase", what);
}

void require_length(size_t length, int64_t wanted, std::string_view what) {
  if (length != static_cast<size_t>(wanted)) {
    fail("{} has {} entries and needs {}, one per dimension", what, length, wanted);
  }
}

void require_values(const Ints& values, int64_t low, std::string_view what) {
  for (const int64_t value : values) {
    if (value < low || value > kMaxValue) {
      fail("{} has the entry {}; it must be {} to 2^30", what, value, low);
    }
  }
}

void require_shape(const Shape& shape, const SymbolRanges& ranges, std::string_view what) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (always_negative(shape[i], ranges)) {
      fail("{} {}: dimension {} is negative", what, to_string(shape), i);
    }
  }
}

bool always_negative(const Dim& dim, const SymbolRanges& ranges) {
  return dim.is_constant() ? dim.constant() < 0 : dim.range(ranges).max < 0;
}

bool at_least(const Dim& dim, int64_t least, const SymbolRanges& ranges) {
  return dim.is_constant() ? dim.constant() >= least : dim.range(ranges).min >= least;
}

Dim gaps_between(const Dim& extent, int64_t interior, const SymbolRanges& ranges) {
  if (interior == 0) return 0;
  const Dim gaps = (extent - Dim(1)) * Dim(interior);
  return at_least(extent, 1, ranges) ? gaps : Dim::max(Dim(0), gaps);
}

Dim dilated(const Dim& extent, int64_t dilation, const SymbolRanges& ranges) {
  if (dilation == 1 || extent == Dim(0)) return extent;
  const Dim spread = (extent - Dim(1)) * Dim(dilation) + Dim(1);
  return at_least(extent, 1, ranges) ? spread : Dim::max(Dim(0), spread);
}

Dim window_positions(const WindowDimension& d, const SymbolRanges& ranges, std::string_view what) {
  const Dim padded = dilated(d.input, d.input_dilation, ranges) + d.pad_low + d.pad_high;
  if (always_negative(padded, ranges)) {
    fail("{}: an input of {} with pads {} and {} has the negative extent {}", what,
         d.input.to_string(), d.pad_low.to_string(), d.pad_high.to_string(), padded.to_string());
  }
  const Dim window = dilated(d.window, d.window_dilation, ranges);
  const Dim rest = padded - window;
  if (always_negative(rest, ranges)) {
    if (padded == Dim(0)) return 0;
    fail("{}: a window of {} (after dilation) is larger than the padded input of {}", what,
         window.to_string(), padded.to_string());
  }
  return Dim::floor_div(rest, d.stride) + Dim(1);
}

void require_pads(const std::vector<int64_t>& pads) {
  for (const int64_t pad : pads) {
    if (pad < -kMaxPad || pad > kMaxPad) fail("a pad of {} is too large to evaluate", pad);
  }
}

Taps taps_of(const StaticWindow& w, int64_t tap) {
  Taps taps;
  if (w.input <= 0 || w.output <= 0) return taps;
  // Output o reads position o·stride - shift of the dilated input.
  const int64_t shift = w.pad_low - tap * w.window_dilation;
  const int64_t last_input = (w.input - 1) * w.input_dilation;
  int64_t first = std::max<int64_t>(0, -math::floor_div(-shift, w.stride));
  const int64_t last = std::min(w.output - 1, math::floor_div(last_input + shift, w.stride));
  // A dilated input has elements at multiples of the dilation only.
  const int64_t period = w.input_dilation / std::gcd(w.input_dilation, w.stride);
  const int64_t end = period - 1 > last - first ? last : first + period - 1;
  while (first <= end && (first * w.stride - shift) % w.input_dilation != 0) ++first;
  if (first > end) return taps;
  taps.count = (last - first) / period + 1;
  taps.output = first;
  taps.input = (first * w.stride - shift) / w.input_dilation;
  if (taps.count == 1) return taps;  // steps that lead nowhere may be beyond all bounds
  taps.output_step = period;
  taps.input_step = period * w.stride / w.input_dilation;
  return taps;
}

}  // namespace backcast::ops
