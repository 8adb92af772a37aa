// What reduce_window, arg_window, gather_window and scatter_window share: checks of their
// attributes, the places of windows, and the numbering of a window's elements.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "ir/ops/taps.h"
#include "ir/ops/window_attrs.h"

namespace backcast::ops {

/// How a window slides over every dimension of an operand, whichever attributes say it.
struct Windowing {
  const Ints& window;
  const Ints& strides;
  const Ints& dilation;
  const Dims& pad_low;
  const Dims& pad_high;

  template <class A>
  static Windowing from(const A& attrs) {
    return {attrs.window, attrs.strides, attrs.dilation, attrs.pad_low, attrs.pad_high};
  }
};

/// The shape of one value per window over `x`; CompileError when the attributes do not fit it.
Shape windows_over(const InferContext& context, const TensorType& x, const Windowing& numbers);
/// The same windows when the shapes are known.
std::vector<StaticWindow> static_windows(const EvalContext& context, const Windowing& numbers,
                                         const std::vector<int64_t>& x,
                                         const std::vector<int64_t>& result);

/// The elements of a window are numbered row-major; this many mean "no element" (a window that lies
/// wholly in the padding). CompileError from 2^31 on.
int64_t window_elements(const Ints& window);
/// The smallest of u8, u16, u32 that holds these numbers.
ElementType position_element(const Ints& window);
/// CompileError unless operand `i` has one position per window of `numbers` over `x`.
void check_positions(const InferContext& context, size_t i, const TensorType& x,
                     const Windowing& numbers);

/// Elements of the same number of windows in a row: where the first one and its window's result
/// are, in row-major tensors, and how far apart.
struct WindowRow {
  int64_t number = 0, count = 0;
  std::array<int64_t, 2> at{}, steps{};  // in the operand, in the result
};

/// Calls visit for all elements of every window that lie in the operand, by number first.
void each_window_row(const std::vector<StaticWindow>& windows, const Ints& window,
                     const std::vector<int64_t>& x, const std::vector<int64_t>& result,
                     const std::function<void(const WindowRow&)>& visit);

/// Calls visit(number, input, output) for each of them.
template <class F>
void each_window_pair(const std::vector<StaticWindow>& windows, const Ints& window,
                      const std::vector<int64_t>& x, const std::vector<int64_t>& result,
                      F&& visit) {
  each_window_row(windows, window, x, result, [&](const WindowRow& row) {
    for (int64_t i = 0; i < row.count; ++i) {
      visit(row.number, row.at[0] + i * row.steps[0], row.at[1] + i * row.steps[1]);
    }
  });
}

/// Calls f with a zero of the unsigned type that positions of this element type have.
template <class F>
decltype(auto) visit_positions(ElementType element, F&& f) {
  if (element == ElementType::u8) return f(uint8_t{});
  if (element == ElementType::u16) return f(uint16_t{});
  return f(uint32_t{});
}

}  // namespace backcast::ops
