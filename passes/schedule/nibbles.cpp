#include "passes/schedule/nibbles.h"

#include <algorithm>

#include "ir/loop/visit.h"

namespace backcast {

using loop::Expr;
using loop::ExprKind;

bool fits_nibbles(const Literal& values) {
  const bool is_signed = values.element() == ElementType::i8;
  if (!is_signed && values.element() != ElementType::u8) return false;
  const int low = is_signed ? -8 : 0, high = is_signed ? 7 : 15;
  return std::ranges::all_of(values.bytes(), [&](std::byte byte) {
    const int value = is_signed ? static_cast<int>(static_cast<int8_t>(byte))
                                : static_cast<int>(static_cast<uint8_t>(byte));
    return value >= low && value <= high;
  });
}

bool may_hold_nibbles(const NestSchedule& schedule, const Packing& packing, const Literal& values) {
  return !packing.at_run_time && !packing.is_shared && schedule.split_axis.empty() &&
         schedule.taken.axes.empty() && fits_nibbles(values);
}

Expr with_nibbles(const NestSchedule& schedule, const Expr& value) {
  const auto is_held = [&](const Expr& e) {
    const auto found =
        e->kind == ExprKind::access ? schedule.packed.find(e->name) : schedule.packed.end();
    return found != schedule.packed.end() && found->second.holds_nibbles;
  };
  // Conversions are of the word itself.
  return loop::rewrite(value, [&](const Expr& e) -> Expr {
    if (is_held(e) && e.type().scalar != loop::Scalar::i32) {
      return loop::cast(e.type(), loop::access(e->name, loop::Scalar::i32, e->args));
    }
    const bool twice = e->kind == ExprKind::cast && e->args[0]->kind == ExprKind::cast;
    const bool of_word = twice && is_held(e->args[0]->args[0]);
    return of_word ? loop::cast(e.type(), e->args[0]->args[0]) : e;
  });
}

Expr half_of(const Expr& bytes, bool high) {
  const loop::Type word = loop::Type{loop::Scalar::i32}.with_lanes(bytes.type().lanes);
  const auto all = [&](int64_t value) {
    const Expr one = loop::int_constant(loop::Type{loop::Scalar::i32}, value);
    return word.lanes > 1 ? loop::broadcast(one, word.lanes) : one;
  };
  const Expr wide = loop::cast(word, bytes);
  if (high) return loop::binary(loop::Op::shr, wide, all(4));
  if (bytes.type().scalar == loop::Scalar::u8) {
    return loop::binary(loop::Op::bit_and, wide, all(15));
  }
  return loop::binary(loop::Op::shr, loop::binary(loop::Op::shl, wide, all(28)), all(28));
}

}  // namespace backcast
