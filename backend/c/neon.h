// Internal to backend/c: vectors of 32-bit Arm with NEON as instructions. gcc has its own reasons
// to take floats there lane by lane, and repeats a lane by looking bytes up: NEON takes subnormal
// numbers for zeros, which it must be told to allow together with much else.
#pragma once

#include <optional>
#include <vector>

#include "backend/c/operations.h"

namespace backcast::c_backend {

/// What includes the instructions; in front of every function.
std::string neon_include();

/// Whether a binary operation on vectors of f32 has an instruction there.
bool is_neon_operation(const TargetInfo& target, loop::Op op, loop::Type type);
Text neon_binary_text(Prelude& prelude, loop::Op op, loop::Type type, const Text& a, const Text& b);
Text neon_negated_text(Prelude& prelude, loop::Type type, const Text& a);

/// The factors of a product that one instruction adds to a sum: floats, between which and the
/// addition it rounds, or integers of 16 bits that become words. Empty: there is no such.
std::vector<loop::Expr> neon_factors(const TargetInfo& target, const loop::ExprNode& product);
/// a * b + sum; with `lane` that lane of b instead of b.
Text neon_product_sum_text(Prelude& prelude, loop::Type factor, const Text& a, const Text& b,
                           const Text& sum, std::optional<int32_t> lane);

/// Whether a shuffle is one lane of its operand, again and again, in a register.
bool repeats_neon_lane(const Prelude& prelude, const loop::ExprNode& shuffle);
Text repeated_neon_lane_text(Prelude& prelude, loop::Type type, const Text& a, int32_t lane);

}  // namespace backcast::c_backend
