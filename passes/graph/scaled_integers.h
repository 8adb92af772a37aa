// Values that are integers times a constant scale, as DequantizeLinear gives them.
#pragma once

#include <optional>

#include "ir/graph/module.h"

namespace backcast {

/// Of at most 32 bits, and of which every value is an i32.
bool is_integer_type(const Type& type);

/// value = float(integer) · scale.
struct ScaledInteger {
  ValueId integer;
  std::optional<ValueId> scale;  // a broadcast of a constant, of the integer's shape; none: 1
};

std::optional<ScaledInteger> scaled_integer(const Function& function, ValueId id);

}  // namespace backcast
