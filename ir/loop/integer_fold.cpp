// Integer arithmetic of the loop IR on constants, exactly as kernels compute it.
#include "ir/loop/integer_fold.h"

#include <algorithm>

namespace backcast::loop {

int bit_width(Scalar scalar) {
  switch (scalar) {
    case Scalar::boolean:
    case Scalar::i8:
    case Scalar::u8:
      return 8;
    case Scalar::i16:
    case Scalar::u16:
    case Scalar::f16:
    case Scalar::bf16:
      return 16;
    case Scalar::i32:
    case Scalar::u32:
    case Scalar::f32:
      return 32;
    default:
      return 64;
  }
}

bool is_signed(Scalar scalar) {
  return scalar == Scalar::index ||
         (scalar != Scalar::boolean && backcast::is_signed(element_of(scalar)));
}

int64_t wrap(Scalar scalar, int64_t value) {
  if (scalar == Scalar::boolean) return value != 0;
  const int unused = 64 - bit_width(scalar);
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return is_signed(scalar) ? static_cast<int64_t>(high) >> unused
                           : static_cast<int64_t>(high >> unused);
}

int64_t byte_pair(int64_t word, bool odd) {
  const int64_t from = odd ? 8 : 0;
  const int64_t low = wrap(Scalar::i8, word >> from), high = wrap(Scalar::i8, word >> (16 + from));
  return wrap(Scalar::i32, wrap(Scalar::u16, low) + (high << 16));
}

int64_t floor_div_int(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t floor_mod_int(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

namespace {

bool less(Scalar scalar, int64_t a, int64_t b) {
  return is_signed(scalar) ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
}

std::optional<int64_t> divide(Op op, Scalar scalar, int64_t a, int64_t b) {
  if (b == 0) return {};
  if (op == Op::floor_div || op == Op::floor_mod) {
    if (!is_signed(scalar) || b < 0) return {};
    return op == Op::floor_div ? floor_div_int(a, b) : floor_mod_int(a, b);
  }
  const uint64_t ua = static_cast<uint64_t>(a);
  const uint64_t ub = static_cast<uint64_t>(b);
  if (!is_signed(scalar)) return static_cast<int64_t>(op == Op::div ? ua / ub : ua % ub);
  if (b == -1) return op == Op::div ? wrap(scalar, static_cast<int64_t>(0 - ua)) : 0;
  return op == Op::div ? a / b : a % b;
}

int64_t multiply_high(Scalar scalar, int64_t a, int64_t b) {
  const int width = bit_width(scalar);
  if (is_signed(scalar)) {
    return static_cast<int64_t>((static_cast<__int128>(a) * b) >> width);
  }
  const unsigned __int128 product =
      static_cast<unsigned __int128>(static_cast<uint64_t>(a)) * static_cast<uint64_t>(b);
  return static_cast<int64_t>(static_cast<uint64_t>(product >> width));
}

int64_t pair_product(int64_t a, int64_t b) {
  const int64_t low = wrap(Scalar::i16, a) * wrap(Scalar::i16, b);
  return wrap(Scalar::i32, low + (a >> 16) * (b >> 16));
}

int64_t byte_product(Scalar of_a, int64_t a, int64_t b) {
  int64_t sum = 0;
  for (int bits = 0; bits < 32; bits += 8) {
    sum += wrap(of_a, a >> bits) * wrap(Scalar::i8, b >> bits);
  }
  return sum;
}

std::optional<int64_t> shift(Op op, Scalar scalar, int64_t a, int64_t b) {
  if (b < 0 || b >= bit_width(scalar)) return {};
  if (op == Op::shl) return wrap(scalar, static_cast<int64_t>(static_cast<uint64_t>(a) << b));
  return is_signed(scalar) ? a >> b : static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
}

}  // namespace

std::optional<int64_t> fold_integer(Op op, Scalar scalar, int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a);
  const uint64_t ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::eq:
      return a == b;
    case Op::ne:
      return a != b;
    case Op::lt:
      return less(scalar, a, b);
    case Op::le:
      return !less(scalar, b, a);
    case Op::gt:
      return less(scalar, b, a);
    case Op::ge:
      return !less(scalar, a, b);
    case Op::min:
      return less(scalar, a, b) ? a : b;
    case Op::max:
      return less(scalar, b, a) ? a : b;
    case Op::bit_and:
      return a & b;
    case Op::bit_or:
      return a | b;
    case Op::bit_xor:
      return a ^ b;
    default:
      break;
  }
  if (scalar == Scalar::boolean) return {};
  switch (op) {
    case Op::add:
      return wrap(scalar, static_cast<int64_t>(ua + ub));
    case Op::sub:
      return wrap(scalar, static_cast<int64_t>(ua - ub));
    case Op::mul:
      return wrap(scalar, static_cast<int64_t>(ua * ub));
    case Op::div:
    case Op::rem:
    case Op::floor_div:
    case Op::floor_mod:
      return divide(op, scalar, a, b);
    case Op::mul_high:
      return multiply_high(scalar, a, b);
    case Op::dot2:
      return pair_product(a, b);
    case Op::dot4:
      return byte_product(Scalar::u8, a, b);
    case Op::dot4_signed:
      return byte_product(Scalar::i8, a, b);
    case Op::shl:
    case Op::shr:
      return shift(op, scalar, a, b);
    default:
      return {};
  }
}

}  // namespace backcast::loop
