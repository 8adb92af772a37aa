#include "passes/schedule/known_calls.h"

#include <fmt/format.h>

#include "ir/loop/text.h"

namespace backcast {

using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Step;

std::string KnownCalls::text_of(const loop::Program& program, const Step& step) {
  std::string text = loop::print_anonymous(program.kernels.at(step.kernel));
  for (const BufferId id : step.buffers) {
    const BufferClass kind = program.buffer(program.owner(id)).kind;
    const bool fixed = kind == BufferClass::constant || kind == BufferClass::state;
    text += fixed ? fmt::format(" {}", id) : fmt::format(" of{}", static_cast<int>(kind));
  }
  return text;
}

bool KnownCalls::repeat(const std::string& key, Step& step) const {
  const auto found = known_.find(key);
  if (found == known_.end()) return false;
  Kernel& kernel = program_.kernels.at(step.kernel);
  Kernel same = program_.kernels.at(found->second.kernel);
  same.name = kernel.name;
  same.locs = kernel.locs;
  kernel = std::move(same);
  std::vector<BufferId> buffers;
  for (const Operand& operand : found->second.operands) {
    buffers.push_back(operand.is_constant ? operand.id : step.buffers[operand.position]);
  }
  step.buffers = std::move(buffers);
  return true;
}

void KnownCalls::remember(const std::string& key, const Kernel& kernel, const Step& called,
                          const Step& step) {
  const Kernel& scheduled = program_.kernels.at(step.kernel);
  Known known{step.kernel, {}};
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    Operand operand{program_.buffer(step.buffers[i]).kind == BufferClass::constant,
                    step.buffers[i]};
    for (size_t k = 0; k < called.buffers.size(); ++k) {
      if (operand.is_constant || kernel.buffers[k].name != scheduled.buffers[i].name) continue;
      if (called.buffers[k] != step.buffers[i]) return;
      operand.id = -1;
      operand.position = k;
    }
    if (!operand.is_constant && operand.id >= 0) return;
    known.operands.push_back(operand);
  }
  known_[key] = std::move(known);
}

}  // namespace backcast
