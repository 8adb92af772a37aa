// Factors of integer products that are bytes less a zero point, and how two of them that are only
// known at run time are multiplied.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph/module.h"
#include "ir/ops/op_attrs.h"
#include "ir/target/target_info.h"

namespace backcast {

/// value = bytes - zero, with values of the function that has it.
struct OffsetBytes {
  ValueId bytes;                // of one byte each
  std::optional<ValueId> zero;  // a scalar; nothing: zero
  bool is_signed = false;
};
std::optional<OffsetBytes> offset_bytes(const Function& function, ValueId value);

/// The signs that two factors are given.
struct FactorSigns {
  bool lhs = false, rhs = false;
};
/// Those that the target multiplies at the least cost: bytes of the other sign are shifted by 128,
/// and each factor with a zero point takes sums of the other. Nothing where it multiplies none.
std::optional<FactorSigns> signs_for(const OffsetBytes& lhs, const OffsetBytes& rhs,
                                     const TargetInfo& target);

/// A product of matrices with what it sums along last in both operands.
struct SumsLast {
  TransposeAttrs lhs, rhs;        // of the operands
  PadAttrs lhs_spare, rhs_spare;  // fills words with zeros
  DotGeneralAttrs dot;
  int64_t length = 0;                 // of the sum
  BroadcastAttrs lhs_sums, rhs_sums;  // of sums of an operand along it to the result
};
/// Nothing for other contractions or shapes that are not constant, or where an operand is
/// rearranged for fewer than eight uses.
std::optional<SumsLast> sums_last(const Node& contraction, const Shape& lhs, const Shape& rhs,
                                  int64_t word);

}  // namespace backcast
