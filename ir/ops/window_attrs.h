// Attributes of the operators that remember which element a window chose: the contract between
// reduce_window's gradient, their evaluation and their lowering.
#pragma once

#include "ir/ops/op_attrs.h"

namespace backcast {

/// arg_window takes ReduceWindowAttrs (max or min).

/// gather_window(x, positions): the element of x that each window chose; the window attributes are
/// those of arg_window.
struct GatherWindowAttrs {
  Ints window, strides, dilation;
  Dims pad_low, pad_high;
  static constexpr auto fields() {
    return std::tuple{field("window", &GatherWindowAttrs::window),
                      field("strides", &GatherWindowAttrs::strides),
                      field("dilation", &GatherWindowAttrs::dilation),
                      field("pad_low", &GatherWindowAttrs::pad_low),
                      field("pad_high", &GatherWindowAttrs::pad_high)};
  }
};

/// scatter_window(values, positions): a tensor of `shape`, the windows' operand, in which every
/// value is added to the element that its window chose.
struct ScatterWindowAttrs {
  Dims shape;
  Ints window, strides, dilation;
  Dims pad_low, pad_high;
  static constexpr auto fields() {
    return std::tuple{field("shape", &ScatterWindowAttrs::shape),
                      field("window", &ScatterWindowAttrs::window),
                      field("strides", &ScatterWindowAttrs::strides),
                      field("dilation", &ScatterWindowAttrs::dilation),
                      field("pad_low", &ScatterWindowAttrs::pad_low),
                      field("pad_high", &ScatterWindowAttrs::pad_high)};
  }
};

}  // namespace backcast
