#include "passes/schedule/panel.h"

#include <algorithm>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;

void pack_in_panels(NestSchedule& schedule, const Definition& definition) {
  const auto extent = [&](const std::string& name) {
    for (const Axis& axis : definition.axes) {
      if (axis.name == name) return static_extent(axis).value_or(0);
    }
    return int64_t{0};
  };
  int64_t blocks = 0;
  for (const VectorSegment& segment : schedule.vector_segments) blocks += segment.count;
  for (auto& [name, packing] : schedule.packed) {
    packing.in_panel = false;
    if (!packing.at_run_time || blocks * packing.outer_count() < 2) continue;
    // A loop outside of the blocks that the operand does not depend on would repeat the work.
    bool repeats = false;
    for (const std::string& axis : schedule.order) {
      if (axis == schedule.vector_axis) break;
      const bool chooses = std::count(packing.outer.begin(), packing.outer.end(), axis) > 0;
      repeats = repeats || (!chooses && extent(axis) != 1);
    }
    // The loops over what chooses a panel have to stand outside, too.
    const auto vector_at =
        std::find(schedule.order.begin(), schedule.order.end(), schedule.vector_axis);
    for (const std::string& axis : packing.outer) {
      repeats = repeats || std::find(schedule.order.begin(), vector_at, axis) == vector_at;
    }
    packing.in_panel = !repeats;
  }
}

int64_t panel_count(const NestSchedule& schedule, const std::string& name) {
  int64_t width = 0;
  for (const VectorSegment& segment : schedule.vector_segments) {
    width = std::max(width, segment.width());
  }
  return schedule.packed.at(name).reduce_count() * width;
}

namespace {

/// Moves `axis` by `base` wherever it does not index `local`, and gives it another extent.
void restrict(Definition& definition, const std::string& name, const Expr& base, int64_t width,
              const std::string& local) {
  const std::map<std::string, Expr> moved{{name, base + loop::var(name)}};
  const std::string held = "held " + name;
  const auto move = [&](const Expr& e) {
    // What indexes the panel keeps its place.
    Expr marked = loop::rewrite(e, [&](const Expr& n) -> Expr {
      if (n->kind != ExprKind::access || n->name != local) return n;
      return loop::substitute(n, {{name, loop::var(held)}});
    });
    return loop::substitute(loop::substitute(marked, moved), {{held, loop::var(name)}});
  };
  for (loop::Accumulator& acc : definition.accumulators) acc.value = move(acc.value);
  for (loop::DefinitionOutput& output : definition.outputs) {
    output.value = move(output.value);
    if (output.buffer == local) continue;
    for (Expr& index : output.indices) index = loop::substitute(index, moved);
  }
  for (Axis& axis : definition.axes) {
    if (axis.name == name) axis.extent = Expr(width);
  }
}

}  // namespace

std::optional<StagedBlocks> cut_sums(const Staged& staged, const std::string& vector_axis,
                                     const std::string& buffer, int64_t element_bytes) {
  constexpr int64_t kNarrowest = 4;
  int64_t bytes = element_bytes;
  for (const Dim& extent : staged.shape) bytes *= extent.constant();
  if (bytes <= kSumPanelBytes) return std::nullopt;
  // The longest axis: its blocks stay the widest. The panel's dimensions are second's axes.
  const std::vector<Expr>& place = staged.first.outputs.at(0).indices;
  size_t best = place.size();
  for (size_t i = 0; i < place.size(); ++i) {
    if (place[i]->name == vector_axis) continue;
    if (best == place.size() || staged.shape[best].constant() < staged.shape[i].constant()) {
      best = i;
    }
  }
  if (best == place.size()) return std::nullopt;
  const std::string cut = place[best]->name;
  const int64_t extent = staged.shape[best].constant();
  for (int64_t width = extent - 1; width >= kNarrowest; --width) {
    if (extent % width != 0 || bytes / extent * width > kSumPanelBytes) continue;
    StagedBlocks result{staged, "panel_of_" + cut, extent / width};
    const Expr base = loop::var(result.variable) * Expr(width);
    restrict(result.staged.first, cut, base, width, buffer);
    restrict(result.staged.second, cut, base, width, buffer);
    result.staged.shape[best] = Dim(width);
    return result;
  }
  return std::nullopt;
}

Definition flattened(const Definition& definition, const loop::Kernel& kernel) {
  Definition flat = definition;
  transform(flat, [&](const Expr& e) -> Expr {
    if (e->kind != ExprKind::access) return e;
    const Expr index = loop::flat_index(kernel.find(e->name)->shape, e->args);
    return loop::access(e->name, e.type().scalar, {index});
  });
  for (loop::DefinitionOutput& output : flat.outputs) {
    output.indices = {loop::flat_index(kernel.find(output.buffer)->shape, output.indices)};
  }
  return flat;
}

}  // namespace backcast
