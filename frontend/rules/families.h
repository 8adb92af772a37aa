// What one family of import rules offers to the others.
#pragma once

#include <optional>
#include <string_view>

#include "frontend/node_context.h"

namespace backcast {

/// Composites along one axis, in the form that subtracts the maximum first.
ValueId softmax(NodeContext& n, ValueId x, int64_t axis);
ValueId log_softmax(NodeContext& n, ValueId x, int64_t axis);

/// x·Φ(x), by the error function or the approximation with tanh.
ValueId gelu(Emitter& e, ValueId x, bool by_tanh);

/// What f16 and bf16 are normalised in: f32; f64 stays.
ElementType stash_of(ElementType element);

struct Normalisation {
  int64_t axis;  // the first of the axes, up to the last
  double epsilon;
  ElementType stash;  // in which mean and variance are computed
  std::string text() const;
};
/// Composites. `scale` and `bias`, which may be absent, are broadcast to x.
ValueId layer_normalised(NodeContext& n, ValueId x, ValueId scale, ValueId bias,
                         const Normalisation& by);
ValueId rms_normalised(NodeContext& n, ValueId x, ValueId scale, const Normalisation& by);

/// The operand of a rule that ONNX moved from an attribute to an input at some opset: axes, split,
/// k, … None when neither is there.
std::optional<Ints> ints_of(const NodeContext& n, std::string_view attribute, size_t input);

/// result[…, i, …] = x[…, indices[…, i, …], …] with the index at `axis`; the other axes of the
/// indices may be shorter than those of x.
ValueId take_along(Emitter& e, ValueId x, ValueId indices, int64_t axis);

/// Emitter::take; where places are known and few runs of equal steps, what movement that is.
ValueId take_known(NodeContext& n, ValueId x, ValueId indices, int64_t axis);

/// Parts of the node's input 0 side by side along an axis, which they have to fill.
std::vector<ValueId> parts_of(NodeContext& n, int64_t axis, const Dims& sizes);

/// Conv of the node's attributes on any x and w, without bias.
ValueId convolve(NodeContext& n, ValueId x, ValueId w);
/// Conv of the node, with the bias that is its input 2.
ValueId biased_convolution(NodeContext& n);
void import_einsum(NodeContext& n);

/// numpy.matmul.
ValueId matmul(NodeContext& n, ValueId a, ValueId b);
/// Gemm of the node: alpha·A'·B' + beta·C.
ValueId gemm(NodeContext& n);

/// AveragePool of the node's attributes on any x.
ValueId average_pool(NodeContext& n, ValueId x);

/// Windows over the spatial axes 2, 3, … of an operand of shape [N, C, spatial…].
struct Window {
  Ints kernel, strides, dilations;
  Dims pad_low, pad_high;  // as the node asks for
  Dims high;               // pad_high and what ceil_mode adds
  Shape output;            // spatial extents
};
/// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode.
Window window_of(const NodeContext& n, const Shape& input, std::optional<Ints> kernel);

}  // namespace backcast
