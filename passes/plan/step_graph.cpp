#include "passes/plan/step_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/step_access.h"

namespace backcast {
namespace {

using loop::BufferClass;
using loop::BufferId;
using loop::Program;
using loop::Step;
using loop::StepKind;

class GraphBuilder {
 public:
  GraphBuilder(const Program& program, StepGraph& graph) : program_(program), graph_(graph) {}

  void add(const Step& step) {
    const int32_t at = static_cast<int32_t>(graph_.steps.size());
    graph_.steps.emplace_back();
    const std::set<BufferId> reads = loop::read_buffers(program_, step);
    const std::set<BufferId> writes = loop::written_buffers(program_, step);
    for (const BufferId id : reads) {
      if (!last_write_.contains(id)) kept_.insert(id);
      depend(last_write_, id, at);
      readers_[id].push_back(at);
    }
    bool writes_state = false;
    for (const BufferId id : writes) {
      depend(last_write_, id, at);
      for (const int32_t reader : readers_[id]) before(reader, at);
      readers_[id].clear();
      last_write_[id] = at;
      writes_state = writes_state || program_.buffer(id).kind == BufferClass::state;
    }
    // State changes after the last check only, and checks keep their order.
    const bool checks = step.kind == StepKind::check_finite;
    if (last_check_ >= 0 && (checks || writes_state)) before(last_check_, at);
    if (checks) last_check_ = at;
    std::set<BufferId> touched = reads;
    touched.insert(writes.begin(), writes.end());
    for (const BufferId id : touched) {
      if (program_.buffer(id).kind != BufferClass::arena) continue;
      graph_.steps.back().storage.push_back(storage(id));
      ++graph_.uses[static_cast<size_t>(storage(id))];
    }
    if (step.kind == StepKind::call) add_takeovers(step);
  }

  /// What steps outside of the list touch, or a step of the next trip reads, lives on.
  void keep(const std::vector<Step>& all, const std::vector<Step>& listed) {
    if (&all == &listed) return;
    for (const Step& step : all) {
      for (const BufferId id : step.buffers) {
        if (id >= 0) kept_.insert(program_.owner(id));
      }
      keep(step.body, listed);
      keep(step.otherwise, listed);
    }
  }

  void finish() {
    for (const BufferId id : kept_) {
      const auto found = storages_.find(id);
      if (found != storages_.end()) ++graph_.uses[static_cast<size_t>(found->second)];
    }
    for (StepGraph::StepNode& step : graph_.steps) {
      std::sort(step.successors.begin(), step.successors.end());
      step.successors.erase(std::unique(step.successors.begin(), step.successors.end()),
                            step.successors.end());
    }
    for (const StepGraph::StepNode& step : graph_.steps) {
      for (const int32_t next : step.successors)
        ++graph_.steps[static_cast<size_t>(next)].predecessors;
    }
  }

 private:
  void before(int32_t early, int32_t late) {
    if (early != late) graph_.steps[static_cast<size_t>(early)].successors.push_back(late);
  }

  void depend(const std::map<BufferId, int32_t>& on, BufferId id, int32_t at) {
    const auto found = on.find(id);
    if (found != on.end()) before(found->second, at);
  }

  int32_t storage(BufferId id) {
    const auto [found, fresh] =
        storages_.try_emplace(id, static_cast<int32_t>(graph_.bytes.size()));
    if (fresh) {
      graph_.bytes.push_back(program_.storage_bytes(id));
      graph_.uses.push_back(0);
    }
    return found->second;
  }

  void add_takeovers(const Step& step) {
    const loop::Kernel& kernel = program_.kernels.at(step.kernel);
    const auto is_whole = [&](BufferId id) {
      return program_.buffer(id).view_of < 0 && program_.buffer(id).kind == BufferClass::arena;
    };
    for (size_t w = 0; w < kernel.buffers.size(); ++w) {
      for (const size_t r : loop::taken_over_by(kernel, w)) {
        const BufferId written = step.buffers[w], read = step.buffers[r];
        if (!is_whole(written) || !is_whole(read) || written == read) continue;
        if (program_.storage_bytes(read) < program_.storage_bytes(written)) continue;
        graph_.steps.back().takeovers.push_back({storage(written), storage(read)});
      }
    }
  }

  const Program& program_;
  StepGraph& graph_;
  std::map<BufferId, int32_t> last_write_, storages_;
  std::map<BufferId, std::vector<int32_t>> readers_;  // since the last write
  std::set<BufferId> kept_;
  int32_t last_check_ = -1;
};

}  // namespace

StepGraph::StepGraph(const Program& program, const std::vector<Step>& steps) {
  GraphBuilder builder(program, *this);
  for (const Step& step : steps) builder.add(step);
  for (const loop::EntryPoint& entry : program.entries) builder.keep(entry.steps, steps);
  builder.finish();
}

}  // namespace backcast
