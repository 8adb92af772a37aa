// See contraction_border.h.
#include "passes/graph/contraction_border.h"

#include <algorithm>
#include <utility>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

// Of zeros among constants, which simplify folds.
constexpr int64_t kMaxSpareBytes = 4096;

PadAttrs no_padding(int64_t rank) {
  const auto count = static_cast<size_t>(rank);
  return {Dims(count, Dim(0)), Dims(count, Dim(0)), Ints(count, 0)};
}

}  // namespace

bool ContractionBorder::is_empty() const {
  const auto none = [](const Dims& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim == Dim(0); });
  };
  return none(input.low) && none(input.high);
}

std::optional<ContractionBorder> contraction_border(const Node& contraction,
                                                    const TensorType& input,
                                                    const TensorType& weights, int64_t word) {
  const PadAttrs none = no_padding(input.rank());
  ContractionBorder border{none, no_padding(weights.rank()), none, 0, contraction.attrs};
  if (contraction.op == &ops::dot_general) {
    for (const int64_t d : contraction.attrs.as<DotGeneralAttrs>().rhs_contract) {
      if (weights.shape[static_cast<size_t>(d)].constant() % word == 0) return border;
    }
    return std::nullopt;
  }
  if (contraction.op != &ops::conv) return std::nullopt;
  ConvAttrs attrs = contraction.attrs.as<ConvAttrs>();
  const auto feature = static_cast<size_t>(attrs.kernel_input);
  const int64_t channels = weights.shape[feature].constant();
  const bool dilated = std::any_of(attrs.input_dilation.begin(), attrs.input_dilation.end(),
                                   [](int64_t step) { return step > 1; });
  border.spare = (word - channels % word) % word;
  if (channels < 3 || attrs.feature_groups > 1 || attrs.batch_groups > 1 || dilated ||
      weights.element_count().constant() / channels * border.spare > kMaxSpareBytes) {
    return std::nullopt;
  }
  border.weights.high[feature] = Dim(border.spare);
  border.channels.high[static_cast<size_t>(attrs.input_feature)] = Dim(border.spare);
  border.input = border.channels;
  for (size_t d = 0; d < attrs.input_spatial.size(); ++d) {
    const auto axis = static_cast<size_t>(attrs.input_spatial[d]);
    border.input.low[axis] = std::exchange(attrs.pad_low[d], Dim(0));
    border.input.high[axis] = std::exchange(attrs.pad_high[d], Dim(0));
  }
  border.rest = attrs;
  return border;
}

}  // namespace backcast
