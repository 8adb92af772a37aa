// What nothing needs: kernels, and results of kernels that compute several.
#include <algorithm>
#include <set>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/fuse.h"

namespace backcast {
namespace {

using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;

/// The steps of a list that something needs: last first, each adding what it reads.
std::vector<Step> live_steps(const Program& program, const std::vector<Step>& steps,
                             std::set<BufferId>& needed) {
  std::vector<Step> kept;
  for (size_t s = steps.size(); s-- > 0;) {
    Step step = steps[s];
    bool live = step.kind == loop::StepKind::check_finite;
    for (BufferId id : loop::written_buffers(program, step)) {
      live = live || needed.count(id) || program.buffer(id).kind == BufferClass::state;
    }
    if (!live) continue;
    for (BufferId id : step.buffers) {
      if (id >= 0) needed.insert(program.owner(id));
    }
    needed.merge(loop::extent_buffers(program, step));
    // What a trip reads at its beginning, the trip before has to write.
    for (size_t before = needed.size() + 1; before != needed.size();) {
      before = needed.size();
      step.body = live_steps(program, steps[s].body, needed);
      step.otherwise = live_steps(program, steps[s].otherwise, needed);
    }
    kept.push_back(std::move(step));
  }
  return {kept.rbegin(), kept.rend()};
}

/// Results that no step of the entry point reads leave the kernels that have others.
void drop_unread_results(Program& program, std::vector<Step>& steps,
                         const std::set<BufferId>& read) {
  for (Step& step : steps) {
    drop_unread_results(program, step.body, read);
    drop_unread_results(program, step.otherwise, read);
    if (step.kind != loop::StepKind::call) continue;
    Kernel& kernel = program.kernels.at(step.kernel);
    const loop::Definition* definition = loop::only_definition(kernel);
    if (definition == nullptr || definition->outputs.size() < 2) continue;
    loop::Definition kept = *definition;
    std::erase_if(kept.outputs, [&](const loop::DefinitionOutput& output) {
      for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        if (kernel.buffers[i].name != output.buffer) continue;
        const BufferId owner = program.owner(step.buffers[i]);
        return program.buffer(owner).kind == BufferClass::arena && !read.count(owner);
      }
      return false;
    });
    if (kept.outputs.empty() || kept.outputs.size() == definition->outputs.size()) continue;
    for (size_t i = kernel.buffers.size(); i-- > 0;) {
      const std::string& name = kernel.buffers[i].name;
      const bool written = kernel.buffers[i].mode != loop::AccessMode::read;
      const bool stays = std::any_of(kept.outputs.begin(), kept.outputs.end(),
                                     [&](const auto& output) { return output.buffer == name; });
      if (!written || stays) continue;
      kernel.buffers.erase(kernel.buffers.begin() + static_cast<int64_t>(i));
      step.buffers.erase(step.buffers.begin() + static_cast<int64_t>(i));
    }
    kernel.body = loop::define(std::move(kept));
  }
}

}  // namespace

Program remove_dead_kernels(const Program& program) {
  Program result = program;
  for (loop::EntryPoint& entry : result.entries) {
    std::set<BufferId> needed;
    for (BufferId id : entry.outputs) needed.insert(program.owner(id));
    entry.steps = live_steps(program, entry.steps, needed);
    std::set<BufferId> read;
    for (BufferId id : entry.outputs) read.insert(program.owner(id));
    for (const Step& step : entry.steps) read.merge(loop::read_buffers(program, step));
    drop_unread_results(result, entry.steps, read);
  }
  loop::drop_uncalled(result);
  return result;
}

}  // namespace backcast
