// See stepped_channels.h.
#include "passes/graph/stepped_channels.h"

#include <algorithm>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

/// The weights […, k, …, one channel, …] as […, k / step, …, step channels, …], zeros behind the
/// end.
Literal cut_weights(const Literal& weights, const ConvAttrs& attrs, size_t spatial, int64_t step) {
  const auto along = static_cast<size_t>(attrs.kernel_spatial[spatial]);
  const auto channel = static_cast<size_t>(attrs.kernel_input);
  std::vector<int64_t> shape = weights.shape();
  const int64_t taps = shape[along];
  shape[along] = (taps + step - 1) / step;
  shape[channel] = step;
  const std::vector<int64_t> from = row_major_strides(weights.shape());
  const std::vector<int64_t> to = row_major_strides(shape);
  std::vector<double> values;
  const int64_t count = to[0] * shape[0];
  for (int64_t i = 0; i < count; ++i) {
    const auto at = [&](size_t d) { return i / to[d] % shape[d]; };
    const int64_t tap = at(along) * step + at(channel);
    int64_t source = tap * from[along];
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d != along && d != channel) source += at(d) * from[d];
    }
    values.push_back(tap < taps ? weights.as_double(source) : 0);
  }
  return Literal::from_doubles(weights.element(), shape, values);
}

}  // namespace

std::optional<SteppedChannels> stepped_channels(const Node& node, const TensorType& input,
                                                const Literal& weights, int64_t word) {
  if (node.op != &ops::conv) return std::nullopt;
  ConvAttrs attrs = node.attrs.as<ConvAttrs>();
  const int64_t rank = input.rank();
  if (!(input.shape[static_cast<size_t>(attrs.input_feature)] == Dim(1)) ||
      attrs.batch_groups > 1) {
    return std::nullopt;
  }
  const int64_t innermost = attrs.input_feature == rank - 1 ? rank - 2 : rank - 1;
  const auto found = std::find(attrs.input_spatial.begin(), attrs.input_spatial.end(), innermost);
  if (found == attrs.input_spatial.end()) return std::nullopt;
  const auto d = static_cast<size_t>(found - attrs.input_spatial.begin());
  const int64_t step = attrs.strides[d];
  if (step < 2 || step % word != 0 || attrs.input_dilation[d] != 1 ||
      attrs.kernel_dilation[d] != 1 || !attrs.pad_low[d].is_constant() ||
      !attrs.pad_high[d].is_constant()) {
    return std::nullopt;
  }
  // As long as the last result's taps reach: more of a border or less, down to a part of the image.
  const int64_t taps = weights.shape()[static_cast<size_t>(attrs.kernel_spatial[d])];
  const Dim& results = node.type.tensor().shape[static_cast<size_t>(attrs.output_spatial[d])];
  const auto axis = static_cast<size_t>(innermost);
  if (!results.is_constant() || !input.shape[axis].is_constant()) return std::nullopt;
  const int64_t places = results.constant() - 1 + (taps + step - 1) / step;
  const int64_t low = attrs.pad_low[d].constant();
  const int64_t high = places * step - low - input.shape[axis].constant();
  if (places < 1) return std::nullopt;

  SteppedChannels stepped{.weights = cut_weights(weights, attrs, d, step)};
  stepped.border = {Dims(static_cast<size_t>(rank), Dim(0)),
                    Dims(static_cast<size_t>(rank), Dim(0)), Ints(static_cast<size_t>(rank), 0)};
  stepped.border.low[axis] = Dim(low);
  stepped.border.high[axis] = Dim(high);
  const auto moved = [&](int64_t at) { return at > attrs.input_feature ? at - 1 : at; };
  for (int64_t at = 0; at < rank; ++at) {
    if (at == attrs.input_feature) continue;
    stepped.image.shape.push_back(at == innermost ? Dim(places) : input.shape[size_t(at)]);
  }
  stepped.image.shape.push_back(Dim(step));
  attrs.input_batch = moved(attrs.input_batch);
  for (int64_t& at : attrs.input_spatial) at = moved(at);
  attrs.input_feature = rank - 1;
  attrs.strides[d] = 1;
  attrs.pad_low[d] = attrs.pad_high[d] = Dim(0);
  stepped.conv = attrs;
  return stepped;
}

}  // namespace backcast
