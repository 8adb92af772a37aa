#include "passes/graph/contraction_axes.h"

#include <algorithm>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

std::map<int64_t, int64_t> axes_of_dot(const Node& dot, size_t side, int64_t rank) {
  const DotGeneralAttrs& attrs = dot.attrs.as<DotGeneralAttrs>();
  const Ints& batch = side == 0 ? attrs.lhs_batch : attrs.rhs_batch;
  const Ints& contract = side == 0 ? attrs.lhs_contract : attrs.rhs_contract;
  const int64_t taken = static_cast<int64_t>(batch.size() + contract.size());
  // Where the operand's free dimensions begin in the result.
  int64_t next =
      side == 0 ? static_cast<int64_t>(batch.size()) : dot.type.tensor().rank() - (rank - taken);
  std::map<int64_t, int64_t> in_result;
  for (int64_t d = 0; d < rank; ++d) {
    const auto at = std::find(batch.begin(), batch.end(), d);
    if (at != batch.end()) {
      in_result[d] = at - batch.begin();
    } else if (std::find(contract.begin(), contract.end(), d) == contract.end()) {
      in_result[d] = next++;
    }
  }
  return in_result;
}

/// Channels of an image and of a result that has one for each group.
struct Channels {
  int64_t operand, result;  // dimensions
  int64_t count;
};

std::optional<Channels> depthwise_channels(const Node& contraction, size_t side) {
  if (contraction.op != &ops::conv || side != 0) return std::nullopt;
  const ConvAttrs& attrs = contraction.attrs.as<ConvAttrs>();
  const Dim& results = contraction.type.tensor().shape[size_t(attrs.output_feature)];
  if (attrs.batch_groups > 1 || results != Dim(attrs.feature_groups)) return std::nullopt;
  return Channels{attrs.input_feature, attrs.output_feature, attrs.feature_groups};
}

}  // namespace

bool is_contraction(const Node& node) {
  return node.op == &ops::dot_general || node.op == &ops::conv;
}

std::map<int64_t, int64_t> axes_in_result(const Node& contraction, size_t side, int64_t rank) {
  if (contraction.op == &ops::dot_general) return axes_of_dot(contraction, side, rank);
  if (contraction.op != &ops::conv) return {};
  const ConvAttrs& attrs = contraction.attrs.as<ConvAttrs>();
  if (side == 1) return {{attrs.kernel_output, attrs.output_feature}};
  if (attrs.batch_groups > 1) return {};
  return {{attrs.input_batch, attrs.output_batch}};
}

std::optional<ResultSpread> spread_over_result(const Node& contraction, size_t side, int64_t rank,
                                               const Shape& small, const Ints& dims) {
  const std::map<int64_t, int64_t> in_result = axes_in_result(contraction, side, rank);
  const std::optional<Channels> depthwise = depthwise_channels(contraction, side);
  ResultSpread result{{}, {contraction.type.tensor().shape, {}}};
  for (size_t i = 0; i < dims.size(); ++i) {
    if (small[i] == Dim(1)) continue;
    const auto found = in_result.find(dims[i]);
    // As many channels as groups: each is summed up on its own.
    const bool is_channel =
        depthwise && dims[i] == depthwise->operand && small[i] == Dim(depthwise->count);
    if (found == in_result.end() && !is_channel) return std::nullopt;
    result.kept.shape.push_back(small[i]);
    result.spread.dims.push_back(is_channel ? depthwise->result : found->second);
  }
  if (!std::is_sorted(result.spread.dims.begin(), result.spread.dims.end())) return std::nullopt;
  return result;
}

std::optional<ContractedSums> contracted_sums(const Node& contraction, const Literal& weights) {
  const std::vector<int64_t>& extents = weights.shape();
  const std::map<int64_t, int64_t> in_result =
      axes_in_result(contraction, 1, static_cast<int64_t>(extents.size()));
  std::vector<int64_t> shape;
  int64_t count = 1;
  BroadcastAttrs spread{contraction.type.tensor().shape, {}};
  for (const auto& [d, axis] : in_result) {
    shape.push_back(extents[static_cast<size_t>(d)]);
    count *= shape.back();
    spread.dims.push_back(axis);
  }
  if (!std::is_sorted(spread.dims.begin(), spread.dims.end())) return std::nullopt;
  std::vector<double> sums(static_cast<size_t>(count));
  for (int64_t i = 0; i < weights.element_count(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      if (!in_result.contains(static_cast<int64_t>(d))) continue;
      at += step * (rest % extents[d]);
      step *= extents[d];
    }
    sums[static_cast<size_t>(at)] += weights.as_double(i);
  }
  return ContractedSums{Literal::from_doubles(ElementType::i32, shape, sums), spread};
}

}  // namespace backcast
