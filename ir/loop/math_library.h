// exp, log, tanh, sigmoid, erf, sin, … as straight-line loop IR with a stated error, so that no
// libm is needed and both emitters agree bit for bit.
//
// Names: `<function>.<type>` (exp.f32, pow.f64), conversions `<to>_from_<from>` on u16 bit
// patterns. Program::functions holds what is called on n > 1 lanes as a widened function,
// `exp.f32x8`, under the name that called_name() gives for the call.
#pragma once

#include <map>
#include <string>

#include "ir/loop/stmt.h"

namespace backcast::loop {

/// Every function of the library, by name. With one argument unless listed:
///   exp expm1 log log1p sin cos tan asin acos atan sinh cosh asinh acosh atanh tanh sigmoid erf
///   pow(x, y)   C's special cases        fmod(x, y)   C's fmod, exact for all arguments
///   floor ceil trunc round_even          exact; for targets without rounding instructions
///   sqrt        correctly rounded; for targets without the instruction (sqrt.f64 uses f32's)
///   f32_from_f16 f32_from_bf16 f16_from_f32 f16_from_f64 bf16_from_f32 bf16_from_f64
/// sin, cos and tan keep their stated error for |x| <= 1e5; beyond it sin and cos stay in [-1, 1].
/// Functions may call each other. `fma_variants`: bodies that use fma, for targets that have it.
const std::map<std::string, MathFunction>& math_library(bool fma_variants);

/// Stated maximum error in ULP of a float function; 0 for exact or correctly rounded ones.
double stated_ulp(const std::string& function);

/// The name of a function on `lanes` lanes: "exp.f32" with 8 is "exp.f32x8", with 1 itself.
std::string lane_name(const std::string& function, int32_t lanes);

/// The key of the function a call means: lane_name(name, lanes of its type). The call itself may
/// spell the scalar name or the widened one; widened functions spell the widened one.
std::string called_name(const ExprNode& call);

/// The functions a set of kernels needs, with what those call, by called name; widened where the
/// name says lanes.
std::map<std::string, MathFunction> functions_for(const std::map<std::string, Kernel>& kernels,
                                                  bool fma_variants);
/// The same out of another library: one that was legalised for a target.
std::map<std::string, MathFunction> functions_for(
    const std::map<std::string, Kernel>& kernels,
    const std::map<std::string, MathFunction>& library);

}  // namespace backcast::loop
