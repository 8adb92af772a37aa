#include "ir/loop/combine.h"

namespace backcast::loop {

Expr combined(Combine combine, const Expr& old, const Expr& value) {
  const auto extreme = [&](Op op) {
    Expr next = binary(op, old, value);  // a NaN value stays, a NaN before would not
    return is_float(old.type().scalar) ? select(unary(Op::is_nan, old), old, next) : next;
  };
  switch (combine) {
    case Combine::sum:
      // Integers term by term: each may be a product that one instruction adds.
      if (is_integer(value.type().scalar) && value->kind == ExprKind::binary &&
          value->op == Op::add) {
        return combined(combine, combined(combine, old, value->args[0]), value->args[1]);
      }
      return binary(Op::add, old, value);
    case Combine::prod:
      return binary(Op::mul, old, value);
    case Combine::max:
      return extreme(Op::max);
    case Combine::min:
      return extreme(Op::min);
    case Combine::bit_and:
      return binary(Op::bit_and, old, value);
    case Combine::bit_or:
      return binary(Op::bit_or, old, value);
    case Combine::general:
      return value;
  }
  __builtin_unreachable();
}

}  // namespace backcast::loop
