#include "passes/lower/join_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::BufferClass;
using loop::BufferId;
using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

// Less is read twice from the first cache.
constexpr int64_t kLeastBytes = 16384;
constexpr size_t kMaxParams = 24;

class Joining {
 public:
  Joining(Program& program, std::vector<Step>& steps) : program_(program), steps_(steps) {}

  void run() {
    for (size_t u = 0; u < steps_.size(); ++u) {
      const std::optional<BufferId> state = updated_state(steps_[u]);
      for (size_t p = u; state && p-- > 0;) {
        const std::optional<size_t> param = reads_all(steps_[p], *state);
        if (!param || !may_move(u, p, *state)) continue;
        join(p, u, *param);
        steps_.erase(steps_.begin() + static_cast<int64_t>(u--));
        break;
      }
    }
  }

 private:
  const Definition* definition_of(const Step& step) const {
    if (step.kind != StepKind::call) return nullptr;
    return loop::only_definition(program_.kernels.at(step.kernel));
  }

  const Kernel& kernel_of(const Step& step) const { return program_.kernels.at(step.kernel); }

  /// The large state tensor that a step replaces element by element, all of it in place, with
  /// whatever else of state it replaces.
  std::optional<BufferId> updated_state(const Step& step) const {
    const Definition* definition = definition_of(step);
    if (definition == nullptr || !definition->accumulators.empty()) return std::nullopt;
    const Kernel& kernel = kernel_of(step);
    if (cost(*definition).indirect > 0 || !kernel.sizes.empty()) return std::nullopt;
    for (const loop::DefinitionOutput& output : definition->outputs) {
      if (output.indices.size() != definition->axes.size()) return std::nullopt;
      for (size_t i = 0; i < output.indices.size(); ++i) {
        const Expr& index = output.indices[i];
        if (index->kind != ExprKind::var || index->name != definition->axes[i].name) {
          return std::nullopt;
        }
      }
    }
    std::optional<BufferId> found;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (kernel.buffers[i].mode == AccessMode::read) continue;
      const BufferId owner = program_.owner(step.buffers[i]);
      if (program_.buffer(owner).kind != BufferClass::state || owner == step.buffers[i]) {
        return std::nullopt;
      }
      const std::vector<size_t> over = loop::taken_over_by(kernel, i);
      const bool in_place = std::any_of(over.begin(), over.end(), [&](size_t j) {
        return step.buffers[j] == owner && kernel.buffers[j].shape == kernel.buffers[i].shape;
      });
      if (in_place && program_.storage_bytes(owner) >= kLeastBytes) found = owner;
    }
    return found;
  }

  /// The position of the parameter through which a product reads each element of a state tensor,
  /// once.
  std::optional<size_t> reads_all(const Step& step, BufferId state) const {
    const Definition* definition = definition_of(step);
    if (definition == nullptr || definition->accumulators.size() != 1) return std::nullopt;
    if (definition->accumulators[0].combine != loop::Combine::sum) return std::nullopt;
    const Kernel& kernel = kernel_of(step);
    std::optional<size_t> position;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (program_.owner(step.buffers[i]) != state) continue;
      if (position || step.buffers[i] != state) return std::nullopt;
      position = i;
    }
    if (!position || kernel.buffers[*position].mode != AccessMode::read) return std::nullopt;
    int64_t reads = 0;
    std::set<std::string> indices;
    for_each_access(*definition, [&](const loop::ExprNode& read, bool in_reduction) {
      if (read.name != kernel.buffers[*position].name) return;
      reads += in_reduction ? 1 : 2;
      for (const Expr& index : read.args) {
        if (index->kind == ExprKind::var) indices.insert(index->name);
        reads += index->kind != ExprKind::var && !loop::is_constant(index, 0);
      }
    });
    int64_t elements = 1;
    for (const Dim& extent : kernel.buffers[*position].shape) {
      if (!extent.is_constant()) return std::nullopt;
      elements *= extent.constant();
    }
    if (reads != 1 || points(*definition, program_.symbols) != elements) return std::nullopt;
    for (const std::vector<loop::Axis>* axes : {&definition->axes, &definition->reduce_axes}) {
      for (const loop::Axis& axis : *axes) {
        if (!loop::is_constant(axis.extent, 1) && !indices.count(axis.name)) return std::nullopt;
      }
    }
    return position;
  }

  /// Whether step u may run right after the earlier p, as a part of it.
  bool may_move(size_t u, size_t p, BufferId state) const {
    const std::set<BufferId> reads = loop::read_buffers(program_, steps_[u]);
    const std::set<BufferId> writes = loop::written_buffers(program_, steps_[u]);
    for (size_t t = p; t < u; ++t) {
      if (steps_[t].kind == StepKind::check_finite) return false;
      for (BufferId id : loop::written_buffers(program_, steps_[t])) {
        if (reads.count(id) || writes.count(id)) return false;
      }
      for (BufferId id : loop::read_buffers(program_, steps_[t])) {
        if (writes.count(id) && (t != p || id != state)) return false;
      }
    }
    return kernel_of(steps_[p]).buffers.size() + steps_[u].buffers.size() <= kMaxParams;
  }

  void join(size_t p, size_t u, size_t state_param) {
    Step& step = steps_[p];
    Kernel joined = kernel_of(step);
    const Kernel& update = kernel_of(steps_[u]);
    const size_t own = joined.buffers.size();
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < update.buffers.size(); ++i) {
      const BufferParam& param = update.buffers[i];
      const BufferId id = steps_[u].buffers[i];
      const auto first = step.buffers.begin(), last = first + static_cast<int64_t>(own);
      const auto known = std::find(first, last, id);
      if (param.mode == AccessMode::read && known != last) {
        names[param.name] = joined.buffers[static_cast<size_t>(known - first)].name;
        continue;
      }
      BufferParam added = param;
      const char* base = param.mode == AccessMode::read ? "a" : "out";
      for (int n = 0; joined.find(added.name = fmt::format("{}{}", base, n)) != nullptr;) ++n;
      names[param.name] = added.name;
      joined.buffers.push_back(added);
      step.buffers.push_back(id);
    }
    const std::string state_name = joined.buffers[state_param].name;
    for (size_t i = 0; i < joined.buffers.size(); ++i) {
      std::vector<std::string>& over = joined.buffers[i].over;
      if (i < own) {
        // The update may still need what the product has already written over.
        std::erase_if(over, [&](const std::string& name) {
          return std::any_of(names.begin(), names.end(),
                             [&](const auto& item) { return item.second == name; });
        });
        continue;
      }
      for (std::string& name : over) name = names.at(name);
      std::erase_if(over, [&](const std::string& name) {
        const bool of_product =
            std::any_of(joined.buffers.begin(), joined.buffers.begin() + static_cast<int64_t>(own),
                        [&](const BufferParam& param) { return param.name == name; });
        return of_product && name != state_name;
      });
    }
    joined.body = loop::block({joined.body, loop::rename_buffers(update.body, names)});
    for (const Loc& loc : update.locs) {
      if (std::find(joined.locs.begin(), joined.locs.end(), loc) == joined.locs.end()) {
        joined.locs.push_back(loc);
      }
    }
    program_.kernels.at(step.kernel) = std::move(joined);
  }

  Program& program_;
  std::vector<Step>& steps_;
};

}  // namespace

Program join_updates(const Program& program) {
  Program result = program;
  for (loop::EntryPoint& entry : result.entries) Joining(result, entry.steps).run();
  loop::drop_uncalled(result);
  return result;
}

}  // namespace backcast
