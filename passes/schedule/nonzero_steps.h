// Sums that leave out what a factor of zero adds: behind a rectifier, y[n] = Σ x[k]·w[k, n] needs
// only the rows of w where x[k] is not zero. A kernel that runs before lists these k, so that no
// step waits for a branch that nobody can predict.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

struct NonzeroSteps {
  std::string factor;                     // the parameter whose zeros are left out
  loop::Expr first;                       // its flat index at step 0; step k reads first + k
  int64_t count = 0;                      // of all steps
  loop::Scalar entry = loop::Scalar::u8;  // of the list: the number of steps listed, then each
};

/// The steps of a chosen schedule that are worth a list, if they are; the schedule then takes them
/// in the factor's order, one at a time.
///   `is_rectified`: whether about half of a parameter's elements are zero; `is_weight`: whether it
///   is a constant or trained, and its infinities and NaNs, which zero does not take out of a sum,
///   need not be minded.
///   `program_bytes`: of all constants of the program, which displace one another from caches.
std::optional<NonzeroSteps> choose_nonzero_steps(
    const loop::Definition& definition, const loop::Kernel& kernel, int64_t program_bytes,
    const TargetInfo& target, const std::function<bool(const std::string&)>& is_rectified,
    const std::function<bool(const std::string&)>& is_weight, NestSchedule& schedule);

/// The kernel's body that writes the list to parameter `list`.
loop::Stmt list_nonzero(const NonzeroSteps& steps, loop::Scalar factor, const std::string& list);

}  // namespace backcast
