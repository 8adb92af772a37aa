// Values that are centred: x - mean(x), as normalisations subtract it, sums to zero.
#pragma once

#include <optional>

#include "ir/graph/module.h"
#include "ir/ops/op_attrs.h"

namespace backcast {

/// The axes along which the sum of `node` is zero whatever its operands are: it is x minus the mean
/// of x along them, a sum of x times one over their length. Nothing for anything else.
std::optional<Ints> centred_along(const Function& function, const Node& node);

}  // namespace backcast
