// Lowering of the elementwise operators: out[i…] = f(a0[i…], a1[i…]).
#include <algorithm>
#include <iterator>

#include "ir/ops/ops.h"
#include "passes/lower/definition_cost.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::Op;
using loop::Scalar;
using Indices = std::vector<Expr>;

Expr zero(const Expr& like) { return loop::constant(like.type(), 0); }
Expr one(const Expr& like) { return loop::constant(like.type(), 1); }
bool is_float(const Expr& e) { return loop::is_float(e.type().scalar); }

template <Op op>
void lower_unary(KernelBuilder& k) {
  k.map([&](const Indices& i) { return loop::unary(op, k.read(0, i)); });
}

template <Op op>
void lower_binary(KernelBuilder& k) {
  k.map([&](const Indices& i) { return loop::binary(op, k.read(0, i), k.read(1, i)); });
}

/// A float function of the math library.
template <const char* const& function>
void lower_math(KernelBuilder& k) {
  k.map([&](const Indices& i) { return math_call(function, {k.read(0, i)}); });
}

#define BACKCAST_MATH_RULE(name)      \
  const char* const k_##name = #name; \
  void lower_##name(KernelBuilder& k) { lower_math<k_##name>(k); }
BACKCAST_MATH_RULE(exp)
BACKCAST_MATH_RULE(log)
BACKCAST_MATH_RULE(sin)
BACKCAST_MATH_RULE(cos)
BACKCAST_MATH_RULE(tan)
BACKCAST_MATH_RULE(asin)
BACKCAST_MATH_RULE(acos)
BACKCAST_MATH_RULE(atan)
BACKCAST_MATH_RULE(sinh)
BACKCAST_MATH_RULE(cosh)
BACKCAST_MATH_RULE(asinh)
BACKCAST_MATH_RULE(acosh)
BACKCAST_MATH_RULE(atanh)
BACKCAST_MATH_RULE(tanh)
BACKCAST_MATH_RULE(sigmoid)
BACKCAST_MATH_RULE(erf)
#undef BACKCAST_MATH_RULE

/// floor, ceil and round_even leave integers as they are.
template <Op op>
void lower_rounding(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr x = k.read(0, i);
    return is_float(x) ? loop::unary(op, x) : x;
  });
}

void lower_abs(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr x = k.read(0, i);
    bool has_sign = is_float(x) || is_signed(loop::element_of(x.type().scalar));
    return has_sign ? loop::unary(Op::abs, x) : x;
  });
}

void lower_sign(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr x = k.read(0, i);
    Expr positive = loop::binary(Op::gt, x, zero(x));
    bool has_sign = is_float(x) || is_signed(loop::element_of(x.type().scalar));
    if (!has_sign) return loop::select(positive, one(x), zero(x));
    Expr negative = loop::binary(Op::lt, x, zero(x));
    // Zero and NaN stay what they are.
    Expr sign = loop::select(negative, loop::constant(x.type(), -1), x);
    return loop::select(positive, one(x), sign);
  });
}

/// max(0, x) gives x when x is NaN, as it should.
void lower_relu(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr x = k.read(0, i);
    return loop::max(zero(x), x);
  });
}

void lower_clamp(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    const auto bound = [&](int64_t operand) {
      return k.read(operand, k.operand(operand).rank() == 0 ? Indices{} : i);
    };
    return loop::min(bound(2), loop::max(bound(1), k.read(0, i)));
  });
}

void lower_bit_not(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr x = k.read(0, i);
    if (x.type().scalar == Scalar::boolean) return loop::binary(Op::bit_xor, x, one(x));
    return loop::unary(Op::bit_not, x);
  });
}

void lower_is_nan(KernelBuilder& k) { lower_unary<Op::is_nan>(k); }

void lower_is_inf(KernelBuilder& k) {
  const IsInfAttrs& attrs = k.attrs<IsInfAttrs>();
  k.map([&](const Indices& i) {
    Expr x = k.read(0, i);
    Expr no = loop::int_constant({Scalar::boolean, 1}, 0);
    Expr up = attrs.positive ? loop::binary(Op::eq, x, highest(x.type())) : no;
    Expr down = attrs.negative ? loop::binary(Op::eq, x, lowest(x.type())) : no;
    return loop::binary(Op::bit_or, up, down);
  });
}

void lower_cast(KernelBuilder& k) {
  const CastAttrs& attrs = k.attrs<CastAttrs>();
  const loop::Scalar to = loop::scalar_of(attrs.to);
  const bool to_integer = loop::is_integer(to) && is_float(k.operand(0).element);
  k.map([&](const Indices& i) {
    // From f64 to a storage type in one rounding: convert() sees the stored type itself.
    Expr x = k.read(0, i);
    if (to_integer && attrs.rounding == Rounding::nearest_even) {
      const bool shifts = x.type().scalar == loop::Scalar::f32 && to == loop::Scalar::i32 &&
                          attrs.within > 0 && attrs.within <= 0x1p22;
      if (shifts) return loop::unary(Op::nearest, x);
      x = loop::unary(Op::round_even, x);
    }
    return convert(x, to);
  });
}

/// Integer division truncates; a zero divisor gives 0 and the one overflowing quotient wraps,
/// where C leaves both undefined.
Expr safe_divisor(const Expr& b) {
  return loop::select(loop::binary(Op::eq, b, zero(b)), one(b), b);
}

Expr integer_div(const Expr& a, const Expr& b) {
  Expr is_zero = loop::binary(Op::eq, b, zero(b));
  if (!is_signed(loop::element_of(b.type().scalar))) {
    return loop::select(is_zero, zero(a), loop::binary(Op::div, a, safe_divisor(b)));
  }
  Expr minus_one = loop::binary(Op::eq, b, loop::constant(b.type(), -1));
  Expr safe = loop::select(minus_one, one(b), safe_divisor(b));
  Expr quotient = loop::binary(Op::div, a, safe);
  quotient = loop::select(minus_one, loop::unary(Op::neg, a), quotient);
  return loop::select(is_zero, zero(a), quotient);
}

Expr integer_rem(const Expr& a, const Expr& b) {
  Expr safe = safe_divisor(b);
  if (is_signed(loop::element_of(b.type().scalar))) {
    safe = loop::select(loop::binary(Op::eq, b, loop::constant(b.type(), -1)), one(b), safe);
  }
  Expr remainder = loop::binary(Op::rem, a, safe);
  return loop::select(loop::binary(Op::eq, b, zero(b)), zero(a), remainder);
}

void lower_div(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr a = k.read(0, i), b = k.read(1, i);
    return is_float(a) ? loop::binary(Op::div, a, b) : integer_div(a, b);
  });
}

void lower_rem(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr a = k.read(0, i), b = k.read(1, i);
    return is_float(a) ? math_call("fmod", {a, b}) : integer_rem(a, b);
  });
}

/// The remainder with the divisor's sign.
void lower_mod(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr a = k.read(0, i), b = k.read(1, i);
    Expr r = is_float(a) ? math_call("fmod", {a, b}) : integer_rem(a, b);
    bool has_sign = is_float(a) || is_signed(loop::element_of(a.type().scalar));
    if (!has_sign) return r;
    Expr signs_differ =
        loop::binary(Op::ne, loop::binary(Op::lt, r, zero(r)), loop::binary(Op::lt, b, zero(b)));
    Expr adjust = loop::binary(Op::bit_and, signs_differ, loop::binary(Op::ne, r, zero(r)));
    return loop::select(adjust, loop::binary(Op::add, r, b), r);
  });
}

/// Square and multiply over the low six bits of the exponent; a negative one gives 0 (±1 aside).
Expr integer_pow(const Expr& base, const Expr& exponent) {
  Expr result = one(base), power = base;
  for (int bit = 0; bit < 6; ++bit) {
    Expr mask = loop::constant(exponent.type(), static_cast<double>(1 << bit));
    Expr set = loop::binary(Op::ne, loop::binary(Op::bit_and, exponent, mask), zero(exponent));
    result = loop::select(set, loop::binary(Op::mul, result, power), result);
    if (bit < 5) power = loop::binary(Op::mul, power, power);
  }
  if (!is_signed(loop::element_of(exponent.type().scalar))) return result;
  Expr negative = loop::binary(Op::lt, exponent, zero(exponent));
  Expr unit = loop::binary(Op::eq, base, one(base));
  if (is_signed(loop::element_of(base.type().scalar))) {
    Expr minus = loop::binary(Op::eq, base, loop::constant(base.type(), -1));
    unit = loop::binary(Op::bit_or, unit, minus);
  }
  return loop::select(
      loop::binary(Op::bit_and, negative,
                   loop::binary(Op::eq, unit, loop::int_constant({Scalar::boolean, 1}, 0))),
      zero(base), result);
}

void lower_pow(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr a = k.read(0, i), b = k.read(1, i);
    return is_float(a) ? math_call("pow", {a, b}) : integer_pow(a, b);
  });
}

void lower_min(KernelBuilder& k) {
  k.map([&](const Indices& i) { return min_nan(k.read(0, i), k.read(1, i)); });
}
void lower_max(KernelBuilder& k) {
  k.map([&](const Indices& i) { return max_nan(k.read(0, i), k.read(1, i)); });
}

/// Shifts by the width or more give 0.
template <Op op>
void lower_shift(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Expr a = k.read(0, i), b = k.read(1, i);
    double width = 8.0 * static_cast<double>(byte_size(k.operand(0).element));
    Expr fits = loop::binary(Op::lt, b, loop::constant(b.type(), width));
    Expr amount = loop::select(fits, b, zero(b));
    return loop::select(fits, loop::binary(op, a, amount), zero(a));
  });
}

void lower_compare(KernelBuilder& k) {
  static constexpr Op kOps[] = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};
  Op op = kOps[static_cast<size_t>(k.attrs<CompareAttrs>().direction)];
  k.map([&](const Indices& i) { return loop::binary(op, k.read(0, i), k.read(1, i)); });
}

void lower_select(KernelBuilder& k) {
  k.map([&](const Indices& i) { return loop::select(k.read(0, i), k.read(1, i), k.read(2, i)); });
}

const LowerRow kRows[] = {
    {&ops::neg, lower_unary<Op::neg>},
    {&ops::abs, lower_abs},
    {&ops::sign, lower_sign},
    {&ops::sqrt, lower_unary<Op::sqrt>},
    {&ops::exp, lower_exp},
    {&ops::log, lower_log},
    {&ops::sin, lower_sin},
    {&ops::cos, lower_cos},
    {&ops::tan, lower_tan},
    {&ops::asin, lower_asin},
    {&ops::acos, lower_acos},
    {&ops::atan, lower_atan},
    {&ops::sinh, lower_sinh},
    {&ops::cosh, lower_cosh},
    {&ops::asinh, lower_asinh},
    {&ops::acosh, lower_acosh},
    {&ops::atanh, lower_atanh},
    {&ops::tanh, lower_tanh},
    {&ops::sigmoid, lower_sigmoid},
    {&ops::erf, lower_erf},
    {&ops::relu, lower_relu},
    {&ops::floor, lower_rounding<Op::floor>},
    {&ops::ceil, lower_rounding<Op::ceil>},
    {&ops::round_even, lower_rounding<Op::round_even>},
    {&ops::bit_not, lower_bit_not},
    {&ops::is_nan, lower_is_nan},
    {&ops::is_inf, lower_is_inf},
    {&ops::cast, lower_cast},
    {&ops::add, lower_binary<Op::add>},
    {&ops::sub, lower_binary<Op::sub>},
    {&ops::mul, lower_binary<Op::mul>},
    {&ops::div, lower_div},
    {&ops::mod, lower_mod},
    {&ops::rem, lower_rem},
    {&ops::pow, lower_pow},
    {&ops::min, lower_min},
    {&ops::max, lower_max},
    {&ops::bit_and, lower_binary<Op::bit_and>},
    {&ops::bit_or, lower_binary<Op::bit_or>},
    {&ops::bit_xor, lower_binary<Op::bit_xor>},
    {&ops::shift_left, lower_shift<Op::shl>},
    {&ops::shift_right, lower_shift<Op::shr>},
    {&ops::compare, lower_compare},
    {&ops::select, lower_select},
    {&ops::clamp, lower_clamp},
};

}  // namespace

std::span<const LowerRow> elementwise_lowering() { return kRows; }

int64_t elementwise_cost(const Function& function, const Node& node) {
  std::vector<TensorType> operands;
  for (const ValueId operand : node.operands) operands.push_back(function.type(operand).tensor());
  KernelBuilder k(node, std::move(operands), {node.type.tensor()});
  find_lower_rule (*node.op)(k);
  int64_t total = 0;
  for (const loop::Stmt& stmt : k.statements()) total += cost(*stmt->definition).total();
  return total;
}

bool is_elementwise(const OpDef& op) {
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [&](const LowerRow& row) { return row.op == &op; });
}

}  // namespace backcast
