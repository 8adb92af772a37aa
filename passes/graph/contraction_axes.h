// Where the dimensions of a contraction's operands are in its result.
#pragma once

#include <map>
#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/op_attrs.h"

namespace backcast {

bool is_contraction(const Node& node);

/// Dimensions of operand `side` (of rank `rank`) that the result has: operand's → result's. What is
/// contracted, and spatial dimensions of convolutions, are not in it. Empty for other operators.
std::map<int64_t, int64_t> axes_in_result(const Node& contraction, size_t side, int64_t rank);

/// Reshape and broadcast, in this order, of a small tensor to the result of a contraction.
struct ResultSpread {
  ReshapeAttrs kept;
  BroadcastAttrs spread;
};

/// A tensor of shape `small` that lies along dimensions `dims` of operand `side` (of rank `rank`),
/// along those of the result; nothing where it changes along one that the result does not have.
/// Channels of a depthwise convolution are those of its result.
std::optional<ResultSpread> spread_over_result(const Node& contraction, size_t side, int64_t rank,
                                               const Shape& small, const Ints& dims);

/// The sums of a constant second operand along what is contracted, and how they lie in the result.
struct ContractedSums {
  Literal values;  // i32
  BroadcastAttrs spread;
};

/// Nothing where the result has the dimensions in another order.
std::optional<ContractedSums> contracted_sums(const Node& contraction, const Literal& weights);

}  // namespace backcast
