// Two channels at once in the transforms of bytes: hi·2^16 + lo, an integer for which additions and
// subtractions are those of both, whatever their signs; no instruction for halves is needed. Sums
// of four bytes stay far from 16 bits. Internal to the pass `winograd`.
#pragma once

#include "ir/loop/expr.h"

namespace backcast {

inline loop::Expr word_constant(int64_t value) {
  return loop::int_constant({loop::Scalar::i32}, value);
}

/// Bytes 0 and 2 of a word (`odd`: 1 and 3) as such a number.
inline loop::Expr two_of_bytes(const loop::Expr& word, bool odd, bool are_signed) {
  using loop::Op;
  // Signed bytes are unsigned ones less 128.
  loop::Expr bytes =
      are_signed ? loop::binary(Op::bit_xor, word, word_constant(int32_t(0x80808080))) : word;
  if (odd) bytes = loop::binary(Op::shr, bytes, word_constant(8));
  bytes = loop::binary(Op::bit_and, bytes, word_constant(0x00ff00ff));
  return are_signed ? bytes - word_constant(0x00800080) : bytes;
}

/// The number as a word of two halves: what `lo` has borrowed goes back to `hi`.
inline loop::Expr as_halves(const loop::Expr& both) {
  using loop::Op;
  const loop::Expr sign = loop::binary(Op::bit_and, both, word_constant(0x8000));
  return both + loop::binary(Op::shl, sign, word_constant(1));
}

}  // namespace backcast
