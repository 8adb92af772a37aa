// f16 from and to f32 by the target's instructions; in C, f16 are their bits. Internal to
// backend/c.
#pragma once

#include "backend/c/operations.h"

namespace backcast::c_backend {

/// Whether one of the types is f16 and the other f32, between which the target converts.
bool is_half_conversion(const TargetInfo& target, loop::Scalar from, loop::Scalar to);
/// `a` converted, rounded to the nearest. What a compiler was not told that the target has is done
/// in integers.
Text half_conversion_text(Prelude& prelude, loop::Type from, loop::Type to, const Text& a);

}  // namespace backcast::c_backend
