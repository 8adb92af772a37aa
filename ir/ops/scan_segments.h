// A scan cut into segments: an outer scan whose trips are scans. Its trajectory is the carries at
// the segments' beginnings; what lies between is computed again, segment by segment, backwards.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/gradient.h"
#include "ir/ops/op_attrs.h"

namespace backcast::ops {

/// Whether the attributes ask for segments and can have them: the length has to be constant.
bool has_segments(const ScanAttrs& attrs);

/// Emits the outer scan and what prepares its operands; gives the tuple that the scan itself would
/// (less its trajectory). `add` puts the function of one segment into the module.
ValueId emit_segments(Builder& builder, const std::vector<ValueId>& operands,
                      const ScanAttrs& attrs, const std::function<std::string(Function)>& add);

std::vector<Adjoint> gradient_of_segments(GradientContext& context);

}  // namespace backcast::ops
