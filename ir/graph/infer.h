// The one place where a node's type is inferred, for builder, verifier and parser.
#pragma once

#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// The type of `op` on operands of these types. CompileError (without location) when the number or
/// the types of the operands or the attributes do not fit. Not for parameters.
Type infer_type(const Module& module, const OpDef& op, const std::vector<Type>& operands,
                const Attrs& attrs);

}  // namespace backcast
