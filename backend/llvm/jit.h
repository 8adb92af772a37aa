// Compiles a program for the host and calls it in process: `backcast run`, and the tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/llvm/emit.h"
#include "ir/graph/literal.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// Code of one program in this process; freed with the object.
class CompiledProgram {
 public:
  /// `target` must run here: host_target() or a lesser row of its architecture.
  CompiledProgram(const loop::Program& program, const TargetInfo& target,
                  const LlvmOptions& options = {});
  ~CompiledProgram();
  CompiledProgram(CompiledProgram&&) noexcept;
  CompiledProgram& operator=(CompiledProgram&&) noexcept;

  /// Address of an exported function, `<program>_<entry>`; InternalError if there is none.
  void* symbol(const std::string& name) const;

  /// Calls an entry point: inputs in order → outputs in order. Live sizes come from the inputs'
  /// shapes where a dimension is a bare symbol; `sizes` gives the others. Throws CompileError with
  /// the status when the call answers anything but BC_OK.
  std::vector<Literal> run(const std::string& entry, const std::vector<Literal>& inputs,
                           const SymbolValues& sizes = {}) const;

  /// See ObjectFile::stack_bytes.
  int64_t stack_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace backcast
