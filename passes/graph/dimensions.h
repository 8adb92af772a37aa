// Lists of dimensions when some of those they count are taken out, joined or cut.
#pragma once

#include <optional>
#include <vector>

#include "ir/ops/op_attrs.h"

namespace backcast {

/// Those of `dims` that are not in `gone`, numbered as what is left of all dimensions then is.
Ints without(const Ints& dims, const Ints& gone);

/// Dimensions of a reshape's operand that become dimensions of its result, together.
struct DimensionGroup {
  std::vector<size_t> from, to;
};

/// The finest groups in order; nothing where extents do not tell.
std::optional<std::vector<DimensionGroup>> groups_of(const Shape& from, const Shape& to);

}  // namespace backcast
