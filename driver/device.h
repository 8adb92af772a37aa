// Runs generated libraries on the machine they were compiled for: links them with the device
// harness and runs the result natively or under QEMU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/library/abi.h"
#include "driver/compiler.h"
#include "ir/graph/literal.h"

namespace backcast {

/// What one call of a library did.
struct DeviceReply {
  int32_t status = 0;
  std::vector<Literal> outputs;
  int64_t stack_bytes = 0;  // painted stack that was written
  std::string findings;     // "output overrun, …"; empty for a clean run
};

/// One call: inputs in the model's order; sizes come from their shapes.
struct DeviceCall {
  size_t model = 0;  // index into the image's models
  std::vector<Literal> inputs;
  uint8_t fill = 0xA5;        // what arena and outputs hold before
  std::string entry = "";     // as device_cases() names it; empty: the first entry point
  uint32_t null_outputs = 0;  // bit i: output i is null, and no literal comes back
};

/// A program for the target with one or several models inside.
class DeviceImage {
 public:
  /// Writes, compiles and links in a temporary folder. CompileError when the target cannot be run
  /// here or a tool is missing (named); InternalError when generated code does not compile or link.
  DeviceImage(const std::vector<const CompiledModel*>& models, Emit emit);
  ~DeviceImage();

  /// InternalError when the program faults or does not end in time; `what()` holds what it printed.
  std::vector<DeviceReply> run(const std::vector<DeviceCall>& calls) const;

  int64_t image_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Values of the program's symbols for given inputs of an entry point. CompileError when shapes do
/// not fit.
SymbolValues sizes_for(const loop::Program& program, const std::vector<Literal>& inputs,
                       size_t entry = 0);

}  // namespace backcast
