// Constant tensors as C: arrays in the source, or one binary file that the assembler includes.
// Internal to backend/c.
#pragma once

#include <map>
#include <string>

#include "backend/library/abi.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast::c_backend {

struct ConstantsText {
  std::string text;                             // of the source
  std::string binary;                           // bytes of the file, if any
  std::map<loop::BufferId, std::string> names;  // pointer expression of each constant
  std::string initial;  // pointer expression of the state's initial values; empty: all are zero
  std::map<loop::BufferId, std::string> initial_offsets;  // of each variable among them
};

/// The constants that steps mention. More than `inline_bytes` in total go into a file `file_name`.
ConstantsText constants_text(const loop::Program& program, const Abi& abi, const TargetInfo& target,
                             int64_t inline_bytes, const std::string& file_name);

}  // namespace backcast::c_backend
