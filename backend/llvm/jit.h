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

/// The state of a training library in this process, aligned as the library demands. Copies refer
/// to the same memory.
class StateMemory {
 public:
  StateMemory(int64_t bytes, int64_t alignment);
  void* data() { return data_; }
  const void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<std::byte[]> storage_;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// Code of one program in this process; freed with the object.
class CompiledProgram {
 public:
  /// `target` must run here: host_target() or a lesser row of its architecture.
  CompiledProgram(const loop::Program& program, const TargetInfo& target,
                  const LlvmOptions& options = {});
  ~CompiledProgram();
  CompiledProgram(CompiledProgram&&) noexcept;
  CompiledProgram& operator=(CompiledProgram&&) noexcept;

  /// Address of an exported function, `<program>_<entry>` or one of the state's; InternalError if
  /// there is none.
  void* symbol(const std::string& name) const;

  /// Calls an entry point: inputs in order → outputs in order (extents are in their shapes). Live
  /// sizes come from the inputs' shapes where a dimension is a bare symbol; `sizes` gives the
  /// others. Throws CompileError with the status when the call answers anything but BC_OK.
  std::vector<Literal> run(const std::string& entry, const std::vector<Literal>& inputs,
                           const SymbolValues& sizes = {}) const;

  /// The same for a training library, on a state.
  std::vector<Literal> run(const std::string& entry, const std::vector<Literal>& inputs,
                           StateMemory& state, const SymbolValues& sizes = {}) const;
  /// A state as `<program>_init` makes it.
  StateMemory make_state(uint64_t seed = 0) const;

  /// See ObjectFile::stack_bytes.
  int64_t stack_bytes() const;

 private:
  struct Impl;
  std::vector<Literal> call(const std::string& entry, const std::vector<Literal>& inputs,
                            void* state, const SymbolValues& sizes) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace backcast
