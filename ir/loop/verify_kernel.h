// The half of the verifier that looks at one kernel or function. Internal to ir/loop.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/loop/stmt.h"

namespace backcast::loop {

/// `functions`: what calls may name besides the math library.
void verify_kernel(const Kernel& kernel, const std::map<std::string, MathFunction>& functions,
                   std::string_view after);
void verify_function(const MathFunction& function,
                     const std::map<std::string, MathFunction>& functions, std::string_view after);
/// Throws InternalError "after <pass>: <place>: <message>".
[[noreturn]] void verification_error(std::string_view after, const std::string& place,
                                     const std::string& message);

}  // namespace backcast::loop
