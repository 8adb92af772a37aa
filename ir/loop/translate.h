// Kernels translated for the interpreter's machine. Internal to ir/loop.
#pragma once

#include <deque>
#include <map>
#include <span>

#include "ir/loop/machine.h"
#include "ir/loop/stmt.h"

namespace backcast::loop::machine {

/// A kernel as instructions.
struct Code {
  std::string name;
  std::vector<Instruction> instructions;
  std::deque<std::vector<int32_t>> lane_slots;
  std::vector<Slot> initial;             // every slot's first value
  std::vector<std::string> array_names;  // buffers in order, then allocations
  std::vector<int32_t> size_slots;       // of Kernel::sizes
  size_t buffer_count = 0;
};

/// InternalError, naming kernel and expression, for what makes no sense.
Code translate(const Kernel& kernel, const std::map<std::string, MathFunction>& functions);

/// Runs on buffers (with their live numbers of elements) and size values, in order.
void run(const Code& code, const std::vector<Array>& buffers, const std::vector<int64_t>& sizes);

}  // namespace backcast::loop::machine
