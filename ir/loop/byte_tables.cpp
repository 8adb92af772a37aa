#include "ir/loop/byte_tables.h"

namespace backcast::loop {

bool is_byte_table(const BufferParam& buffer) { return buffer.shape == Dims{Dim(kBytes)}; }

Expr byte_place(const ExprNode& read) {
  if (read.args.size() != 1 || read.args[0]->kind != ExprKind::cast) return {};
  const Expr& place = read.args[0]->args[0];
  return place.type().scalar == Scalar::u8 ? place : Expr();
}

bool looks_up_byte(const ExprNode& read) {
  const bool is_byte = is_integer(read.type.scalar) && byte_size(element_of(read.type.scalar)) == 1;
  return is_byte && static_cast<bool>(byte_place(read));
}

}  // namespace backcast::loop
