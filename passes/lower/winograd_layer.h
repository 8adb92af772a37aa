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
  loop::Scalar scalar = loop::Scalar::f32;  // of the sums
  loop::Scalar stored = loop::Scalar::f32;  // of the input; bytes where sums are integers
  /// Channels that one element of `input` holds: 4 where bytes are read in words. The transform
  /// computes with two of them at once then (winograd_words.h).
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

/// Nothing when the kernel is anything but a 3×3 convolution of stride 1 with constant weights, of
/// floats, or of bytes with sums in i32.
std::optional<WinogradConv> match_winograd(
    const loop::Kernel& kernel, const std::function<bool(const std::string&)>& is_constant);

}  // namespace backcast
