// Program → machine code, through LLVM, in process: no external compiler. Neither this emitter nor
// the one for C decides anything: the loop IR says it all, and nothing is contracted, reassociated
// or vectorised behind its back.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

struct LlvmOptions {
  /// 0: hardly any optimisation, quick to compile (thousands of small programs under test).
  /// 2: what a library gets.
  int level = 2;
  /// Math functions stay functions instead of being expanded where they are used.
  bool outline_math = false;
  /// Hooks get the names of the model's nodes; without, null (saves their bytes).
  bool names = true;
};

/// An ELF object of one program.
struct ObjectFile {
  std::string bytes;
  /// Upper bound of the stack an entry point takes, hooks of the caller excluded.
  int64_t stack_bytes = 0;
  /// Frame of each function, by symbol.
  std::map<std::string, int64_t> frames;
};

/// Compiles a planned, legalised program. Each entry point becomes one exported function
/// (backend/library/abi.h); kernels, math functions and constants stay internal. Constants lie in
/// the section `.rodata.<program>`. InternalError for what the target cannot do without a math
/// library. Equal input gives equal bytes.
ObjectFile emit_object(const loop::Program& program, const TargetInfo& target,
                       const LlvmOptions& options = {});

/// The symbol of a kernel's function.
std::string kernel_symbol(const loop::Program& program, const std::string& kernel);

/// The module as LLVM assembly, after the passes of the level; large constants are printed.
std::string emit_llvm_text(const loop::Program& program, const TargetInfo& target,
                           const LlvmOptions& options = {});

}  // namespace backcast
