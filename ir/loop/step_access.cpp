// See step_access.h.
#include "ir/loop/step_access.h"

#include <algorithm>

#include "ir/loop/liveness.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

/// Adds the owners of what steps access in one of two ways.
void collect(const Program& program, const Step& first, bool writes, std::set<BufferId>& found) {
  std::vector<const Step*> pending = {&first};
  while (!pending.empty()) {
    const Step& step = *pending.back();
    pending.pop_back();
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      if (step.buffers[i] < 0) continue;
      const AccessMode mode = operand_mode(program, step, i);
      const bool matches = writes ? mode != AccessMode::read : mode != AccessMode::write;
      if (matches) found.insert(program.owner(step.buffers[i]));
    }
    for (const Step& inner : step.body) pending.push_back(&inner);
    for (const Step& inner : step.otherwise) pending.push_back(&inner);
  }
}

/// The symbols of what the step itself passes on: sizes, counts, places, what a copy is of.
std::set<std::string> symbols_of(const Program& program, const Step& step) {
  std::set<std::string> symbols;
  step.count.collect_symbols(symbols);
  for (const Dim& size : step.sizes) size.collect_symbols(symbols);
  for (const BufferId id : step.buffers) {
    if (id < 0) continue;
    byte_offset(program, id).collect_symbols(symbols);
    if (step.kind != StepKind::copy) continue;
    for (const Dim& extent : program.buffer(id).shape) extent.collect_symbols(symbols);
  }
  return symbols;
}

}  // namespace

std::set<BufferId> extent_buffers(const Program& program, const Step& step) {
  std::set<BufferId> found;
  for (const EntryPoint& entry : program.entries) {
    if (entry.extents.empty()) continue;
    const std::set<std::string> symbols = symbols_of(program, step);
    for (const auto& [id, symbol] : entry.extents) {
      if (symbols.contains(symbol)) found.insert(id);
    }
  }
  for (const Step& inner : step.body) found.merge(extent_buffers(program, inner));
  for (const Step& inner : step.otherwise) found.merge(extent_buffers(program, inner));
  return found;
}

std::set<std::string> measured_symbols(const Program& program) {
  std::set<std::string> symbols;
  for (const EntryPoint& entry : program.entries) {
    for (const auto& [id, symbol] : entry.extents) symbols.insert(symbol);
  }
  return symbols;
}

Dim byte_offset(const Program& program, BufferId id) {
  Dim bytes;
  for (; program.buffer(id).view_of >= 0; id = program.buffer(id).view_of) {
    const Buffer& view = program.buffer(id);
    bytes = bytes + view.view_offset * Dim(byte_size(view.element));
  }
  return bytes;
}

AccessMode operand_mode(const Program& program, const Step& step, size_t i) {
  if (step.kind == StepKind::call) return program.kernels.at(step.kernel).buffers.at(i).mode;
  return step.kind == StepKind::copy && i == 1 ? AccessMode::write : AccessMode::read;
}

bool runs_in_full(const Step& step) {
  return step.kind == StepKind::loop && step.count.is_constant() &&
         std::all_of(step.buffers.begin(), step.buffers.end(), [](BufferId id) { return id < 0; });
}

std::set<BufferId> written_buffers(const Program& program, const Step& step) {
  std::set<BufferId> found;
  collect(program, step, true, found);
  return found;
}

std::set<BufferId> read_buffers(const Program& program, const Step& step) {
  std::set<BufferId> found;
  collect(program, step, false, found);
  found.merge(extent_buffers(program, step));
  return found;
}

bool share_buffers(const std::set<BufferId>& a, const std::set<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId id) { return b.contains(id); });
}

std::vector<size_t> taken_over_by(const Kernel& kernel, size_t written) {
  std::vector<size_t> result;
  for (const std::string& name : kernel.buffers[written].over) {
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (kernel.buffers[i].name == name) result.push_back(i);
    }
  }
  return result;
}

void drop_unread(Kernel& kernel, Step& call) {
  std::set<std::string> used;
  visit(
      kernel.body,
      [&](const Stmt& s) {
        if (s->kind == StmtKind::store) used.insert(s->name);
        if (s->kind != StmtKind::define) return;
        for (const DefinitionOutput& output : s->definition->outputs) used.insert(output.buffer);
      },
      [&](const Expr& e) {
        if (e->kind == ExprKind::load || e->kind == ExprKind::access) used.insert(e->name);
      });
  for (size_t i = kernel.buffers.size(); i-- > 0;) {
    if (used.count(kernel.buffers[i].name)) continue;
    for (BufferParam& other : kernel.buffers) std::erase(other.over, kernel.buffers[i].name);
    kernel.buffers.erase(kernel.buffers.begin() + static_cast<int64_t>(i));
    call.buffers.erase(call.buffers.begin() + static_cast<int64_t>(i));
  }
}

std::map<std::string, int64_t> count_calls(const Program& program) {
  std::map<std::string, int64_t> calls;
  for (const EntryPoint& entry : program.entries) {
    for (const Step* step : flat_steps(entry.steps)) {
      if (step->kind == StepKind::call) ++calls[step->kernel];
    }
  }
  return calls;
}

void drop_uncalled(Program& program) {
  const std::map<std::string, int64_t> calls = count_calls(program);
  std::erase_if(program.kernels, [&](const auto& item) { return !calls.contains(item.first); });
}

bool writes_state(const Program& program, const EntryPoint& entry) {
  for (const Step& step : entry.steps) {
    for (const BufferId id : written_buffers(program, step)) {
      if (program.buffer(id).kind == BufferClass::state) return true;
    }
  }
  return false;
}

bool writes_state(const Program& program) {
  return std::any_of(program.entries.begin(), program.entries.end(),
                     [&](const EntryPoint& entry) { return writes_state(program, entry); });
}

BufferId buffer_of(const Kernel& kernel, const Step& call, std::string_view param) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    if (kernel.buffers[i].name == param) return call.buffers[i];
  }
  return -1;
}

void replace_buffers(Program& program, const std::map<BufferId, BufferId>& by) {
  const auto replace = [&](BufferId& id) {
    if (const auto found = by.find(id); found != by.end()) id = found->second;
  };
  for (EntryPoint& entry : program.entries) {
    for (Step& step : entry.steps) for_each_buffer(step, replace);
    for (BufferId& id : entry.outputs) replace(id);
  }
}

bool passes_constant(const Program& program, const Kernel& kernel, const Step& call,
                     std::string_view param) {
  const BufferId id = buffer_of(kernel, call, param);
  if (id < 0) return false;
  const Buffer& buffer = program.buffer(id);
  return buffer.kind == BufferClass::constant && buffer.view_of < 0;
}

int64_t constant_bytes(const Program& program) {
  int64_t bytes = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind != BufferClass::constant || buffer.view_of >= 0) continue;
    bytes += static_cast<int64_t>(buffer.value.bytes().size());
  }
  return bytes;
}

}  // namespace backcast::loop
