// Declarations of every core operator: `ops::add` is the OpDef defined in ir/ops/add.cpp (or in the
// file of its family).
#pragma once

#include "ir/graph/module.h"
#include "ir/ops/op_attrs.h"

namespace backcast::ops {

#define BACKCAST_OP(name) extern const OpDef name;
#include "ir/ops/ops.def"
#undef BACKCAST_OP

}  // namespace backcast::ops
