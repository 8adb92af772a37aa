// Products of quantised operands become products of integers: dot(s·(q - z), t·(r - y)) is
// s·t·dot(q - z, r - y), exact in i32, where a zero point z and a scale s are constants and scales
// do not change along what is contracted. Operands of integer products are kept in the narrowest
// type that targets multiply quickly: readers convert. Bytes that only with their zero point are of
// a kind that is multiplied keep it, in the border, too; z·sum(r) is taken off, and y·sum(q) as
// well where both operands are data, which then are rearranged in words of what is summed along.
// Input channels of images are filled up to words with zeros.
//   Requires: one function.  Ensures: the same values to the rounding of the floating-point form,
//   which this is at least as near to the exact result as.
#pragma once

#include "ir/graph/module.h"
#include "ir/target/target_info.h"

namespace backcast {

Module integer_products(const Module& module, const TargetInfo& target);

}  // namespace backcast
