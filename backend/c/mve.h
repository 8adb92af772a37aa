// MVE (Arm's vectors for microcontrollers) for gcc 12, which compares and converts such vectors
// lane by lane, and takes the predicates of its builtins through general registers. clang needs
// none of this. Internal to backend/c.
#pragma once

#include <string>

#include "backend/c/operations.h"

namespace backcast::c_backend {

/// Body of a helper on values of this type: `instruction` (whole statements) behind an #if, for gcc
/// and, where asked for, clang; `otherwise` elsewhere. `otherwise` alone where the type is no
/// register of the target's MVE, or there is no instruction.
std::string with_mve(const Prelude& prelude, loop::Type type, const std::string& instruction,
                     const std::string& otherwise, bool by_clang = false);
/// Statements that return, lane by lane, a where a op b (parameters of the helper) and b elsewhere;
/// empty where there is no instruction.
std::string mve_choice(Prelude& prelude, loop::Op op, loop::Type type);
/// The same that return the mask of a op b.
std::string mve_comparison(Prelude& prelude, loop::Op op, loop::Type type);
/// Statements that return `a` converted: between i32 and f32, from small integers to i32 and back.
std::string mve_conversion(Prelude& prelude, loop::Scalar from, loop::Type to);
/// Do loads widen these integers to registers of this type (i32), and stores narrow them?
bool mve_converts_in_memory(const Prelude& prelude, loop::Scalar small, loop::Type word);
/// Statements that return the small integers at `p` as a register, and that leave the register `v`
/// there.
std::string mve_widening_load(Prelude& prelude, loop::Scalar from, loop::Type to);
std::string mve_narrowing_store(const Prelude& prelude, loop::Scalar to);

}  // namespace backcast::c_backend
