// Checks and arithmetic of sliding windows over whole tensors.
#include "ir/ops/window_rules.h"

#include "ir/ops/walk.h"

namespace backcast::ops {

Shape windows_over(const InferContext& context, const TensorType& x, const Windowing& numbers) {
  require_length(numbers.window.size(), x.rank(), "window");
  require_length(numbers.strides.size(), x.rank(), "strides");
  require_length(numbers.dilation.size(), x.rank(), "dilation");
  require_length(numbers.pad_low.size(), x.rank(), "pad_low");
  require_length(numbers.pad_high.size(), x.rank(), "pad_high");
  require_values(numbers.window, 1, "window");
  require_values(numbers.strides, 1, "strides");
  require_values(numbers.dilation, 1, "dilation");
  Shape result;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const WindowDimension dimension{.input = x.shape[d],
                                    .window = numbers.window[d],
                                    .stride = numbers.strides[d],
                                    .pad_low = numbers.pad_low[d],
                                    .pad_high = numbers.pad_high[d],
                                    .window_dilation = numbers.dilation[d]};
    result.push_back(window_positions(dimension, context.module.symbols,
                                      fmt::format("dimension {} of {}", d, to_string(x))));
  }
  return result;
}

std::vector<StaticWindow> static_windows(const EvalContext& context, const Windowing& numbers,
                                         const std::vector<int64_t>& x,
                                         const std::vector<int64_t>& result) {
  const std::vector<int64_t> low = context.evaluate(numbers.pad_low);
  require_pads(low);
  std::vector<StaticWindow> windows;
  for (size_t d = 0; d < low.size(); ++d) {
    windows.push_back({.input = x[d],
                       .output = result[d],
                       .stride = numbers.strides[d],
                       .pad_low = low[d],
                       .window_dilation = numbers.dilation[d]});
  }
  return windows;
}

int64_t window_elements(const Ints& window) {
  constexpr int64_t kLimit = (int64_t{1} << 31) - 1;
  int64_t count = 1;
  for (const int64_t extent : window) {
    count *= extent;  // below 2^31 · 2^30 before the check
    if (count > kLimit) fail("a window of 2^31 elements or more has no positions");
  }
  return count;
}

ElementType position_element(const Ints& window) {
  const int64_t count = window_elements(window);
  if (count <= 255) return ElementType::u8;
  return count <= 65535 ? ElementType::u16 : ElementType::u32;
}

void check_positions(const InferContext& context, size_t i, const TensorType& x,
                     const Windowing& numbers) {
  const TensorType wanted{position_element(numbers.window), windows_over(context, x, numbers)};
  const TensorType& positions = context.tensor(i);
  if (!(positions == wanted)) {
    fail("operand {}, the positions, must be {} and is {}", i, to_string(wanted),
         to_string(positions));
  }
}

void each_window_row(const std::vector<StaticWindow>& windows, const Ints& window,
                     const std::vector<int64_t>& x, const std::vector<int64_t>& result,
                     const std::function<void(const WindowRow&)>& visit) {
  const std::vector<int64_t> from_strides = row_major_strides(x);
  const std::vector<int64_t> to_strides = row_major_strides(result);
  std::vector<int64_t> extents(windows.size()), reads(windows.size()), writes(windows.size());
  each_window_element(windows, window, [&](const WindowElement& element) {
    WindowRow row;
    std::array<int64_t, 2> start{};
    for (size_t d = 0; d < windows.size(); ++d) {
      const Taps& taps = element.taps[d];
      row.number = row.number * window[d] + element.position[d];
      extents[d] = taps.count;
      reads[d] = from_strides[d] * taps.input_step;
      writes[d] = to_strides[d] * taps.output_step;
      start[0] += from_strides[d] * taps.input;
      start[1] += to_strides[d] * taps.output;
    }
    Walk<2> walk(extents, {reads, writes});
    walk.rows(start, [&](const auto& at, const auto& steps, int64_t count) {
      row.at = at;
      row.steps = steps;
      row.count = count;
      visit(row);
    });
  });
}

}  // namespace backcast::ops
