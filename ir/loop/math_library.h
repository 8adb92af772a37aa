// exp, log, tanh, sigmoid, erf, sin, … as straight-line loop IR, written in its text form, with a
// stated error; so that no libm is needed and both emitters agree bit for bit.
#pragma once

#include <map>
#include <string>

#include "ir/loop/stmt.h"

namespace backcast::loop {

/// Every function of the library, by name: `exp.f32`, `exp.f64`, `tanh.f32`, `f32_from_f16`, ….
/// Functions may call each other. `fma_variants`: bodies that use fma where the target has it.
const std::map<std::string, MathFunction>& math_library(bool fma_variants);

/// Stated maximum error in ULP of a float function; 0 for exact ones.
double stated_ulp(const std::string& function);

/// The functions a set of kernels needs (transitively), widened where they are called with several
/// lanes (`exp.f32x8`).
std::map<std::string, MathFunction> functions_for(const std::map<std::string, Kernel>& kernels,
                                                  bool fma_variants);

}  // namespace backcast::loop
