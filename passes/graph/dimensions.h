// Lists of dimensions when some of those they count are taken out.
#pragma once

#include "ir/ops/op_attrs.h"

namespace backcast {

/// Those of `dims` that are not in `gone`, numbered as what is left of all dimensions then is.
Ints without(const Ints& dims, const Ints& gone);

}  // namespace backcast
