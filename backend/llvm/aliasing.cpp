// See aliasing.h.
#include "backend/llvm/aliasing.h"

#include "ir/loop/liveness.h"

namespace backcast::llvm_backend {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;

/// Views of one buffer count as overlapping, whatever their offsets.
bool may_overlap(const loop::Program& program, BufferId a, BufferId b) {
  a = program.owner(a);
  b = program.owner(b);
  if (a == b) return true;
  const Buffer& x = program.buffer(a);
  const Buffer& y = program.buffer(b);
  if (x.kind != y.kind) return false;
  if (x.kind != BufferClass::arena && x.kind != BufferClass::state) return false;
  if (x.offset < 0 || y.offset < 0) return x.kind == BufferClass::state;
  return x.offset < y.offset + program.storage_bytes(b) &&
         y.offset < x.offset + program.storage_bytes(a);
}

void mark_overlaps(const loop::Program& program, const loop::Kernel& kernel, const loop::Step& step,
                   std::vector<bool>& exclusive) {
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool written = kernel.buffers[i].mode != loop::AccessMode::read ||
                           kernel.buffers[j].mode != loop::AccessMode::read;
      if (written && may_overlap(program, step.buffers[i], step.buffers[j])) {
        exclusive[i] = exclusive[j] = false;
      }
    }
  }
}

}  // namespace

std::vector<bool> exclusive_buffers(const loop::Program& program, const loop::Kernel& kernel) {
  std::vector<bool> exclusive(kernel.buffers.size(), true);
  for (const loop::EntryPoint& entry : program.entries) {
    for (const loop::Step* step : loop::flat_steps(entry.steps)) {
      if (step->kind == loop::StepKind::call && step->kernel == kernel.name) {
        mark_overlaps(program, kernel, *step, exclusive);
      }
    }
  }
  return exclusive;
}

}  // namespace backcast::llvm_backend
