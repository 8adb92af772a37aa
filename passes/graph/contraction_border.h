// What is around a contraction's first operand, made explicit: the border of a convolution's image,
// and input channels that fill words.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/op_attrs.h"

namespace backcast {

struct ContractionBorder {
  PadAttrs input, weights;  // of the image and of channels, of channels
  PadAttrs channels;        // of the input's channels alone
  int64_t spare = 0;        // channels that were added
  Attrs rest;               // of the contraction of what is padded by `input` and `weights`

  bool is_empty() const;
};

/// The border of a contraction of `input` and `weights` whose sums run in words of `word` elements.
/// Nothing where no sum does, or filling words costs more than it brings: fewer than three
/// channels, groups of them, many weights.
std::optional<ContractionBorder> contraction_border(const Node& contraction,
                                                    const TensorType& input,
                                                    const TensorType& weights, int64_t word);

}  // namespace backcast
