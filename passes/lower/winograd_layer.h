// A convolution that minimal filtering can compute, as its definition shows it. Internal to the
// pass `winograd`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// A spatial dimension: input index = output axis + kernel axis + shift, zero outside of
/// [first, end).
struct WinogradSide {
  std::string axis, kernel_axis;
  int64_t extent = 0;  // of the output
  int64_t shift = 0;
  int64_t first = 0, end = 0;
  size_t dimension = 0;  // of the input buffer
};

struct WinogradConv {
  loop::Definition definition;
  std::string input, weights;  // parameters of the kernel
  loop::Expr input_access, weights_access;
  WinogradSide rows, columns;
  std::string batch, channel, feature;  // axes; empty: extent 1
  Dim batches = 1;
  int64_t channels = 1, features = 1;
  loop::Scalar scalar = loop::Scalar::f32;
  /// Channels and features lie one behind another in the input and in the output.
  bool channels_last = false;
};

/// Nothing when the kernel is anything but a 3×3 convolution of stride 1, of floats, with constant
/// weights.
std::optional<WinogradConv> match_winograd(
    const loop::Kernel& kernel, const std::function<bool(const std::string&)>& is_constant);

}  // namespace backcast
