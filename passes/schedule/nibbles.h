// Constants whose values fit in 4 bits, two to a byte: in the packed form of an operand a byte
// holds an element of a register in its low half, and in its high half that of the register half a
// row further, so that one load serves both.
#pragma once

#include "ir/graph/literal.h"
#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// Whether these are bytes whose values fit in 4 bits.
bool fits_nibbles(const Literal& values);

/// Whether an operand whose packed form `packing` describes can be held so.
bool may_hold_nibbles(const NestSchedule& schedule, const Packing& packing, const Literal& values);

/// `value` with operands that are held so read as i32.
loop::Expr with_nibbles(const NestSchedule& schedule, const loop::Expr& value);

/// The low or high half of bytes, with its sign if they have one, as i32.
loop::Expr half_of(const loop::Expr& bytes, bool high);

}  // namespace backcast
