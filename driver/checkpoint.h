// The checkpoints of training libraries, read on a computer (format: runtime-c/bc_runtime.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// Part of an initializer, or all of it (axis -1), or something that training added.
struct CheckpointVariable {
  uint64_t name = 0;
  int64_t start = 0;
  int64_t axis = -1;
  StateRole role = StateRole::parameter;
  ElementType element = ElementType::f32;
  std::string_view bytes;  // of the file
};

struct Checkpoint {
  uint64_t model_hash = 0;
  std::vector<CheckpointVariable> variables;
};

/// What `bytes` hold, to which the result refers. CompileError for anything but one whole,
/// unchanged checkpoint of the version this program knows.
Checkpoint parse_checkpoint(std::string_view bytes);

}  // namespace backcast
