// Construction of expressions, with the light folding that expr.h promises.
#include "ir/loop/expr.h"

#include <bit>

#include "ir/graph/error.h"
#include "ir/loop/integer_fold.h"

namespace backcast::loop {

std::string_view name_of(Scalar scalar) {
  return scalar == Scalar::index ? std::string_view("index") : name_of(element_of(scalar));
}

bool is_float(Scalar scalar) {
  return scalar != Scalar::index && backcast::is_float(element_of(scalar));
}
bool is_half(Scalar scalar) {
  return scalar != Scalar::index && backcast::is_half(element_of(scalar));
}
bool is_integer(Scalar scalar) { return !is_float(scalar) && scalar != Scalar::boolean; }

std::string Type::to_string() const {
  std::string text(name_of(scalar));
  return lanes == 1 ? text : text + "x" + std::to_string(lanes);
}

std::string_view name_of(Op op) {
  static constexpr std::string_view kNames[] = {
      "none",      "neg",        "abs",         "sqrt",      "floor",
      "ceil",      "round_even", "trunc",       "bit_not",   "is_nan",
      "nearest",   "even_bytes", "odd_bytes",   "lane_bits", "trailing_zeros",
      "add",       "sub",        "mul",         "div",       "rem",
      "floor_div", "floor_mod",  "min",         "max",       "bit_and",
      "bit_or",    "bit_xor",    "shl",         "shr",       "mul_high",
      "dot2",      "dot4",       "dot4_signed", "eq",        "ne",
      "lt",        "le",         "gt",          "ge"};
  static_assert(std::size(kNames) == static_cast<size_t>(Op::ge) + 1);
  return kNames[static_cast<size_t>(op)];
}

bool is_comparison(Op op) { return op >= Op::eq; }
Scalar lane_bits_scalar(int32_t lanes) {
  return lanes <= 8    ? Scalar::u8
         : lanes <= 16 ? Scalar::u16
         : lanes <= 32 ? Scalar::u32
                       : Scalar::u64;
}
bool is_word_product(Op op) { return op == Op::dot2 || op == Op::dot4 || op == Op::dot4_signed; }

Expr::Expr(int64_t value) : node_(index_constant(value).node_) {}
const Type& Expr::type() const {
  BC_CHECK(node_ != nullptr, "type of an empty expression");
  return node_->type;
}

namespace {

Expr make(ExprNode node) { return Expr(std::make_shared<const ExprNode>(std::move(node))); }

bool is_constant_node(const Expr& e) { return e->kind == ExprKind::constant; }

/// A scalar operand beside a vector one is broadcast.
void match_lanes(Expr& a, Expr& b) {
  if (a.type().lanes == 1 && b.type().lanes > 1) a = broadcast(a, b.type().lanes);
  if (b.type().lanes == 1 && a.type().lanes > 1) b = broadcast(b, a.type().lanes);
}

bool is_unary(Op op) { return op >= Op::neg && op <= Op::trailing_zeros; }

/// x + c, x * c, c last, constants collected; empty when there is nothing to fold.
Expr fold_index(Op op, const Expr& a, const Expr& b) {
  int64_t inner = 0;
  int64_t outer = 0;
  if (op != Op::add && op != Op::mul) return {};
  if (is_constant_node(a) && !is_constant_node(b)) return binary(op, b, a);
  if (!as_constant(b, outer) || a->kind != ExprKind::binary || a->op != op) return {};
  if (!as_constant(a->args[1], inner)) return {};
  return binary(op, a->args[0],
                int_constant(a.type(), *fold_integer(op, Scalar::index, inner, outer)));
}

/// x op constant.
Expr fold_right(Op op, const Expr& a, const Expr& b, int64_t value) {
  const Scalar scalar = a.type().scalar;
  const int64_t ones = wrap(scalar, -1);
  switch (op) {
    case Op::add:
    case Op::sub:
    case Op::shl:
    case Op::shr:
    case Op::bit_xor:
      return value == 0 ? a : Expr();
    case Op::bit_or:
      return value == 0 ? a : value == ones ? b : Expr();
    case Op::bit_and:
      return value == 0 ? b : value == ones ? a : Expr();
    case Op::mul:
      return value == 0 ? b : value == 1 ? a : Expr();
    case Op::dot2:
    case Op::dot4:
    case Op::dot4_signed:
      return value == 0 ? b : Expr();
    case Op::div:
    case Op::floor_div:
      return value == 1 ? a : Expr();
    case Op::rem:
    case Op::floor_mod:
      return value == 1 ? int_constant(a.type(), 0) : Expr();
    default:
      return {};
  }
}

/// constant op x.
Expr fold_left(Op op, const Expr& a, const Expr& b) {
  switch (op) {
    case Op::add:
    case Op::mul:
    case Op::dot2:
    case Op::dot4_signed:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return fold_right(op, b, a, a->int_value);
    case Op::floor_div:
    case Op::floor_mod:
    case Op::shl:
    case Op::shr:
    case Op::dot4:
      return a->int_value == 0 ? a : Expr();
    default:
      return {};
  }
}

/// The folded form of an integer, bool or index operation, or empty.
Expr fold_binary(Op op, const Expr& a, const Expr& b) {
  const Type type = a.type();
  if (is_constant_node(a) && is_constant_node(b)) {
    const std::optional<int64_t> value = fold_integer(op, type.scalar, a->int_value, b->int_value);
    if (!value) return {};
    return int_constant(is_comparison(op) ? Type{Scalar::boolean, type.lanes} : type, *value);
  }
  if (is_constant_node(b)) {
    if (const Expr folded = fold_right(op, a, b, b->int_value)) return folded;
  }
  if (is_constant_node(a)) {
    if (const Expr folded = fold_left(op, a, b)) return folded;
  }
  if (a.get() == b.get()) {
    if (op == Op::sub) return int_constant(type, 0);
    if (op == Op::min || op == Op::max) return a;
  }
  return type.scalar == Scalar::index ? fold_index(op, a, b) : Expr();
}

void check_operation(Op op, Scalar scalar) {
  const bool integer_only = op == Op::rem || op == Op::floor_div || op == Op::floor_mod ||
                            (op >= Op::bit_and && op <= Op::mul_high);
  const bool logical = op >= Op::bit_and && op <= Op::bit_xor;
  const bool ok = scalar == Scalar::boolean
                      ? logical || is_comparison(op) || op == Op::min || op == Op::max
                  : is_word_product(op) ? scalar == Scalar::i32
                                        : !(integer_only && is_float(scalar));
  BC_CHECK(ok, "{} of {}", name_of(op), name_of(scalar));
}

double round_to(Scalar scalar, double value) {
  switch (scalar) {
    case Scalar::f32:
      return static_cast<float>(value);
    case Scalar::f16:
      return f32_from_f16(f16_from_f64(value));
    case Scalar::bf16:
      return f32_from_bf16(bf16_from_f64(value));
    default:
      return value;
  }
}

}  // namespace

Expr index_constant(int64_t value) { return int_constant(Type{}, value); }

Expr int_constant(Type type, int64_t value) {
  BC_CHECK(!is_float(type.scalar), "integer constant of type {}", type.to_string());
  return make({.kind = ExprKind::constant, .type = type, .int_value = wrap(type.scalar, value)});
}

Expr float_constant(Type type, double value) {
  BC_CHECK(is_float(type.scalar), "floating constant of type {}", type.to_string());
  return make(
      {.kind = ExprKind::constant, .type = type, .float_value = round_to(type.scalar, value)});
}

Expr constant(Type type, double value) {
  if (is_float(type.scalar)) return float_constant(type, value);
  const ElementType element =
      type.scalar == Scalar::index ? ElementType::i64 : element_of(type.scalar);
  // Values beyond i64 occur for u64 only, where the bits are what counts.
  if (value >= 0x1p63) {
    const uint64_t bits = value >= 0x1p64 ? UINT64_MAX : static_cast<uint64_t>(value);
    return int_constant(type, element == ElementType::u64 ? static_cast<int64_t>(bits) : INT64_MAX);
  }
  return int_constant(type, value < -0x1p63 ? INT64_MIN : static_cast<int64_t>(value));
}

Expr var(const std::string& name, Type type) {
  return make({.kind = ExprKind::var, .type = type, .name = name});
}

Expr access(const std::string& buffer, Scalar element, std::vector<Expr> indices) {
  int32_t lanes = 1;
  for (const Expr& index : indices) lanes = std::max(lanes, index.type().lanes);
  return make({.kind = ExprKind::access,
               .type = {element, lanes},
               .name = buffer,
               .args = std::move(indices)});
}

Expr load(Type type, const std::string& buffer, Expr index) {
  const Type at = index.type();
  BC_CHECK(at.scalar == Scalar::index, "load {}[…] at an index of type {}", buffer, at.to_string());
  if (type.lanes == 1) type.lanes = at.lanes;
  BC_CHECK(at.lanes == 1 || at.lanes == type.lanes, "load {} {}[…] at an index of type {}",
           type.to_string(), buffer, at.to_string());
  return make({.kind = ExprKind::load, .type = type, .name = buffer, .args = {std::move(index)}});
}

Expr unary(Op op, Expr a) {
  BC_CHECK(is_unary(op), "{} is not a unary operation", name_of(op));
  Type type = a.type();
  const bool floating = is_float(type.scalar);
  const bool float_only = (op >= Op::sqrt && op <= Op::trunc) || op == Op::is_nan;
  const bool takes_bytes = op == Op::even_bytes || op == Op::odd_bytes;
  const bool is_bool = type.scalar == Scalar::boolean;
  const bool ok = float_only            ? floating
                  : op == Op::nearest   ? type.scalar == Scalar::f32
                  : op == Op::bit_not   ? !floating
                  : takes_bytes         ? type.scalar == Scalar::i32
                  : op == Op::lane_bits ? is_bool && type.is_vector() && type.lanes <= 64
                  : op == Op::trailing_zeros
                      ? type.scalar == Scalar::u32 || type.scalar == Scalar::u64
                      : !is_bool;
  BC_CHECK(ok, "{} of {}", name_of(op), type.to_string());
  if (is_constant_node(a) && !floating) {
    const uint64_t bits = static_cast<uint64_t>(a->int_value);
    if (op == Op::neg) return int_constant(type, static_cast<int64_t>(0 - bits));
    if (takes_bytes) return int_constant(type, byte_pair(a->int_value, op == Op::odd_bytes));
    if (op == Op::bit_not) {
      return int_constant(
          type, type.scalar == Scalar::boolean ? a->int_value == 0 : static_cast<int64_t>(~bits));
    }
  }
  if (is_constant_node(a) && op == Op::neg) return float_constant(type, -a->float_value);
  if (op == Op::is_nan) type.scalar = Scalar::boolean;
  if (op == Op::nearest) type.scalar = Scalar::i32;
  if (op == Op::lane_bits) type = {lane_bits_scalar(type.lanes), 1};
  return make({.kind = ExprKind::unary, .type = type, .op = op, .args = {std::move(a)}});
}

Expr binary(Op op, Expr a, Expr b) {
  BC_CHECK(op >= Op::add, "{} is not a binary operation", name_of(op));
  match_lanes(a, b);
  Type type = a.type();
  BC_CHECK(type == b.type(), "{} of {} and {}", name_of(op), type.to_string(),
           b.type().to_string());
  check_operation(op, type.scalar);
  if (!is_float(type.scalar)) {
    if (Expr folded = fold_binary(op, a, b)) return folded;
  }
  if (is_comparison(op)) type.scalar = Scalar::boolean;
  return make(
      {.kind = ExprKind::binary, .type = type, .op = op, .args = {std::move(a), std::move(b)}});
}

Expr fma(Expr a, Expr b, Expr c) {
  match_lanes(a, b);
  match_lanes(a, c);
  match_lanes(b, c);
  const Type type = a.type();
  BC_CHECK(type == b.type() && type == c.type() && is_float(type.scalar), "fma of {}, {}, {}",
           type.to_string(), b.type().to_string(), c.type().to_string());
  return make(
      {.kind = ExprKind::fma, .type = type, .args = {std::move(a), std::move(b), std::move(c)}});
}

Expr select(Expr condition, Expr a, Expr b) {
  match_lanes(a, b);
  match_lanes(condition, a);
  if (a.type().lanes != condition.type().lanes) match_lanes(condition, b);
  match_lanes(a, b);
  const Type type = a.type();
  BC_CHECK(type == b.type() && condition.type() == (Type{Scalar::boolean, type.lanes}),
           "select({}, {}, {})", condition.type().to_string(), type.to_string(),
           b.type().to_string());
  if (is_constant_node(condition)) return condition->int_value != 0 ? a : b;
  return make({.kind = ExprKind::select,
               .type = type,
               .args = {std::move(condition), std::move(a), std::move(b)}});
}

Expr if_then_else(Expr condition, Expr a, Expr b) {
  match_lanes(a, b);
  // A condition per lane decides nothing as a whole; both sides are then evaluated.
  if (condition.type().lanes > 1) return select(std::move(condition), std::move(a), std::move(b));
  const Type type = a.type();
  BC_CHECK(type == b.type() && condition.type() == Type{Scalar::boolean}, "if {} then {} else {}",
           condition.type().to_string(), type.to_string(), b.type().to_string());
  if (is_constant_node(condition)) return condition->int_value != 0 ? a : b;
  return make({.kind = ExprKind::if_then_else,
               .type = type,
               .args = {std::move(condition), std::move(a), std::move(b)}});
}

Expr cast(Type type, Expr a) {
  if (type.lanes == 1) type.lanes = a.type().lanes;
  BC_CHECK(type.lanes == a.type().lanes, "cast of {} to {}", a.type().to_string(),
           type.to_string());
  if (type == a.type()) return a;
  // Half floats are as they were once arithmetic, of which none was left, has widened them.
  const bool back = a->kind == ExprKind::cast && is_half(type.scalar) && is_float(a.type().scalar);
  if (back && a->args[0].type() == type) return a->args[0];
  if (is_constant_node(a)) {
    const Scalar from = a.type().scalar;
    if (!is_float(from) && !is_float(type.scalar)) return int_constant(type, a->int_value);
    if (is_float(from) && is_float(type.scalar)) return float_constant(type, a->float_value);
    const bool exact = a->int_value > -(int64_t{1} << 53) && a->int_value < (int64_t{1} << 53);
    if (is_float(type.scalar) && exact) {
      return float_constant(type, static_cast<double>(a->int_value));
    }
  }
  return make({.kind = ExprKind::cast, .type = type, .args = {std::move(a)}});
}

Expr bitcast(Type type, Expr a) {
  if (type.lanes == 1 && a.type().is_vector()) {
    // As many lanes as the bits fill: i16x2 is one i32.
    const int bits = a.type().lanes * bit_width(a.type().scalar);
    type.lanes = std::max(1, bits / bit_width(type.scalar));
  }
  if (type == a.type()) return a;
  BC_CHECK(type.lanes * bit_width(type.scalar) == a.type().lanes * bit_width(a.type().scalar),
           "bitcast of {} to {}", a.type().to_string(), type.to_string());
  return make({.kind = ExprKind::bitcast, .type = type, .args = {std::move(a)}});
}

Expr ramp(Expr base, Expr stride, int32_t lanes) {
  Type type = base.type();
  BC_CHECK(type == stride.type() && type.lanes == 1 && is_integer(type.scalar) && lanes >= 1,
           "ramp({}, {}, {})", type.to_string(), stride.type().to_string(), lanes);
  if (lanes == 1) return base;
  if (is_constant(stride, 0)) return broadcast(base, lanes);
  type.lanes = lanes;
  return make({.kind = ExprKind::ramp, .type = type, .args = {std::move(base), std::move(stride)}});
}

Expr broadcast(Expr a, int32_t lanes) {
  Type type = a.type();
  if (type.lanes == lanes) return a;
  BC_CHECK(type.lanes == 1 && lanes >= 1, "broadcast({}, {})", type.to_string(), lanes);
  type.lanes = lanes;
  if (is_constant_node(a)) {
    ExprNode node = *a;
    node.type = type;
    return make(std::move(node));
  }
  return make({.kind = ExprKind::broadcast, .type = type, .args = {std::move(a)}});
}

Expr shuffle(std::vector<Expr> args, std::vector<int32_t> indices) {
  BC_CHECK(!args.empty() && !indices.empty(), "shuffle of nothing");
  int32_t lanes = 0;
  for (const Expr& arg : args) {
    BC_CHECK(arg.type().scalar == args[0].type().scalar, "shuffle of {} and {}",
             args[0].type().to_string(), arg.type().to_string());
    lanes += arg.type().lanes;
  }
  for (const int32_t lane : indices) {
    BC_CHECK(lane >= 0 && lane < lanes, "shuffle takes lane {} of {}", lane, lanes);
  }
  const Type type = {args[0].type().scalar, static_cast<int32_t>(indices.size())};
  return make({.kind = ExprKind::shuffle,
               .type = type,
               .args = std::move(args),
               .indices = std::move(indices)});
}

Expr reduce_lanes(Op op, Expr a) {
  const Type type = a.type();
  if (type.lanes == 1) return a;
  BC_CHECK(std::has_single_bit(static_cast<uint32_t>(type.lanes)), "reduce_lanes of {}",
           type.to_string());
  check_operation(op, type.scalar);
  return make({.kind = ExprKind::reduce_lanes,
               .type = type.with_lanes(1),
               .op = op,
               .args = {std::move(a)}});
}

Expr call(const std::string& function, Type type, std::vector<Expr> args) {
  for (Expr& arg : args) {
    type.lanes = std::max(type.lanes, arg.type().lanes);
  }
  for (Expr& arg : args) arg = broadcast(arg, type.lanes);
  return make({.kind = ExprKind::call, .type = type, .name = function, .args = std::move(args)});
}

Expr floor_div(Expr a, Expr b) { return binary(Op::floor_div, std::move(a), std::move(b)); }
Expr floor_mod(Expr a, Expr b) { return binary(Op::floor_mod, std::move(a), std::move(b)); }
Expr min(Expr a, Expr b) { return binary(Op::min, std::move(a), std::move(b)); }
Expr max(Expr a, Expr b) { return binary(Op::max, std::move(a), std::move(b)); }

bool as_constant(const Expr& e, int64_t& value) {
  if (!e || !is_constant_node(e) || is_float(e.type().scalar)) return false;
  value = e->int_value;
  return true;
}

bool is_constant(const Expr& e, int64_t value) {
  int64_t actual = 0;
  return as_constant(e, actual) && actual == value;
}

bool equal(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b) return false;
  const bool same =
      a->kind == b->kind && a->type == b->type && a->op == b->op && a->int_value == b->int_value &&
      a->name == b->name && a->indices == b->indices && a->args.size() == b->args.size() &&
      std::bit_cast<uint64_t>(a->float_value) == std::bit_cast<uint64_t>(b->float_value);
  if (!same) return false;
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (!equal(a->args[i], b->args[i])) return false;
  }
  return true;
}

Expr with_args(const Expr& e, std::vector<Expr> args) {
  switch (e->kind) {
    case ExprKind::constant:
    case ExprKind::var:
      return e;
    case ExprKind::access:
      return access(e->name, e.type().scalar, std::move(args));
    case ExprKind::load:
      return load(e.type(), e->name, args[0]);
    case ExprKind::unary:
      return unary(e->op, args[0]);
    case ExprKind::binary:
      return binary(e->op, args[0], args[1]);
    case ExprKind::fma:
      return fma(args[0], args[1], args[2]);
    case ExprKind::select:
      return select(args[0], args[1], args[2]);
    case ExprKind::if_then_else:
      return if_then_else(args[0], args[1], args[2]);
    case ExprKind::cast:
      return cast(e.type(), args[0]);
    case ExprKind::bitcast:
      return bitcast(e.type(), args[0]);
    case ExprKind::ramp:
      return ramp(args[0], args[1], e.type().lanes);
    case ExprKind::broadcast:
      return broadcast(args[0], e.type().lanes);
    case ExprKind::shuffle:
      return shuffle(std::move(args), e->indices);
    case ExprKind::reduce_lanes:
      return reduce_lanes(e->op, args[0]);
    case ExprKind::call:
      return call(e->name, e.type(), std::move(args));
  }
  return e;
}

}  // namespace backcast::loop
