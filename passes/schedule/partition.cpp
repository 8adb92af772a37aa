#include "passes/schedule/partition.h"

#include <algorithm>
#include <set>

#include "ir/graph/type.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Op;

namespace {

constexpr size_t kMaxParts = 27;

/// Positions 0 < p < extent of `axis` at which a condition of the expression changes.
void add_cuts(const Expr& e, const Axis& axis, int64_t extent, std::set<int64_t>& cuts) {
  loop::visit(e, [&](const Expr& n) {
    if (n->kind != ExprKind::if_then_else) return;
    for (const Expr& part : conjuncts(n->args[0])) {
      if (part->kind != ExprKind::binary || (part->op != Op::lt && part->op != Op::ge)) continue;
      std::optional<int64_t> a = coefficient(part->args[0], axis.name);
      std::optional<int64_t> b = coefficient(part->args[1], axis.name);
      if (!a || !b || *a == *b) continue;
      std::optional<int64_t> at0 = evaluate(part->args[0] - part->args[1], {{axis.name, 0}});
      if (!at0) continue;
      // The sign of at0 + (a - b)·i changes once: find the first i on the other side.
      int64_t slope = *a - *b;
      const auto holds = [&](int64_t i) { return at0.value() + slope * i < 0; };
      int64_t low = 0, high = extent - 1;
      if (holds(low) == holds(high)) continue;
      while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        (holds(middle) == holds(low) ? low : high) = middle;
      }
      cuts.insert(high);
    }
  });
}

Definition part_of(const Definition& definition, size_t axis, int64_t begin, int64_t end) {
  const std::string& name = definition.axes[axis].name;
  Definition part = moved(definition, {{name, loop::var(name) + Expr(begin)}});
  part.axes[axis].extent = Expr(end - begin);
  return part;
}

}  // namespace

Definition moved(Definition definition, const std::map<std::string, Expr>& places) {
  for (loop::DefinitionOutput& output : definition.outputs) {
    for (Expr& index : output.indices) index = loop::substitute(index, places);
    output.value = loop::substitute(output.value, places);
  }
  for (loop::Accumulator& acc : definition.accumulators) {
    acc.init = loop::substitute(acc.init, places);
    acc.value = loop::substitute(acc.value, places);
  }
  return definition;
}

std::vector<Definition> partition(const Definition& definition) {
  std::vector<Definition> parts{definition};
  for (size_t a = 0; a < definition.axes.size(); ++a) {
    std::optional<int64_t> extent = static_extent(definition.axes[a]);
    if (!extent || *extent < 2) continue;
    std::set<int64_t> cuts;
    for (const loop::DefinitionOutput& output : definition.outputs) {
      add_cuts(output.value, definition.axes[a], *extent, cuts);
    }
    if (cuts.empty() || parts.size() * (cuts.size() + 1) > kMaxParts) continue;
    cuts.insert(*extent);
    std::vector<Definition> finer;
    for (const Definition& part : parts) {
      int64_t begin = 0;
      for (int64_t end : cuts) {
        finer.push_back(part_of(part, a, begin, end));
        begin = end;
      }
    }
    parts = std::move(finer);
  }
  for (Definition& part : parts) {
    std::map<std::string, DimRange> ranges = ranges_of(part.axes);
    for (loop::DefinitionOutput& output : part.outputs) {
      output.value = loop::simplify(output.value, ranges);
    }
  }
  return parts;
}

namespace {

/// Calls f for every access of the values, innermost first, rebuilding them.
void rewrite_accesses(Definition& definition, const std::function<Expr(const Expr&)>& f) {
  const auto rewritten = [&](const Expr& value) {
    return loop::rewrite(value,
                         [&](const Expr& e) { return e->kind == ExprKind::access ? f(e) : e; });
  };
  for (loop::DefinitionOutput& output : definition.outputs) output.value = rewritten(output.value);
  for (loop::Accumulator& acc : definition.accumulators) acc.value = rewritten(acc.value);
}

/// Axes that values mention beside the indices of what they read.
std::set<std::string> axes_beside_accesses(const Definition& definition) {
  std::set<std::string> names;
  const auto collect = [&](const Expr& value) {
    // Nothing that is folded with what it is multiplied by.
    const Expr without = loop::rewrite(value, [](const Expr& e) {
      return e->kind == ExprKind::access ? loop::var("", e.type()) : e;
    });
    loop::visit(without, [&](const Expr& e) {
      if (e->kind == ExprKind::var) names.insert(e->name);
    });
  };
  for (const loop::DefinitionOutput& output : definition.outputs) collect(output.value);
  for (const loop::Accumulator& acc : definition.accumulators) collect(acc.value);
  return names;
}

/// A definition whose accesses have one index each.
class Coalescing {
 public:
  Coalescing(const Definition& definition, const loop::Kernel& kernel) : flat_(definition) {
    rewrite_accesses(flat_, [&](const Expr& e) {
      Expr index = loop::flat_index(kernel.find(e->name)->shape, e->args);
      indices_.push_back(index);
      return loop::access(e->name, e.type().scalar, {index});
    });
    for (loop::DefinitionOutput& output : flat_.outputs) {
      output.indices = {loop::flat_index(kernel.find(output.buffer)->shape, output.indices)};
      indices_.push_back(output.indices[0]);
    }
    elsewhere_ = axes_beside_accesses(flat_);
  }

  bool any() const { return any_; }
  Definition take() { return std::move(flat_); }

  /// Axes of results, neighbours only.
  void join_axes() {
    for (size_t inner = flat_.axes.size(); inner-- > 1;) {
      const bool is_long = static_extent(flat_.axes[inner]).value_or(0) >= kShortRow;
      if (flat_.accumulators.empty() || !is_long) join(flat_.axes, inner - 1, inner);
    }
  }

  /// Axes of a reduction, whichever: sums have no order. One long loop instead of several short.
  void join_reduction() {
    for (const loop::Accumulator& acc : flat_.accumulators) {
      if (acc.combine == loop::Combine::general) return;
    }
    while (join_two()) {
    }
  }

 private:
  static constexpr int64_t kShortRow = 16;

  bool join_two() {
    std::vector<Axis>& axes = flat_.reduce_axes;
    for (size_t inner = 0; inner < axes.size(); ++inner) {
      for (size_t outer = 0; outer < axes.size(); ++outer) {
        if (outer != inner && !makes_window(axes[outer]) && join(axes, outer, inner)) return true;
      }
    }
    return false;
  }

  /// Whether steps of the axis read what neighbours of a result read: taps, which a tile may share.
  bool makes_window(const Axis& taps) const {
    return std::any_of(indices_.begin(), indices_.end(), [&](const Expr& index) {
      const int64_t step = coefficient(index, taps.name).value_or(0);
      return step != 0 && std::any_of(flat_.axes.begin(), flat_.axes.end(), [&](const Axis& axis) {
               const int64_t stride = coefficient(index, axis.name).value_or(0);
               return stride != 0 && stride % step == 0;
             });
    });
  }

  /// Where every access walks through two axes as one, the inner one runs over both.
  bool join(std::vector<Axis>& axes, size_t outer, size_t inner) {
    const Axis a = axes[outer], b = axes[inner];
    const std::optional<int64_t> many = static_extent(a), few = static_extent(b);
    if (!few || elsewhere_.count(a.name) || elsewhere_.count(b.name)) return false;
    // Rows that vectors divide are better than an axis of which something may be left.
    if (!many && *few >= kShortRow) return false;
    const bool joins = std::all_of(indices_.begin(), indices_.end(), [&](const Expr& index) {
      std::optional<int64_t> ca = coefficient(index, a.name), cb = coefficient(index, b.name);
      return ca && cb && *ca == *cb * *few;
    });
    if (!joins) return false;
    // a := 0.
    const std::map<std::string, Expr> gone{{a.name, Expr(0)}};
    for (Expr& index : indices_) index = loop::substitute(index, gone);
    for (loop::DefinitionOutput& output : flat_.outputs) {
      output.value = loop::substitute(output.value, gone);
      output.indices[0] = loop::substitute(output.indices[0], gone);
    }
    for (loop::Accumulator& acc : flat_.accumulators) acc.value = loop::substitute(acc.value, gone);
    axes[inner].extent = many ? Expr(*many * *few) : a.extent * Expr(*few);
    axes.erase(axes.begin() + static_cast<int64_t>(outer));
    any_ = true;
    return true;
  }

  Definition flat_;
  std::vector<Expr> indices_;
  std::set<std::string> elsewhere_;
  bool any_ = false;
};

}  // namespace

bool coalesce(Definition& definition, loop::Kernel& kernel) {
  Coalescing coalescing(definition, kernel);
  coalescing.join_axes();
  coalescing.join_reduction();
  if (!coalescing.any()) return false;
  for (loop::BufferParam& param : kernel.buffers) {
    param.shape = {TensorType{ElementType::f32, param.shape}.element_count()};
  }
  definition = coalescing.take();
  return true;
}

}  // namespace backcast
