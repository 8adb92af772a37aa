#include "passes/schedule/drop_unused.h"

#include "ir/loop/step_access.h"

namespace backcast {
namespace {

using loop::BufferClass;
using loop::BufferId;

/// One flag per buffer. A view keeps what it is a part of.
std::vector<char> used_buffers(const loop::Program& program) {
  std::vector<char> used(program.buffers.size(), 0);
  const auto use = [&](BufferId id) {
    for (; id >= 0 && !used[static_cast<size_t>(id)]; id = program.buffer(id).view_of) {
      used[static_cast<size_t>(id)] = 1;
    }
  };
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const loop::Buffer& buffer = program.buffers[i];
    const bool passing = buffer.kind == BufferClass::constant || buffer.kind == BufferClass::arena;
    if (!passing && buffer.view_of < 0) use(static_cast<BufferId>(i));
  }
  for (const loop::EntryPoint& entry : program.entries) {
    for (const loop::Step& step : entry.steps) loop::for_each_buffer(step, use);
  }
  return used;
}

/// Old ids → new ones.
class Renumbering {
 public:
  explicit Renumbering(std::vector<BufferId> now) : now_(std::move(now)) {}

  BufferId of(BufferId id) const { return id < 0 ? id : now_[static_cast<size_t>(id)]; }

  void apply(loop::EntryPoint& entry) const {
    for (BufferId& id : entry.inputs) id = of(id);
    for (BufferId& id : entry.outputs) id = of(id);
    for (loop::Step& step : entry.steps) {
      loop::for_each_buffer(step, [this](BufferId& id) { id = of(id); });
    }
    std::map<BufferId, loop::ValueRange> ranges;
    for (const auto& [id, range] : entry.ranges) ranges.emplace(of(id), range);
    entry.ranges = std::move(ranges);
    std::set<BufferId> optional_outputs;
    for (const BufferId id : entry.optional_outputs) optional_outputs.insert(of(id));
    entry.optional_outputs = std::move(optional_outputs);
    std::map<BufferId, std::string> extents;
    for (const auto& [id, symbol] : entry.extents) extents.emplace(of(id), symbol);
    entry.extents = std::move(extents);
    entry.required_count = of(entry.required_count);
  }

 private:
  std::vector<BufferId> now_;
};

}  // namespace

loop::Program drop_unused(const loop::Program& program) {
  const std::vector<char> used = used_buffers(program);
  loop::Program result = program;
  result.buffers.clear();
  std::vector<BufferId> now(used.size(), -1);
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    now[i] = static_cast<BufferId>(result.buffers.size());
    result.buffers.push_back(program.buffers[i]);
  }
  const Renumbering renumbering(std::move(now));
  for (loop::Buffer& buffer : result.buffers) buffer.view_of = renumbering.of(buffer.view_of);
  for (loop::EntryPoint& entry : result.entries) renumbering.apply(entry);
  return result;
}

}  // namespace backcast
