// What shape rules ask for all the time. Each check throws a CompileError (the caller adds the
// location) that names the operand or attribute at fault. Attributes may come from unchecked text:
// nothing is read before its length and range are known.
#pragma once

#include <string_view>

#include "ir/graph/module.h"
#include "ir/graph/op.h"
#include "ir/ops/element_codec.h"
#include "ir/ops/op_attrs.h"

namespace backcast::ops {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw CompileError(fmt::format(format, std::forward<Args>(args)...));
}

/// Operand i, whose element type has to be one of `kinds`.
const TensorType& require_kind(const InferContext& context, size_t i, unsigned kinds);
/// Operand i has the type of operand j.
void require_same_type(const InferContext& context, size_t i, size_t j);
void require_same_element(const InferContext& context, size_t i, size_t j);

/// 0 <= axis < rank. `what` names the attribute.
void require_axis(int64_t axis, int64_t rank, std::string_view what);
/// Every axis is in range and none occurs twice.
void require_axes(const Ints& axes, int64_t rank, std::string_view what);
/// The same, and each axis is greater than the one before.
void require_increasing(const Ints& axes, int64_t rank, std::string_view what);
/// An attribute has one entry per dimension.
void require_length(size_t length, int64_t wanted, std::string_view what);
/// Every value lies between low and 2^30, so that products of two never overflow.
void require_values(const Ints& values, int64_t low, std::string_view what);
/// No extent is known to be negative.
void require_shape(const Shape& shape, const SymbolRanges& ranges, std::string_view what);

/// Whether the dimension is negative, or at least `least`, whatever its symbols are.
bool always_negative(const Dim& dim, const SymbolRanges& ranges);
bool at_least(const Dim& dim, int64_t least, const SymbolRanges& ranges);

/// An extent after `dilation - 1` gaps between neighbours; nothing stays nothing.
Dim dilated(const Dim& extent, int64_t dilation, const SymbolRanges& ranges);

/// The room between the neighbours of an extent when each gap has `interior` elements.
Dim gaps_between(const Dim& extent, int64_t interior, const SymbolRanges& ranges);

/// One dimension over which a window slides.
struct WindowDimension {
  Dim input;  // extent of the operand
  Dim window;
  int64_t stride = 1;
  Dim pad_low, pad_high;
  int64_t input_dilation = 1, window_dilation = 1;
};
/// Number of window positions: floor((padded - window) / stride) + 1, all dilated. `what` names the
/// dimension. CompileError when the window is larger than the padded input.
Dim window_positions(const WindowDimension& d, const SymbolRanges& ranges, std::string_view what);
/// CompileError when pads, evaluated, are so large that positions could overflow.
void require_pads(const std::vector<int64_t>& pads);

/// Which window positions read an element of the input through element `tap` of the window: `count`
/// pairs (output, input) in arithmetic progression.
struct Taps {
  int64_t count = 0;
  int64_t output = 0, output_step = 0;
  int64_t input = 0, input_step = 0;
};
struct StaticWindow {
  int64_t input = 0, output = 0, stride = 1, pad_low = 0, input_dilation = 1, window_dilation = 1;
};
Taps taps_of(const StaticWindow& window, int64_t tap);

}  // namespace backcast::ops
