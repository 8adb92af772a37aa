// Calls that differ from one before in what they read and write alone: bands of rows are many
// copies of few kernels, each of which is scheduled once.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

class KnownCalls {
 public:
  /// The program must outlive it.
  explicit KnownCalls(loop::Program& program) : program_(program) {}

  /// The kernel but for its name, and which constants and state a call passes.
  static std::string text_of(const loop::Program& program, const loop::Step& step);

  /// Makes a step what the call of this key became; false when none was remembered.
  bool repeat(const std::string& key, loop::Step& step) const;

  /// That `called`, a call of `kernel` as it was, became `step`. What was given room of its own is
  /// not remembered.
  void remember(const std::string& key, const loop::Kernel& kernel, const loop::Step& called,
                const loop::Step& step);

 private:
  struct Operand {
    bool is_constant = false;
    loop::BufferId id = -1;  // of a constant
    size_t position = 0;     // of any other one: among the call's
  };
  struct Known {
    std::string kernel;
    std::vector<Operand> operands;
  };

  loop::Program& program_;
  std::map<std::string, Known> known_;
};

}  // namespace backcast
