#include "passes/schedule/schedule.h"

#include <fmt/format.h>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/partition.h"

namespace backcast {
namespace {

using loop::Definition;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::Stmt;
using loop::StmtKind;

class Scheduling {
 public:
  Scheduling(const Program& program, const TargetInfo& target)
      : target_(target), result_(program) {}

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) {
      for (Step& step : entry.steps) {
        if (step.kind == loop::StepKind::call) schedule_step(step);
      }
    }
    return std::move(result_);
  }

 private:
  void schedule_step(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    int definitions = 0;
    loop::visit(
        kernel.body, [&](const Stmt& s) { definitions += s->kind == StmtKind::define; }, nullptr);
    std::set<std::string> taken;
    kernel.body = loop::rewrite(kernel.body, nullptr, [&](const Stmt& stmt) -> Stmt {
      if (stmt->kind != StmtKind::define) return stmt;
      return expand_definition(*stmt->definition, kernel, step, definitions == 1, taken);
    });
    kernel.body = loop::simplify(kernel.body, result_.symbols);
  }

  Stmt expand_definition(const Definition& definition, Kernel& kernel, Step& step, bool alone,
                         std::set<std::string>& taken) {
    if (!definition.accumulators.empty()) {
      return loop::with_unique_names(expand_one(definition, kernel, step), taken);
    }
    std::vector<Definition> parts = partition(definition);
    if (alone && parts.size() == 1) coalesce(parts[0], kernel);
    std::vector<Stmt> nests;
    for (const Definition& part : parts) {
      nests.push_back(loop::with_unique_names(expand_one(part, kernel, step), taken));
    }
    return loop::block(nests);
  }

  Stmt expand_one(const Definition& definition, Kernel& kernel, Step& step) {
    const auto buffer_of = [&](const std::string& param) -> loop::BufferId {
      for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        if (kernel.buffers[i].name == param) return step.buffers[i];
      }
      return -1;
    };
    NestSchedule chosen =
        choose_schedule(definition, kernel, target_, [&](const std::string& param) {
          const loop::Buffer& buffer = result_.buffer(buffer_of(param));
          return buffer.kind == loop::BufferClass::constant && buffer.view_of < 0;
        });
    Stmt nest = expand(definition, kernel, chosen);
    for (const auto& [param, packing] : chosen.packed) {
      const loop::Buffer source = result_.buffer(buffer_of(param));
      loop::Buffer packed = source;
      packed.name = fmt::format("{}_{}", source.name, kernel.name);
      packed.value = pack(definition, kernel, chosen, param, source.value);
      packed.shape = {Dim(packed.value.element_count())};
      packed.alignment = std::max(byte_size(packed.element), int64_t{target_.vector_bits} / 8);
      for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        if (kernel.buffers[i].name != param) continue;
        kernel.buffers[i].shape = packed.shape;
        step.buffers[i] = static_cast<loop::BufferId>(result_.buffers.size());
      }
      result_.buffers.push_back(std::move(packed));
    }
    return nest;
  }

  const TargetInfo& target_;
  Program result_;
};

}  // namespace

Program schedule(const Program& program, const TargetInfo& target) {
  return Scheduling(program, target).run();
}

}  // namespace backcast
