#include "passes/schedule/call_cycles.h"

#include <optional>
#include <string>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/partition.h"

namespace backcast {

double call_cycles(const loop::Program& program, const loop::Kernel& kernel, const loop::Step& step,
                   const TargetInfo& target, const ZeroSkipping* skipping) {
  const auto is_constant = [&](const std::string& param) {
    return loop::passes_constant(program, kernel, step, param);
  };
  double sum = 0;
  const auto add = [&](const loop::Stmt& s) {
    if (s->kind != loop::StmtKind::define) return;
    const loop::Definition& definition = *s->definition;
    for (loop::Definition part :
         definition.accumulators.empty() ? partition(definition) : phases(definition)) {
      loop::Kernel seen = kernel;
      if (loop::only_definition(kernel)) coalesce(part, seen);
      const double cycles = schedule_cycles(part, seen, target, is_constant, true);
      const auto nest = skipping != nullptr ? skipping->choose(part, seen, step, true, true)
                                            : std::optional<SkippingNest>();
      sum += nest ? nest->part * cycles : cycles;
    }
  };
  loop::visit(kernel.body, add, nullptr);
  return sum;
}

}  // namespace backcast
