// Definitions taken apart where one nest cannot serve both sides of memory: what is computed in
// vectors along one axis and stored along another goes through a buffer, as does an operand that
// several nests read.
#pragma once

#include <string>

#include "passes/schedule/nest.h"

namespace backcast {

/// `first` writes the buffer, `second` reads it; both as kernel parameter `buffer` of `shape`.
struct Staged {
  loop::Definition first, second;
  Dims shape;
};

/// The sums of a definition with one accumulator, contiguous along `vector_axis`, and what the
/// outputs make of them, in the order of the first output.
///   Requires: static extents.
Staged stage_sums(const loop::Definition& definition, const loop::Kernel& kernel,
                  const std::string& vector_axis, const std::string& buffer);

/// Operand `name`, which `schedule` would rearrange, copied so that it is contiguous along the
/// vector axis; `second` is the definition reading the copy.
Staged stage_operand(const loop::Definition& definition, const NestSchedule& schedule,
                     const std::string& name, const std::string& buffer);

}  // namespace backcast
