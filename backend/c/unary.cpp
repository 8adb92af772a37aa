// Unary operations and fma (operations.h). Square roots, roundings and fma are machine instructions
// in every form: gcc calls sqrtf for the sake of errno and clang does the same with fma and sqrt,
// so clang takes its elementwise builtins, gcc an instruction where its builtin would call.
#include <fmt/ranges.h>

#include "backend/c/mve.h"
#include "backend/c/neon.h"
#include "backend/c/operations.h"
#include "backend/c/vector_parts.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {

using loop::Op;
using loop::Scalar;
using loop::Type;

namespace {

// gcc's own allocation of a register tile is as good from twice as many on.
constexpr int kFewRegisters = 16;

bool in_hardware(const TargetInfo& target, Scalar scalar) {
  return scalar == Scalar::f32 ? target.has_f32 : scalar == Scalar::f64 && target.has_f64;
}

/// gcc's square root: its builtin would also call sqrtf, to set errno for a negative operand.
std::string gcc_sqrt(Prelude& prelude, Type type) {
  const bool is_double = type.scalar == Scalar::f64;
  switch (prelude.target().architecture) {
    case Architecture::x86_64: {
      const std::string instruction = x86_instruction(prelude, "sqrt", type, "a", "a, ");
      if (!instruction.empty()) return fmt::format("  r = {};\n", instruction);
      if (type.is_vector()) break;
      const std::string vector = prelude.type(type.with_lanes(is_double ? 2 : 4));
      return fmt::format("  r = __builtin_ia32_sqrts{}(({}){{a}})[0];\n", is_double ? "d" : "s",
                         vector);
    }
    case Architecture::aarch64:
      if (type.is_vector()) break;
      return fmt::format("  __asm__(\"fsqrt %{0}0, %{0}1\" : \"=w\"(r) : \"w\"(a));\n",
                         is_double ? "d" : "s");
    case Architecture::arm:
    case Architecture::thumb:
      if (type.is_vector()) break;
      return is_double ? "  __asm__(\"vsqrt.f64 %P0, %P1\" : \"=w\"(r) : \"w\"(a));\n"
                       : "  __asm__(\"vsqrt.f32 %0, %1\" : \"=t\"(r) : \"t\"(a));\n";
    case Architecture::riscv32:
    case Architecture::riscv64:
      if (type.is_vector()) break;
      return fmt::format("  __asm__(\"fsqrt.{} %0, %1\" : \"=f\"(r) : \"f\"(a));\n",
                         is_double ? "d" : "s");
    case Architecture::wasm32:  // gcc has no such target
    case Architecture::xtensa:  // passes leave none to them
    case Architecture::any:
      break;
  }
  const Type scalar = type.with_lanes(1);
  return by_lanes(type, unary_text(prelude, Op::sqrt, scalar, {"a[lane]"}).text);
}

std::string gcc_rounding(const Prelude& prelude, Op op, Type type) {
  const int mode = op == Op::round_even ? 0 : op == Op::floor ? 1 : op == Op::ceil ? 2 : 3;
  constexpr int kQuiet = 8;  // raises no exception
  const bool is_widest = prelude.bits(type.scalar) * type.lanes == 512;
  const std::string instruction = x86_instruction(prelude, is_widest ? "rndscale" : "round", type,
                                                  fmt::format("a, {}", mode + kQuiet), "a, ");
  if (!instruction.empty()) return fmt::format("  r = {};\n", instruction);
  const char* suffix = type.scalar == Scalar::f32 ? "f" : "";
  // rint rounds to even in the default rounding mode, and is an instruction everywhere; roundeven
  // is not.
  const std::string name = op == Op::round_even ? "rint" : std::string(loop::name_of(op));
  if (!type.is_vector()) return fmt::format("  r = __builtin_{}{}(a);\n", name, suffix);
  const char* nearest_down_up_zero[] = {"n", "m", "p", ""};
  return with_mve(
      prelude, type,
      fmt::format("  r = __builtin_mve_vrnd{}q_fv4sf(a);\n", nearest_down_up_zero[mode]),
      by_lanes(type, fmt::format("__builtin_{}{}(a[lane])", name, suffix)));
}

Text rounding_text(Prelude& prelude, Op op, Type type, const Text& a) {
  const TargetInfo& target = prelude.target();
  BC_CHECK(
      in_hardware(target, type.scalar) && (op == Op::sqrt ? target.has_sqrt : target.has_rounding),
      "{} of {} is not an instruction of {}; legalisation must expand it", loop::name_of(op),
      loop::name_of(type.scalar), target.name);
  const std::string name = fmt::format("{}_{}", loop::name_of(op), prelude.tag(type));
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type);
    const std::string builtin = op == Op::round_even ? "rint" : std::string(loop::name_of(op));
    std::string gcc = op == Op::sqrt ? gcc_sqrt(prelude, type) : gcc_rounding(prelude, op, type);
    if (op == Op::sqrt && target.vector_bits == 0) {
      gcc = fmt::format("#if defined(BC_GNU_C)\n{}#else\n  r = sqrt{}(a);\n#endif\n", gcc,
                        type.scalar == Scalar::f32 ? "f" : "");
    }
    return inline_function(c_type, name, c_type + " a") +
           fmt::format(
               " {{\n#if defined(__clang__)\n  return __builtin_elementwise_{}(a);\n#else\n"
               "  {} r;\n{}  return r;\n#endif\n}}\n",
               builtin, c_type, gcc);
  });
  return {fmt::format("{}({})", name, a.text)};
}

Text simple_helper(Prelude& prelude, const char* operation, Type type, const std::string& result,
                   const std::string& body, const Text& a) {
  const std::string name = fmt::format("{}_{}", operation, prelude.tag(type));
  prelude.helper(name, [&] {
    return inline_function(result, name, prelude.type(type) + " a") +
           fmt::format(" {{ return {}; }}\n", body);
  });
  return {fmt::format("{}({})", name, a.text)};
}

Text abs_text(Prelude& prelude, Type type, const Text& a) {
  const bool is_float = loop::is_float(type.scalar);
  const std::string c_type = prelude.type(type);
  if (is_float && !type.is_vector()) {
    const char* suffix = type.scalar == Scalar::f32 ? "f" : "";
    return {fmt::format("__builtin_fabs{}({})", suffix, a.text)};
  }
  if (is_float) {
    const bool wide = type.scalar == Scalar::f64;
    const Type integer = {wide ? Scalar::u64 : Scalar::u32, type.lanes};
    const Text bits = broadcast_text(
        prelude, integer, {integer_literal(integer.scalar, wide ? INT64_MAX : INT32_MAX)});
    const std::string body =
        fmt::format("({})(({})a & {})", c_type, prelude.type(integer), bits.text);
    return simple_helper(prelude, "abs", type, c_type, body, a);
  }
  if (!is_signed(type.scalar)) return a;
  const Text zero = type.is_vector() ? broadcast_text(prelude, type, {"0"}) : Text{"0"};
  const Text test = binary_text(prelude, Op::lt, type, {"a"}, zero);
  const Text negated = unary_text(prelude, Op::neg, type, {"a"});
  const std::string body = select_text(prelude, type, test, negated, {"a"}).text;
  return simple_helper(prelude, "abs", type, c_type, body, a);
}

Text neg_text(Prelude& prelude, Type type, const Text& a) {
  const Scalar s = type.scalar;
  const std::string c_type = prelude.type(type);
  if (const Text by_neon = neon_negated_text(prelude, type, a); !by_neon.text.empty()) {
    return by_neon;
  }
  const Text negated = {"-" + a.at(kPostfix), kUnary};
  if (loop::is_float(s) || s == Scalar::index) return negated;
  if (type.is_vector()) {
    const std::string wrap = prelude.unsigned_type(type);
    return {fmt::format("({})-({}){}", c_type, wrap, a.at(kUnary)), kUnary};
  }
  if (prelude.bits(s) < 32) return {fmt::format("({}){}", c_type, negated.text), kUnary};
  const std::string zero = prelude.bits(s) == 32 ? "0u" : "UINT64_C(0)";
  const std::string wrap = prelude.unsigned_type(type);
  return {fmt::format("({})({} - ({}){})", c_type, zero, wrap, a.at(kUnary)), kUnary};
}

/// The instruction that gathers the signs of a mask's lanes, where x86 has one, behind its #if.
std::string gather_signs(Prelude& prelude, const std::string& c_type, int mask_bits,
                         int32_t lanes) {
  const int bits = mask_bits * lanes;
  if (prelude.target().architecture != Architecture::x86_64 || mask_bits < 32 || bits < 128 ||
      bits > prelude.target().vector_bits) {
    return "";
  }
  const bool wide = mask_bits == 64;
  if (bits == 512) {
    // gcc's intrinsic is of long long, int64_t of long.
    return fmt::format(
        "#if defined(__AVX512DQ__)\n"
        "  typedef {} register_signs __attribute__((vector_size(64)));\n"
        "  return ({})__builtin_ia32_cvt{}2mask512((register_signs)a);\n",
        wide ? "long long" : "int", c_type, wide ? 'q' : 'd');
  }
  return fmt::format("#if defined(__{}__)\n  return ({})__builtin_ia32_movmskp{}{}(({})a);\n",
                     bits == 256 ? "AVX" : "SSE2", c_type, wide ? 'd' : 's',
                     bits == 256 ? "256" : "",
                     prelude.type({wide ? Scalar::f64 : Scalar::f32, lanes}));
}

/// Each lane keeps the bit that it gives to the result, which is all of them.
std::string union_of_bits(Prelude& prelude, const std::string& c_type, int mask_bits,
                          int32_t lanes) {
  const Type words{mask_bits == 64   ? Scalar::u64
                   : mask_bits == 32 ? Scalar::u32
                   : mask_bits == 16 ? Scalar::u16
                                     : Scalar::u8,
                   lanes};
  const std::string vector = prelude.type(words);
  std::vector<std::string> bits;
  for (int32_t lane = 0; lane < lanes; ++lane) bits.push_back(fmt::format("{}u", 1ULL << lane));
  return fmt::format("  const {0} set = ({0})a & ({0}){{{1}}};\n  return ({2}){3};\n", vector,
                     fmt::join(bits, ", "), c_type,
                     reduce_text(prelude, Op::bit_or, words, {"set"}).text);
}

std::string bits_one_by_one(const std::string& c_type, int32_t lanes) {
  return fmt::format(
      "  {0} r = 0;\n  for (int lane = 0; lane < {1}; ++lane) r |= ({0})(a[lane] & 1) << lane;\n"
      "  return ({2})r;\n",
      lanes > 32 ? "uint64_t" : "uint32_t", lanes, c_type);
}

Text lane_bits_text(Prelude& prelude, Type type, const Text& a) {
  const Type result{loop::lane_bits_scalar(type.lanes), 1};
  const std::string name = "lane_bits_" + prelude.tag(type, a.mask_bits);
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(result);
    const std::string instruction = gather_signs(prelude, c_type, a.mask_bits, type.lanes);
    std::string body = type.lanes <= a.mask_bits
                           ? union_of_bits(prelude, c_type, a.mask_bits, type.lanes)
                           : bits_one_by_one(c_type, type.lanes);
    if (!instruction.empty()) body = fmt::format("{}#else\n{}#endif\n", instruction, body);
    return inline_function(c_type, name, prelude.mask_type(a.mask_bits, type.lanes) + " a") +
           fmt::format(" {{\n{}}}\n", body);
  });
  return {fmt::format("{}({})", name, a.text)};
}

/// The instruction of whole registers of x86, behind its #if, or of one lane.
std::string nearest_on_x86(Prelude& prelude, Type type) {
  if (type.lanes == 1) {
    return "#if defined(__SSE2__)\n  typedef float register_f32 __attribute__((vector_size(16)));\n"
           "  return __builtin_ia32_cvtss2si((register_f32){a});\n";
  }
  const int bits = 32 * type.lanes;
  if (bits < 128 || bits > prelude.target().vector_bits) return "";
  const std::string integers = prelude.type({Scalar::i32, type.lanes});
  if (bits == 512) {
    return fmt::format(
        "#if defined(__AVX512F__)\n  return ({0})__builtin_ia32_cvtps2dq512_mask(a, ({0}){{0}}, "
        "0xffff, 4);\n",
        integers);
  }
  return fmt::format("#if defined(__{}__)\n  return ({})__builtin_ia32_cvtps2dq{}(a);\n",
                     bits == 256 ? "AVX" : "SSE2", integers, bits == 256 ? "256" : "");
}

/// Instructions that round as the mode says, to nearest; elsewhere the integer ends up in the last
/// bits of a float of 1.5 · 2^23.
Text nearest_text(Prelude& prelude, Type type, const Text& a) {
  const std::string name = "nearest_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const Type integer{Scalar::i32, type.lanes};
    const std::string c_type = prelude.type(type), result = prelude.type(integer);
    const std::string instruction =
        prelude.target().architecture == Architecture::x86_64 ? nearest_on_x86(prelude, type)
        : type.lanes == 1
            ? "#if defined(BC_GNU_C) && defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4)\n"
              "  float r;\n"
              "  __asm__(\"vcvtr.s32.f32 %0, %1\" : \"=t\"(r) : \"t\"(a));\n  return " +
                  bitcast_text(prelude, type, integer, {"r"}).text + ";\n"
            : "";
    const Text shift = constant_text(prelude, *loop::float_constant(type, 12582912));
    const Text bits = constant_text(prelude, *loop::int_constant(integer, 0x4b400000));
    const Text sum = binary_text(prelude, Op::add, type, {"a"}, shift);
    const Text back =
        binary_text(prelude, Op::sub, integer, bitcast_text(prelude, type, integer, sum), bits);
    std::string body = "  return " + back.text + ";\n";
    if (!instruction.empty()) body = fmt::format("{}#else\n{}#endif\n", instruction, body);
    body = with_mve(prelude, type,
                    fmt::format("  {} r;\n  __asm__(\"vcvtn.s32.f32 %q0, %q1\" : \"=w\"(r) : "
                                "\"w\"(a));\n  return r;\n",
                                result),
                    body);
    return inline_function(result, name, c_type + " a") + " {\n" + body + "}\n";
  });
  return {fmt::format("{}({})", name, a.text)};
}

/// In C99 the lowest bit alone, times a de Bruijn sequence, has the place's number in front.
std::string trailing_zeros_in_table(bool wide) {
  const uint64_t sequence = wide ? 0x022fdd63cc95386d : 0x077cb531;
  const int bits = wide ? 64 : 32, shift = wide ? 58 : 27;
  std::vector<int> places(static_cast<size_t>(bits));
  for (int i = 0; i < bits; ++i) {
    const uint64_t shifted = sequence << i;
    places[wide ? shifted >> shift : static_cast<uint32_t>(shifted) >> shift] = i;
  }
  return fmt::format(
      "  static const uint8_t places[{0}] = {{{1}}};\n"
      "  return places[(uint{0}_t)((a & (0u - a)) * {2}) >> {3}];\n",
      bits, fmt::join(places, ", "),
      integer_literal(wide ? Scalar::u64 : Scalar::u32, static_cast<int64_t>(sequence)), shift);
}

Text trailing_zeros_text(Prelude& prelude, Type type, const Text& a) {
  const bool wide = prelude.bits(type.scalar) == 64;
  const std::string builtin =
      fmt::format("({})__builtin_ctz{}", wide ? "uint64_t" : "uint32_t", wide ? "ll" : "");
  if (prelude.target().vector_bits > 0) return {fmt::format("{}({})", builtin, a.text), kUnary};
  const std::string name = "trailing_zeros_" + prelude.tag(type), c_type = prelude.type(type);
  prelude.helper(name, [&] {
    return inline_function(c_type, name, c_type + " a") +
           fmt::format(" {{\n#if defined(BC_GNU_C)\n  return {}(a);\n#else\n{}#endif\n}}\n",
                       builtin, trailing_zeros_in_table(wide));
  });
  return {fmt::format("{}({})", name, a.text)};
}

}  // namespace

Text unary_text(Prelude& prelude, Op op, Type type, const Text& a) {
  const Scalar s = type.scalar;
  BC_CHECK(!loop::is_half(s), "arithmetic on {} must have been legalised", loop::name_of(s));
  switch (op) {
    case Op::neg:
      return neg_text(prelude, type, a);
    case Op::abs:
      return abs_text(prelude, type, a);
    case Op::bit_not: {
      if (s == Scalar::boolean && !type.is_vector()) return {"!" + a.at(kPostfix), kUnary};
      Text result = {"~" + a.at(kPostfix), kUnary};
      result.mask_bits = a.mask_bits;
      if (!type.is_vector() && prelude.bits(s) < 32) {
        result.text = fmt::format("({}){}", prelude.type(type), result.text);
      }
      return result;
    }
    case Op::is_nan: {
      if (!loop::is_float(s)) return {"0"};
      const Text test = binary_text(prelude, Op::ne, type, {"a"}, {"a"});
      Text result = simple_helper(
          prelude, "is_nan", type,
          type.is_vector() ? prelude.mask_type(prelude.bits(s), type.lanes) : "int", test.text, a);
      result.mask_bits = prelude.bits(s);
      return result;
    }
    case Op::nearest:
      return nearest_text(prelude, type, a);
    case Op::even_bytes:
    case Op::odd_bytes:
      return byte_pair_text(prelude, op, type, a);
    case Op::lane_bits:
      return lane_bits_text(prelude, type, a);
    case Op::trailing_zeros:
      return trailing_zeros_text(prelude, type, a);
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
      return rounding_text(prelude, op, type, a);
    default:
      break;
  }
  BC_CHECK(false, "{} is not a unary operation", loop::name_of(op));
}

Text fma_text(Prelude& prelude, Type type, const Text& a, const Text& b, const Text& c) {
  const TargetInfo& target = prelude.target();
  BC_CHECK(target.has_fma && in_hardware(target, type.scalar),
           "{} has no fused multiply-add on {}; schedules must not use it", target.name,
           loop::name_of(type.scalar));
  const std::string name = "fma_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type);
    const char* suffix = type.scalar == Scalar::f32 ? "f" : "";
    std::string gcc = fmt::format("  return __builtin_fma{}(a, b, c);\n", suffix);
    const std::string instruction = x86_instruction(prelude, "vfmadd", type, "a, b, c", "");
    if (!instruction.empty() && target.vector_registers <= kFewRegisters) {
      // Given the choice, gcc multiplies straight from memory however often a vector is used, and
      // moves sums from register to register.
      gcc = fmt::format(
          "  __asm__(\"vfmadd231p{} %2, %1, %0\" : \"+x\"(c) : \"x\"(a), \"x\"(b));\n"
          "  return c;\n",
          type.scalar == Scalar::f32 ? "s" : "d");
    } else if (!instruction.empty()) {
      gcc = fmt::format("  return {};\n", instruction);
    } else if (type.is_vector()) {
      gcc = fmt::format(
          "  {} r;\n{}  return r;\n", c_type,
          by_lanes(type, fmt::format("__builtin_fma{}(a[lane], b[lane], c[lane])", suffix)));
    }
    gcc = with_mve(prelude, type, "  return __builtin_mve_vfmaq_fv4sf(c, a, b);\n", gcc);
    return inline_function(c_type, name, fmt::format("{0} a, {0} b, {0} c", c_type)) +
           fmt::format(
               " {{\n#if defined(__clang__)\n  return __builtin_elementwise_fma(a, b, c);\n#else\n"
               "{}#endif\n}}\n",
               gcc);
  });
  return {fmt::format("{}({}, {}, {})", name, a.text, b.text, c.text)};
}

Text fma_scalar_text(Prelude& prelude, Type type, const Text& a, const Text& b, const Text& c) {
  const bool is_real = loop::is_float(type.scalar);
  const std::string name = (is_real ? "fma_scalar_" : "mla_scalar_") + prelude.tag(type);
  const Text broadcast = broadcast_text(prelude, type, {"b"});
  const Text plain = is_real ? fma_text(prelude, type, {"a"}, broadcast, {"c"})
                             : binary_text(prelude, Op::add, type, {"c"},
                                           binary_text(prelude, Op::mul, type, {"a"}, broadcast));
  const std::string instruction =
      is_real ? "  return __builtin_mve_vfmaq_n_fv4sf(c, a, b);\n"
              : fmt::format(
                    "  return ({})__builtin_mve_vmlaq_n_sv4si((__simd128_int32_t)c,\n"
                    "      (__simd128_int32_t)a, b);\n",
                    prelude.type(type));
  prelude.helper(name, [&] {
    const std::string params =
        fmt::format("{0} a, {1} b, {0} c", prelude.type(type), prelude.type(type.with_lanes(1)));
    return inline_function(prelude.type(type), name, params) + " {\n" +
           with_mve(prelude, type, instruction, fmt::format("  return {};\n", plain.text)) + "}\n";
  });
  return {fmt::format("{}({}, {}, {})", name, a.text, b.text, c.text)};
}

}  // namespace backcast::c_backend
