// Integer arithmetic of the loop IR on constants. Internal to ir/loop.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/loop/expr.h"

namespace backcast::loop {

/// Bits of a value in registers: bool 8, index 64.
int bit_width(Scalar scalar);
/// Floats are signed, bool is not.
bool is_signed(Scalar scalar);
/// A value as its type stores it: wrapped, sign- or zero-extended to 64 bits; bool: 0 or 1.
int64_t wrap(Scalar scalar, int64_t value);
/// op(a, b) in a non-float type; nothing for a division by zero, a shift by >= width, an op that
/// the type does not have.
std::optional<int64_t> fold_integer(Op op, Scalar scalar, int64_t a, int64_t b);
/// odd_bytes or even_bytes of a word.
int64_t byte_pair(int64_t word, bool odd);

int64_t floor_div_int(int64_t a, int64_t b);  // b > 0
int64_t floor_mod_int(int64_t a, int64_t b);  // b > 0

/// The same node over other arguments, made by the folding constructors; its lanes follow the
/// arguments'.
Expr with_args(const Expr& e, std::vector<Expr> args);

}  // namespace backcast::loop
