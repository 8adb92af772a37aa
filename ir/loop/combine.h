// How accumulators of definitions take values in; the interpreter and schedules share it.
#pragma once

#include "ir/loop/stmt.h"

namespace backcast::loop {

/// The accumulator's next value. Unlike Op::max and Op::min, `max` and `min` of floats keep a NaN
/// wherever it comes from.
Expr combined(Combine combine, const Expr& old, const Expr& value);

}  // namespace backcast::loop
