// What an image can be asked to call: entry points, and the functions a training library has for
// its state; and the C table of them for the harness.
#pragma once

#include <string>
#include <vector>

#include "driver/compiler.h"

namespace backcast {

/// A pointer argument: its type for replies, with -1 for an extent that only a call decides.
struct DeviceArgument {
  ElementType element = ElementType::u8;
  Dims shape;
  int64_t max_bytes = 0;
};

struct DeviceCase {
  size_t model = 0;
  std::string name;                 // "run", "train_step", "init", "save"
  const EntryAbi* entry = nullptr;  // one of these two
  const StateFunction* function = nullptr;
  std::vector<DeviceArgument> inputs, outputs;
};

/// Every function of every model, the entry points of a model first. Of a model's state there is
/// one, in the image. `init` takes a u64 seed, `set_learning_rate` an f32; `save` gives a
/// checkpoint as u8[max] and how much of it is used as i64[], `load` takes the used part.
std::vector<DeviceCase> device_cases(const std::vector<const CompiledModel*>& models);

/// The C table of cases for the harness (harness.h).
std::string case_table(const std::vector<const CompiledModel*>& models,
                       const std::vector<DeviceCase>& cases, Emit emit);

}  // namespace backcast
