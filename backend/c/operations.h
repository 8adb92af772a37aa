// Operations of the loop IR as C text with exactly its semantics: wrapping integers without
// undefined behaviour, min and max by comparison, nothing contracted, no call of a math library.
// Internal to backend/c.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/c/prelude.h"

namespace backcast::c_backend {

/// How tightly a piece of C text binds.
enum Rank : int { kPostfix, kUnary, kProduct, kSum, kLoose };

/// A C expression. Texts that are used twice by an operation must be cheap and free of effects;
/// helpers take care of that.
struct Text {
  std::string text;
  Rank rank = kPostfix;
  int mask_bits = Prelude::kMaskBits;  // vectors of bool
  std::optional<int64_t> constant;     // integers
  size_t wrapper = 0;  // length of a cast around an unsigned computation, at the beginning

  /// In parentheses if it binds less tightly than `needed`.
  std::string at(Rank needed) const { return rank <= needed ? text : "(" + text + ")"; }
};

Text constant_text(Prelude& prelude, const loop::ExprNode& node);
/// A float as a C literal that reads back to the same bits: "0.5f", "(-__builtin_inff())".
std::string float_literal(float value);
std::string double_literal(double value);
/// Text as a C string literal, quotes included.
std::string string_literal(std::string_view text);
/// An integer of a type as a C literal.
std::string integer_literal(loop::Scalar s, int64_t value);

/// The operator of a binary operation; InternalError where C has none.
const char* symbol_of(loop::Op op);

/// `type` is that of the operand(s).
Text unary_text(Prelude& prelude, loop::Op op, loop::Type type, const Text& a);
Text binary_text(Prelude& prelude, loop::Op op, loop::Type type, Text a, Text b);
/// dot2 of i32.
Text pair_product_text(Prelude& prelude, loop::Type type, const Text& a, const Text& b);
/// even_bytes or odd_bytes of i32.
Text byte_pair_text(Prelude& prelude, loop::Op op, loop::Type type, const Text& a);
/// op(a, b) of i32, dot4 or dot4_signed, and op(a, b) + sum.
Text byte_product_text(Prelude& prelude, loop::Op op, loop::Type type, const Text& a,
                       const Text& b);
Text byte_product_sum_text(Prelude& prelude, loop::Op op, loop::Type type, const Text& a,
                           const Text& b, const Text& sum);
/// All lanes of dot4_signed(a, b) added to a scalar; one instruction where the target has it.
Text summed_byte_product_text(Prelude& prelude, loop::Type type, const Text& a, const Text& b,
                              const Text& sum);
/// table[place] of bytes, lane by lane; the table has an element for every byte. `type`: of the
/// result.
Text byte_look_up_text(Prelude& prelude, loop::Type type, const std::string& table,
                       const Text& places);
/// Is a product of words (dot2, dot4, dot4_signed) added to a value of this type in one
/// instruction, or in an order that compilers must not change?
bool adds_products(const TargetInfo& target, loop::Op op, loop::Type type);
/// op(a, b) + sum where it is.
Text product_sum_text(Prelude& prelude, loop::Op op, loop::Type type, const Text& a, const Text& b,
                      const Text& sum);
Text fma_text(Prelude& prelude, loop::Type type, const Text& a, const Text& b, const Text& c);
/// The same with a scalar `b` in all lanes, where the target multiplies by one (scalar_factors).
Text fma_scalar_text(Prelude& prelude, loop::Type type, const Text& a, const Text& b,
                     const Text& c);
/// `type` is that of the values; the condition has as many lanes.
Text select_text(Prelude& prelude, loop::Type type, const Text& condition, Text a, Text b);
Text cast_text(Prelude& prelude, loop::Type from, loop::Type to, const Text& a);
/// Vectors: widths double or halve one step at a time and floats become integers of no other width,
/// because gcc goes lane by lane where an instruction does not do it at once.
Text convert_lanes(Prelude& prelude, loop::Scalar from, loop::Type to, const Text& a);
Text bitcast_text(Prelude& prelude, loop::Type from, loop::Type to, const Text& a);
Text broadcast_text(Prelude& prelude, loop::Type to, const Text& a);
Text ramp_text(Prelude& prelude, loop::Type type, const Text& base, const Text& stride);
/// Operands must be names: lanes are taken out of them one by one in the general case.
Text shuffle_text(Prelude& prelude, loop::Type result, const std::vector<loop::Type>& types,
                  std::vector<Text> args, const std::vector<int32_t>& indices);
Text reduce_text(Prelude& prelude, loop::Op op, loop::Type type, const Text& a);
Text convert_mask(Prelude& prelude, const Text& mask, int32_t lanes, int mask_bits);
/// gcc's builtin of an instruction on whole registers of floats, "__builtin_ia32_maxps256(a, b)"
/// for "max": empty where the target or the type has none. `merged` says, with a comma behind it,
/// what 512-bit forms take for lanes that are masked, of which there are none.
std::string x86_instruction(const Prelude& prelude, std::string_view name, loop::Type type,
                            std::string_view args, std::string_view merged);

/// `pointer` is the address of the first element: "x + i".
Text load_vector(Prelude& prelude, loop::Type type, const std::string& pointer);
/// The whole call, without semicolon.
std::string store_vector(Prelude& prelude, loop::Type type, const std::string& pointer,
                         const Text& value);
/// Do loads and stores convert between small integers and registers of this type?
bool converts_in_memory(const Prelude& prelude, loop::Scalar small, loop::Type type);
/// Elements of type `from` converted by such a load; a value converted by such a store.
Text load_converted(Prelude& prelude, loop::Scalar from, loop::Type to, const std::string& pointer);
std::string store_converted(Prelude& prelude, loop::Type from, loop::Scalar to,
                            const std::string& pointer, const Text& value);

}  // namespace backcast::c_backend
