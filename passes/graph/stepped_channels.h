// Convolutions of one channel that step over neighbours: a signal, a spectrogram. With a stride of
// s along the dimension that lies contiguous, s neighbours are as good as s channels of an image
// that is s times as narrow, and channels fill words.
#pragma once

#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/op_attrs.h"

namespace backcast {

struct SteppedChannels {
  PadAttrs border;     // of the image, along the dimension that is cut
  ReshapeAttrs image;  // what it is then: neighbours last
  Literal weights;     // their type is that of `weights`
  ConvAttrs conv;      // of the image and the weights: the result stays as it was
};

/// `weights` are those of the convolution `node` of `input`. Nothing where there are several
/// channels, or no stride along the innermost dimension, or one that is no multiple of `word`.
std::optional<SteppedChannels> stepped_channels(const Node& node, const TensorType& input,
                                                const Literal& weights, int64_t word);

}  // namespace backcast
