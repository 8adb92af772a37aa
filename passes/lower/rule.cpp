// The tools that lowering rules share.
#include "passes/lower/rule.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace backcast {

using loop::Expr;
using loop::Op;
using loop::Scalar;

std::vector<loop::Axis> KernelBuilder::axes(const Shape& shape, const std::string& letter) {
  std::vector<loop::Axis> result;
  for (size_t i = 0; i < shape.size(); ++i) {
    result.push_back({fmt::format("{}{}", letter, i), loop::expr_of(shape[i])});
  }
  return result;
}

std::vector<Expr> KernelBuilder::vars(const std::vector<loop::Axis>& axes) {
  std::vector<Expr> result;
  for (const loop::Axis& axis : axes) result.push_back(loop::var(axis.name));
  return result;
}

Expr KernelBuilder::read(int64_t i, std::vector<Expr> indices) const {
  ElementType element = operand(i).element;
  Expr value = loop::access(fmt::format("a{}", i), loop::scalar_of(element), std::move(indices));
  loop::Type type = compute_type(element);
  return value.type() == type ? value : loop::cast(type, value);
}

Expr KernelBuilder::stored(Expr value, int64_t r) const {
  Scalar scalar = loop::scalar_of(result(r).element);
  return value.type().scalar == scalar ? value : loop::cast({scalar, 1}, value);
}

void KernelBuilder::map(const std::function<Expr(const std::vector<Expr>&)>& f) {
  loop::Definition definition;
  definition.axes = axes(result().shape);
  std::vector<Expr> indices = vars(definition.axes);
  definition.outputs = {{"out0", indices, stored(f(indices))}};
  define(std::move(definition));
}

void KernelBuilder::define(loop::Definition definition) {
  statements_.push_back(loop::define(std::move(definition)));
}

void KernelBuilder::begin_with(int64_t i) {
  map([&](const std::vector<Expr>& at) { return read(i, at); });
  begins_with_ = i;
}

void KernelBuilder::view(int64_t i, Dim offset) {
  view_of_ = i;
  view_offset_ = std::move(offset);
}

loop::Type compute_type(ElementType element) {
  if (is_half(element)) return {Scalar::f32, 1};
  return {loop::scalar_of(element), 1};
}

namespace {

template <class T>
Expr limit(loop::Type type, bool low) {
  using L = std::numeric_limits<T>;
  return loop::int_constant(type, static_cast<int64_t>(low ? L::min() : L::max()));
}

Expr extreme(loop::Type type, bool low) {
  switch (type.scalar) {
    case Scalar::boolean:
      return loop::int_constant(type, low ? 0 : 1);
    case Scalar::i8:
      return limit<int8_t>(type, low);
    case Scalar::i16:
      return limit<int16_t>(type, low);
    case Scalar::i32:
      return limit<int32_t>(type, low);
    case Scalar::i64:
      return limit<int64_t>(type, low);
    case Scalar::u8:
      return limit<uint8_t>(type, low);
    case Scalar::u16:
      return limit<uint16_t>(type, low);
    case Scalar::u32:
      return limit<uint32_t>(type, low);
    case Scalar::u64:
      return limit<uint64_t>(type, low);
    default: {
      double infinity = std::numeric_limits<double>::infinity();
      return loop::float_constant(type, low ? -infinity : infinity);
    }
  }
}

}  // namespace

Expr lowest(loop::Type type) { return extreme(type, true); }
Expr highest(loop::Type type) { return extreme(type, false); }

Expr math_call(const std::string& function, std::vector<Expr> args) {
  loop::Type type = args[0].type();
  return loop::call(fmt::format("{}.{}", function, loop::name_of(type.scalar)), type,
                    std::move(args));
}

Expr max_nan(Expr a, Expr b) {
  if (!loop::is_float(a.type().scalar)) return loop::max(a, b);
  // max(a, b) gives b when either is NaN: only a NaN in a has to be put back.
  return loop::select(loop::unary(Op::is_nan, a), a, loop::max(a, b));
}

Expr min_nan(Expr a, Expr b) {
  if (!loop::is_float(a.type().scalar)) return loop::min(a, b);
  return loop::select(loop::unary(Op::is_nan, a), a, loop::min(a, b));
}

namespace {

/// Float → integer: saturating, NaN gives 0, truncating toward zero.
Expr convert_to_integer(Expr value, loop::Type to) {
  loop::Type from = value.type();
  int bits = 8 * static_cast<int>(byte_size(loop::element_of(to.scalar)));
  bool is_signed_target = is_signed(loop::element_of(to.scalar));
  double above = std::ldexp(1.0, is_signed_target ? bits - 1 : bits);  // first value too large
  double below = is_signed_target ? -above : 0.0;
  if (bits <= 16) {  // both ends are floating-point numbers
    const Expr top = loop::float_constant(from, above - 1),
               bottom = loop::float_constant(from, below);
    const Expr number =
        loop::select(loop::unary(Op::is_nan, value), loop::float_constant(from, 0.0), value);
    return loop::cast(to, loop::min(loop::max(number, bottom), top));
  }
  Expr too_large = loop::binary(Op::ge, value, loop::float_constant(from, above));
  Expr too_small = loop::binary(Op::le, value, loop::float_constant(from, below));
  Expr out = loop::binary(Op::bit_or, loop::binary(Op::bit_or, too_large, too_small),
                          loop::unary(Op::is_nan, value));
  Expr inside = loop::cast(to, loop::select(out, loop::float_constant(from, 0.0), value));
  Expr result = loop::select(too_large, highest(to), inside);
  return loop::select(too_small, lowest(to), result);
}

}  // namespace

Expr convert(Expr value, Scalar to) {
  Scalar from = value.type().scalar;
  loop::Type type{to, value.type().lanes};
  if (from == to) return value;
  if (to == Scalar::boolean) return loop::binary(Op::ne, value, loop::constant(value.type(), 0));
  if (loop::is_float(from) && loop::is_integer(to)) return convert_to_integer(value, type);
  return loop::cast(type, value);
}

}  // namespace backcast
