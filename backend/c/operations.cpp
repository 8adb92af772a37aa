// Arithmetic, comparisons, selection (operations.h). Vectors go through unsigned types where signed
// overflow would be undefined; what has no operator in C becomes a helper.
#include "backend/c/operations.h"

#include "backend/c/mve.h"
#include "backend/c/neon.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {

using loop::Op;
using loop::Scalar;
using loop::Type;

const char* symbol_of(Op op) {
  switch (op) {
    case Op::add:
      return "+";
    case Op::sub:
      return "-";
    case Op::mul:
      return "*";
    case Op::div:
      return "/";
    case Op::rem:
      return "%";
    case Op::bit_and:
      return "&";
    case Op::bit_or:
      return "|";
    case Op::bit_xor:
      return "^";
    case Op::shl:
      return "<<";
    case Op::shr:
      return ">>";
    case Op::eq:
      return "==";
    case Op::ne:
      return "!=";
    case Op::lt:
      return "<";
    case Op::le:
      return "<=";
    case Op::gt:
      return ">";
    case Op::ge:
      return ">=";
    default:
      BC_CHECK(false, "{} is no C operator", loop::name_of(op));
  }
}

namespace {

Text infix(Op op, const Text& a, const Text& b) {
  const char* symbol = symbol_of(op);
  Rank rank = kLoose;
  if (op == Op::add || op == Op::sub) rank = kSum;
  if (op == Op::mul || op == Op::div || op == Op::rem) rank = kProduct;
  const Rank left = rank == kLoose ? kUnary : rank;
  const Rank right = rank == kSum ? kProduct : kUnary;
  return {fmt::format("{} {} {}", a.at(left), symbol, b.at(right)), rank};
}

Text cast_to(const std::string& type, const Text& a) {
  return {fmt::format("({}){}", type, a.at(kUnary)), kUnary};
}

Text call_text(const std::string& function, const std::vector<Text>& args) {
  std::string list;
  for (const Text& arg : args) list += (list.empty() ? "" : ", ") + arg.text;
  return {function + "(" + list + ")"};
}

bool is_narrow(const Prelude& prelude, Scalar s) {
  return loop::is_integer(s) && prelude.bits(s) < 32;
}

bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

/// A helper of two operands of one type, which `body` computes from `a` and `b`.
Text binary_helper(Prelude& prelude, Op op, Type type, const std::string& result, const Text& a,
                   const Text& b, const std::function<std::string()>& body) {
  const std::string name = fmt::format("{}_{}", loop::name_of(op), prelude.tag(type));
  prelude.helper(name, [&] {
    const std::string params = fmt::format("{0} a, {0} b", prelude.type(type));
    return inline_function(result, name, params) + " {\n" + body() + "}\n";
  });
  return call_text(name, {a, b});
}

/// The same where the result is of that type.
Text binary_helper(Prelude& prelude, Op op, Type type, const Text& a, const Text& b,
                   const std::function<std::string()>& body) {
  return binary_helper(prelude, op, type, prelude.type(type), a, b, body);
}

/// Lane by lane, for what vectors cannot do.
std::string lanewise_body(Prelude& prelude, Op op, Type type) {
  const Type scalar = type.with_lanes(1);
  const Text element = binary_text(prelude, op, scalar, {"a[lane]"}, {"b[lane]"});
  return fmt::format(
      "  {} r = a;\n  for (int lane = 0; lane < {}; ++lane) r[lane] = {};\n  return r;\n",
      prelude.type(type), type.lanes, element.text);
}

/// gcc's builtin for the smaller or larger of two registers, and what has to hold for it to be
/// there; empty where there is none.
std::pair<std::string, std::string> gcc_min_max(const Prelude& prelude, Op op, Type type) {
  const TargetInfo& target = prelude.target();
  const std::string_view name = loop::name_of(op);
  const int bits = 32 * type.lanes;
  if (type.scalar != Scalar::i32) return {x86_instruction(prelude, name, type, "a, b", "a, "), ""};
  if (target.architecture != Architecture::x86_64 || target.vector_bits < 256 ||
      !type.is_vector() || bits < 128 || bits > target.vector_bits) {
    return {};
  }
  if (bits == 512) {
    return {fmt::format("__builtin_ia32_p{}sd512_mask(a, b, a, 0xffff)", name),
            " && defined(__AVX512F__)"};
  }
  return {fmt::format("__builtin_ia32_p{}sd{}(a, b)", name, bits), " && defined(__AVX2__)"};
}

Text min_max_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b) {
  return binary_helper(prelude, op, type, a, b, [&]() -> std::string {
    const Op comparison = op == Op::min ? Op::lt : Op::gt;
    const Text test = binary_text(prelude, comparison, type, {"a"}, {"b"});
    const std::string chosen = select_text(prelude, type, test, {"a"}, {"b"}).text;
    const auto [instruction, condition] = gcc_min_max(prelude, op, type);
    const std::string otherwise = fmt::format("  return {};\n", chosen);
    const std::string choice = mve_choice(prelude, comparison, type);
    if (!choice.empty()) return with_mve(prelude, type, choice, otherwise);
    if (instruction.empty()) return otherwise;
    return fmt::format(
        "#if defined(__GNUC__) && !defined(__clang__){}\n  return {};\n#else\n"
        "  return {};\n#endif\n",
        condition, instruction, chosen);
  });
}

Text floor_division_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b) {
  const bool is_division = op == Op::floor_div;
  if (!is_signed(type.scalar)) {
    return binary_text(prelude, is_division ? Op::div : Op::rem, type, a, b);
  }
  if (type.is_vector()) {
    return binary_helper(prelude, op, type, a, b, [&] { return lanewise_body(prelude, op, type); });
  }
  const std::string c_type = prelude.type(type);
  if (b.constant && is_power_of_two(*b.constant)) {
    int shift = 0;
    while ((int64_t{1} << shift) < *b.constant) ++shift;
    const Text other = {fmt::format("{}", is_division ? shift : *b.constant - 1)};
    const Text result = infix(is_division ? Op::shr : Op::bit_and, a, other);
    return is_narrow(prelude, type.scalar) ? cast_to(c_type, result) : result;
  }
  return binary_helper(prelude, op, type, a, b, [&] {
    const char* value = is_division ? "a / b - (a % b < 0)" : "a % b + (a % b < 0 ? b : 0)";
    return fmt::format("  return ({})({});\n", c_type, value);
  });
}

/// Quotients that overflow wrap: MIN / -1 = MIN, MIN % -1 = 0.
Text division_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b) {
  const Scalar s = type.scalar;
  if (type.is_vector()) {
    if (loop::is_float(s)) return infix(op, a, b);
    return binary_helper(prelude, op, type, a, b, [&] { return lanewise_body(prelude, op, type); });
  }
  const bool may_overflow = is_signed(s) && !loop::is_float(s) && !is_narrow(prelude, s) &&
                            s != Scalar::index && (!b.constant || *b.constant == -1);
  if (may_overflow) {
    return binary_helper(prelude, op, type, a, b, [&] {
      if (op == Op::rem) return std::string("  return b == -1 ? 0 : a % b;\n");
      return fmt::format("  return b == -1 ? {} : a / b;\n",
                         unary_text(prelude, Op::neg, type, {"a"}).text);
    });
  }
  const Text result = infix(op, a, b);
  return is_narrow(prelude, s) ? cast_to(prelude.type(type), result) : result;
}

/// The upper half of a product; of 64-bit integers from four partial ones.
std::string mul_high_body(Prelude& prelude, Type type) {
  const bool sign = is_signed(type.scalar);
  const int bits = prelude.bits(type.scalar);
  const std::string c_type = prelude.type(type);
  if (bits < 64) {
    constexpr Scalar kWide[2][3] = {{Scalar::u16, Scalar::u32, Scalar::u64},
                                    {Scalar::i16, Scalar::i32, Scalar::i64}};
    const Scalar wide = kWide[sign ? 1 : 0][bits == 8 ? 0 : bits == 16 ? 1 : 2];
    const std::string wide_type = prelude.type({wide, type.lanes});
    const char* format =
        type.is_vector()
            ? "  return __builtin_convertvector((__builtin_convertvector(a, {0}) *\n"
              "                                   __builtin_convertvector(b, {0})) >> {1}, {2});\n"
            : "  return ({2})((({0})a * ({0})b) >> {1});\n";
    return fmt::format(fmt::runtime(format), wide_type, bits, c_type);
  }
  if (type.is_vector()) return lanewise_body(prelude, Op::mul_high, type);
  return fmt::format(
      "  const uint64_t ua = (uint64_t)a, ub = (uint64_t)b, low = 0xffffffffu;\n"
      "  const uint64_t middle = (ua >> 32) * (ub & low) + (((ua & low) * (ub & low)) >> 32);\n"
      "  const uint64_t other = (ua & low) * (ub >> 32) + (middle & low);\n"
      "  const uint64_t high = (ua >> 32) * (ub >> 32) + (middle >> 32) + (other >> 32);\n"
      "  return ({})(high{});\n",
      c_type, sign ? " - (a < 0 ? ub : 0) - (b < 0 ? ua : 0)" : "");
}

/// Masks hold 0 and -1; scalars 0 and 1.
Text bool_text(Prelude& prelude, Op op, Type type, Text a, Text b) {
  switch (op) {
    case Op::bit_and:
    case Op::min:
    case Op::mul:
      op = Op::bit_and;
      break;
    case Op::bit_or:
    case Op::max:
      op = Op::bit_or;
      break;
    case Op::ne:
    case Op::bit_xor:
      op = Op::bit_xor;
      break;
    default:
      BC_CHECK(loop::is_comparison(op), "{} of bool", loop::name_of(op));
  }
  if (!type.is_vector()) return infix(op, a, b);
  const int bits = std::max(a.mask_bits, b.mask_bits);
  a = convert_mask(prelude, a, type.lanes, bits);
  b = convert_mask(prelude, b, type.lanes, bits);
  const Text not_a = {"~" + a.at(kPostfix), kUnary}, not_b = {"~" + b.at(kPostfix), kUnary};
  Text result;
  switch (op) {
    case Op::eq:
      result = infix(Op::bit_xor, not_a, b);
      break;
    case Op::lt:
      result = infix(Op::bit_and, not_a, b);
      break;
    case Op::le:
      result = infix(Op::bit_or, not_a, b);
      break;
    case Op::gt:
      result = infix(Op::bit_and, a, not_b);
      break;
    case Op::ge:
      result = infix(Op::bit_or, a, not_b);
      break;
    default:
      result = infix(op, a, b);
  }
  result.mask_bits = bits;
  return result;
}

/// An operand of a wrapping operation; what already is computed without sign stays so.
Text as_unsigned(Prelude& prelude, Type type, const Text& a) {
  if (a.wrapper > 0) return {a.text.substr(a.wrapper), kUnary};
  if (a.constant && !type.is_vector()) {
    const bool is_wide = prelude.bits(type.scalar) == 64;
    return {integer_literal(is_wide ? Scalar::u64 : Scalar::u32, *a.constant)};
  }
  return cast_to(prelude.unsigned_type(type), a);
}

Text wrapping_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b) {
  const Scalar s = type.scalar;
  const std::string c_type = prelude.type(type);
  if (type.is_vector()) {
    if (!is_signed(s) || op == Op::shr || op == Op::bit_and || op == Op::bit_or ||
        op == Op::bit_xor) {
      return infix(op, a, b);
    }
    const Text x = as_unsigned(prelude, type, a), y = as_unsigned(prelude, type, b);
    Text result = cast_to(c_type, infix(op, x, y));
    result.wrapper = c_type.size() + 2;
    return result;
  }
  if (s == Scalar::index) return infix(op, a, b);
  const bool bitwise = op == Op::bit_and || op == Op::bit_or || op == Op::bit_xor || op == Op::shr;
  if (is_narrow(prelude, s)) {
    const bool widen = op == Op::shl || (op == Op::mul && s == Scalar::u16);
    return cast_to(c_type, infix(op, widen ? cast_to("uint32_t", a) : a, b));
  }
  if (!is_signed(s) || bitwise) return infix(op, a, b);
  const Text x = as_unsigned(prelude, type, a);
  Text result = cast_to(c_type, infix(op, x, op == Op::shl ? b : as_unsigned(prelude, type, b)));
  result.wrapper = c_type.size() + 2;
  return result;
}

}  // namespace

std::string x86_instruction(const Prelude& prelude, std::string_view name, Type type,
                            std::string_view args, std::string_view merged) {
  const TargetInfo& target = prelude.target();
  const int bits = prelude.bits(type.scalar) * type.lanes;
  if (target.architecture != Architecture::x86_64 || !loop::is_float(type.scalar) ||
      !type.is_vector() || bits < 128 || bits > target.vector_bits) {
    return {};
  }
  const char* element = type.scalar == Scalar::f32 ? "s" : "d";
  if (bits < 512) {
    return fmt::format("__builtin_ia32_{}p{}{}({})", name, element, bits == 256 ? "256" : "", args);
  }
  // No lane is masked: the same bits either way, but a builtin's parameter has a sign, and warns
  // of the other. 4: rounding as the control register says.
  const bool is_signed_mask = type.lanes == 16 || name == "sqrt" || name == "rndscale";
  return fmt::format("__builtin_ia32_{}p{}{}_mask({}, {}{}, 4)", name, element,
                     name == "rndscale" ? "" : "512", args, merged, is_signed_mask ? "-1" : "0xff");
}

Text binary_text(Prelude& prelude, Op op, Type type, Text a, Text b) {
  const Scalar s = type.scalar;
  BC_CHECK(!loop::is_half(s), "arithmetic on {} must have been legalised", loop::name_of(s));
  if (s == Scalar::boolean) return bool_text(prelude, op, type, std::move(a), std::move(b));
  if (is_neon_operation(prelude.target(), op, type)) {
    return neon_binary_text(prelude, op, type, a, b);
  }
  if (loop::is_comparison(op)) {
    if (!type.is_vector()) return infix(op, a, b);
    const int bits = prelude.bits(s);
    const std::string mask = prelude.mask_type(bits, type.lanes);
    Text result = cast_to(mask, infix(op, a, b));
    if (const std::string lanes = mve_comparison(prelude, op, type); !lanes.empty()) {
      result = binary_helper(prelude, op, type, mask, a, b, [&] {
        const std::string plain = cast_to(mask, infix(op, {"a"}, {"b"})).text;
        return with_mve(prelude, type, lanes, fmt::format("  return {};\n", plain));
      });
    }
    result.mask_bits = bits;
    return result;
  }
  switch (op) {
    case Op::min:
    case Op::max:
      return min_max_text(prelude, op, type, a, b);
    case Op::div:
    case Op::rem:
      return division_text(prelude, op, type, a, b);
    case Op::floor_div:
    case Op::floor_mod:
      return floor_division_text(prelude, op, type, a, b);
    case Op::mul_high:
      return binary_helper(prelude, op, type, a, b, [&] { return mul_high_body(prelude, type); });
    case Op::dot2:
      return pair_product_text(prelude, type, a, b);
    case Op::dot4:
    case Op::dot4_signed:
      return byte_product_text(prelude, op, type, a, b);
    default:
      break;
  }
  if (loop::is_float(s)) return infix(op, a, b);
  return wrapping_text(prelude, op, type, a, b);
}

Text select_text(Prelude& prelude, Type type, const Text& condition, Text a, Text b) {
  if (!type.is_vector()) {
    const Text chosen = {
        fmt::format("{} ? {} : {}", condition.at(kUnary), a.at(kUnary), b.at(kUnary)), kLoose};
    return is_narrow(prelude, type.scalar) ? cast_to(prelude.type(type), chosen) : chosen;
  }
  const bool is_bool = type.scalar == Scalar::boolean;
  const int bits = is_bool ? std::max(a.mask_bits, b.mask_bits) : prelude.bits(type.scalar);
  if (is_bool) {
    a = convert_mask(prelude, a, type.lanes, bits);
    b = convert_mask(prelude, b, type.lanes, bits);
  }
  const Text mask = convert_mask(prelude, condition, type.lanes, bits);
  const std::string name = "select_" + prelude.tag(type, bits);
  prelude.helper(name, [&] {
    const std::string m = prelude.mask_type(bits, type.lanes), t = prelude.type(type, bits);
    return inline_function(t, name, fmt::format("{1} m, {0} a, {0} b", t, m)) +
           fmt::format(" {{\n  return ({0})((m & ({1})a) | (~m & ({1})b));\n}}\n", t, m);
  });
  Text result = call_text(name, {mask, a, b});
  result.mask_bits = bits;
  return result;
}

}  // namespace backcast::c_backend
