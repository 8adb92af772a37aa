// A training library of this process, in each of the forms Backcast makes: code in memory, an
// archive, C by each compiler.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/program.h"

namespace backcast::state_test {

/// tests/support/training_program.h, planned for the target.
loop::Program training_program(const std::string& target_name);
/// The same for this host.
loop::Program training_program();
/// The same in double precision.
loop::Program double_program();

/// "jit", "archive", and the installed ones of "gcc" and "clang".
std::vector<std::string> forms();

class BuiltLibrary {
 public:
  BuiltLibrary(const loop::Program& program, const std::string& form);
  ~BuiltLibrary();

  void* symbol(const std::string& name) const;  // without the program's prefix
  template <class F>
  F* function(const std::string& name) const {
    return reinterpret_cast<F*>(symbol(name));
  }

  /// Calls an entry point as its header has it; outputs come back garbage where it writes nothing.
  /// Outputs whose names `left_out` lists are null.
  int32_t call(const std::string& entry, void* state, const std::vector<Literal>& inputs,
               std::vector<Literal>& outputs, const std::vector<std::string>& left_out = {}) const;

 private:
  loop::Program program_;
  struct Code;
  std::unique_ptr<Code> code_;
};

/// Zeroed memory for a state, aligned to 64 bytes.
class StateBlock {
 public:
  explicit StateBlock(const loop::Program& program);
  unsigned char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// The variables as the interpreter has them.
  loop::StateValues values(const loop::Program& program) const;

 private:
  std::unique_ptr<unsigned char[]> storage_;
  unsigned char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace backcast::state_test
