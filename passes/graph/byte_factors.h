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

/// What words of neighbours along a product's sum are made of, step by step.
struct WordOperand {
  PadAttrs spare;        // zeros that fill words
  ReshapeAttrs split;    // of what is summed along into words
  TransposeAttrs order;  // batch, then rows and sum, its last part last
  Ints summed;           // dimensions of the result
};

/// A product of matrices in words along the sum. Where the second operand has its rows behind each
/// other along the sum, a word lies across four of them, and words beside it are of the next
/// column.
struct WordProduct {
  WordOperand lhs, rhs;
  DotGeneralAttrs dot;
  int64_t length = 0;                 // of the sum
  BroadcastAttrs lhs_sums, rhs_sums;  // of sums of an operand along it to the result
};
/// Nothing for other contractions or shapes that are not constant, or where an operand is
/// rearranged for fewer than eight uses. `rhs`: the second operand, whose making tells how it lies.
std::optional<WordProduct> word_product(const Function& function, const Node& contraction,
                                        const Shape& lhs, ValueId rhs, int64_t word);

}  // namespace backcast
