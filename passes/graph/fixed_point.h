// Rounding between products of integers on cores that compute floats by subroutines: the integer
// nearest to a sum of scaled integers, by a sum of products in 64 bits, or 32 where these do.
//   round(Σ float(x)·c + b) is (Σ x·M + B) >> s with M = c·2^s and B = (b + ½)·2^s,
// as in B. Jacob et al., Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference, 2018, but with all bits of the product.
//   Requires: simplified, after requantise.
//   Ensures: integers nearest to exact sums, halves to even ones; f32 rounds before it rounds.
#pragma once

#include "ir/graph/module.h"
#include "ir/target/target_info.h"

namespace backcast {

Module fixed_point(const Module& module, const TargetInfo& target);

}  // namespace backcast
