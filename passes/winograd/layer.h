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
  int64_t extent = 0;  // of the convolution's output
  int64_t shift = 0;
  int64_t first = 0, end = 0;
  size_t dimension = 0;  // of the input buffer
};

enum class WinogradOf : uint8_t {
  result,   // of a convolution: sums over taps and channels
  weights,  // the gradient with respect to its weights: sums over positions and the batch
};

struct WinogradConv {
  WinogradOf of = WinogradOf::result;
  loop::Definition definition;
  // Parameters of the kernel: the convolution's input, and what it is multiplied by, which is the
  // weights or, for their gradient, the gradient with respect to the convolution's results.
  std::string input, factor;
  bool constant_weights = true;
  loop::Expr input_access, factor_access;
  WinogradSide rows, columns;
  std::string batch, channel, feature;  // axes; empty: extent 1
  Dim batches = 1;
  int64_t channels = 1, features = 1;
  loop::Scalar scalar = loop::Scalar::f32;  // of the sums
  loop::Scalar stored = loop::Scalar::f32;  // of the input; bytes where sums are integers
  /// Channels that one element of `input` holds: 4 where bytes are read in words. The transform
  /// computes with two of them at once then (words.h).
  int64_t word = 1;
  /// Channels and features lie one behind another in the input and in the output.
  bool channels_last = false;

  bool is_exact() const { return loop::is_integer(scalar); }
  /// What a tile's frequency holds of the input: so many elements of this type. Two channels an
  /// element where they are computed with at once.
  int64_t spectrum_elements() const { return word == 1 ? channels : channels / 2; }
  loop::Scalar spectrum() const {
    return !is_exact() ? scalar : word == 1 ? loop::Scalar::i16 : loop::Scalar::i32;
  }
};

/// Nothing when the kernel is anything but a 3×3 convolution of stride 1, of floats, or of bytes
/// with constant weights and sums in i32; or, of floats, the gradient of one with respect to its
/// weights, whatever else is made of it. That with respect to the input is a convolution itself.
std::optional<WinogradConv> match_winograd(
    const loop::Kernel& kernel, const std::function<bool(const std::string&)>& is_constant);

}  // namespace backcast
