// What reduce_window, arg_window, gather_window and scatter_window share: checks of their
// attributes, the places of windows, and the numbering of a window's elements.
#pragma once

#include <vector>

#include "ir/ops/taps.h"
#include "ir/ops/walk.h"
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

/// Calls visit(number, input, output) for every element of every window that lies in the operand,
/// by number first: its number and where it and the window's result are, in row-major tensors.
template <class F>
void each_window_pair(const std::vector<StaticWindow>& windows, const Ints& window,
                      const std::vector<int64_t>& x, const std::vector<int64_t>& result,
                      F&& visit) {
  const std::vector<int64_t> from_strides = row_major_strides(x);
  const std::vector<int64_t> to_strides = row_major_strides(result);
  std::vector<int64_t> extents(windows.size()), reads(windows.size()), writes(windows.size());
  each_window_element(windows, window, [&](const WindowElement& element) {
    int64_t read = 0, write = 0, number = 0;
    for (size_t d = 0; d < windows.size(); ++d) {
      const Taps& taps = element.taps[d];
      number = number * window[d] + element.position[d];
      extents[d] = taps.count;
      reads[d] = from_strides[d] * taps.input_step;
      writes[d] = to_strides[d] * taps.output_step;
      read += from_strides[d] * taps.input;
      write += to_strides[d] * taps.output;
    }
    Walk<2> walk(extents, {reads, writes});
    walk.each({read, write}, [&](const auto& at) { visit(number, at[0], at[1]); });
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
