#include "passes/lower/row_steps.h"

#include <algorithm>

#include "ir/graph/type.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/partition.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Axis;
using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;

int64_t count_of(const Dims& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t d = first; d < last; ++d) count *= shape[d].constant();
  return count;
}

class Matcher {
 public:
  Matcher(const Kernel& kernel, const Definition& definition, const std::string& axis, bool sums)
      : kernel_(kernel), definition_(definition) {
    found_.axis = axis;
    found_.sums = sums;
  }

  std::optional<RowKernel> run() {
    if (!kernel_.sizes.empty() || !constant_extents()) return std::nullopt;
    if (found_.sums ? !summed() : !results()) return std::nullopt;
    return operands() ? std::optional<RowKernel>(found_) : std::nullopt;
  }

 private:
  bool constant_extents() {
    for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
      for (const Axis& axis : *axes) {
        const std::optional<int64_t> extent = static_extent(axis);
        if (!extent || *extent < 1) return false;
        extents_[axis.name] = *extent;
      }
    }
    for (const loop::Accumulator& acc : definition_.accumulators) {
      if (acc.init->kind != ExprKind::constant) return false;
    }
    return std::all_of(kernel_.buffers.begin(), kernel_.buffers.end(),
                       [](const BufferParam& param) { return is_static(param.shape); });
  }

  size_t position(const std::string& name) const {
    size_t i = 0;
    while (kernel_.buffers[i].name != name) ++i;
    return i;
  }

  /// The axis is one dimension of every result, and all of it.
  bool results() {
    found_.rows = extents_.at(found_.axis);
    for (const loop::DefinitionOutput& output : definition_.outputs) {
      const size_t param = position(output.buffer);
      const Dims& shape = kernel_.buffers[param].shape;
      if (kernel_.buffers[param].mode != AccessMode::write) return false;
      std::optional<size_t> rows;
      for (size_t d = 0; d < output.indices.size(); ++d) {
        if (!mentions(output.indices[d], found_.axis)) continue;
        if (rows || output.indices[d]->kind != ExprKind::var) return false;
        rows = d;
      }
      if (!rows || shape[*rows].constant() != found_.rows) return false;
      found_.writes.push_back({param, *rows, found_.rows});
    }
    return found_.rows > 1;
  }

  /// Rows add to sums that nothing else changes.
  bool summed() {
    found_.rows = extents_.at(found_.axis);
    for (const loop::Accumulator& acc : definition_.accumulators) {
      if (acc.combine == loop::Combine::general || acc.type.scalar == loop::Scalar::index) {
        return false;
      }
    }
    return found_.rows > 1;
  }

  bool operands() {
    bool fits = true;
    std::map<size_t, bool> behind;
    for_each_access(definition_, [&](const loop::ExprNode& read, bool adds) {
      if (found_.sums && !adds) {
        behind[position(read.name)] = true;
      } else {
        fits = fits && add_read(position(read.name), read.args);
      }
    });
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (kernel_.buffers[i].mode == AccessMode::update) return false;
      if (kernel_.buffers[i].mode != AccessMode::read) continue;
      const auto reads = [&](const RowAccess& access) { return access.param == i; };
      if (behind.contains(i)) found_.behind.push_back(i);
      if (std::any_of(found_.reads.begin(), found_.reads.end(), reads)) {
        fits = fits && !whole_.contains(i);
      } else if (whole_.contains(i) || !behind.contains(i)) {
        found_.whole.push_back(i);
      }
    }
    return fits;
  }

  bool add_read(size_t param, const std::vector<Expr>& indices) {
    // What is looked up may lie anywhere.
    if (std::any_of(indices.begin(), indices.end(), reads_memory)) {
      whole_[param] = true;
      return true;
    }
    std::optional<size_t> dimension;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!mentions(indices[d], found_.axis)) continue;
      if (dimension) return false;
      dimension = d;
    }
    if (!dimension) {
      whole_[param] = true;
      return true;
    }
    const Dims& shape = kernel_.buffers[param].shape;
    RowAccess access{param, *dimension, shape[*dimension].constant()};
    if (!bounds_of(indices[*dimension], access)) return false;
    for (RowAccess& other : found_.reads) {
      if (other.param != param) continue;
      if (other.dimension != access.dimension || other.scale != access.scale ||
          other.per != access.per || other.phase != access.phase) {
        return false;
      }
      other.low = std::min(other.low, access.low);
      other.high = std::max(other.high, access.high);
      return true;
    }
    found_.reads.push_back(access);
    return true;
  }

  /// scale * row, or a part of it, plus what lies between low and high.
  bool bounds_of(const Expr& index, RowAccess& access) const {
    std::map<std::string, int64_t> first;
    int64_t span_low = 0, span_high = 0;
    for (const auto& [name, extent] : extents_) {
      first[name] = 0;
      if (name == found_.axis) continue;
      const std::optional<int64_t> slope = coefficient(index, name);
      if (!slope) return false;
      (*slope < 0 ? span_low : span_high) += *slope * (extent - 1);
    }
    const std::optional<int64_t> at = evaluate(index, first);
    if (!at || !find_scale(index, first, access)) return false;
    access.low = *at + span_low;
    access.high = *at + span_high;
    return true;
  }

  /// How the index grows with the row, where the other variables are at `first`.
  bool find_scale(const Expr& index, std::map<std::string, int64_t> first,
                  RowAccess& access) const {
    if (const std::optional<int64_t> slope = coefficient(index, found_.axis)) {
      access.scale = *slope;
      return *slope >= 1;
    }
    // Several rows with the same index, then as many with the next: floor((row + phase) / per).
    std::vector<int64_t> grown, steps;
    for (int64_t row = 0; row < found_.rows; ++row) {
      first[found_.axis] = row;
      const std::optional<int64_t> at = evaluate(index, first);
      if (!at) return false;
      if (!grown.empty() && *at != grown.back()) steps.push_back(row);
      grown.push_back(*at);
    }
    if (steps.size() < 2) return false;
    access.per = steps[1] - steps[0];
    access.phase = access.per - steps[0];
    for (int64_t row = 0; row < found_.rows; ++row) {
      const int64_t at = grown[static_cast<size_t>(row)] - grown[0];
      if (access.phase < 0 || at != (row + access.phase) / access.per) return false;
    }
    return true;
  }

  const Kernel& kernel_;
  const Definition& definition_;
  std::map<std::string, int64_t> extents_;
  std::map<size_t, bool> whole_;  // read without regard to rows
  RowKernel found_;
};

}  // namespace

Rows RowAccess::reached(const Rows& rows) const {
  const auto at = [&](int64_t row) { return (scale * row + phase) / per; };
  const int64_t begin = std::clamp<int64_t>(at(rows.begin) + low, 0, extent);
  return {begin, std::clamp<int64_t>(at(rows.end - 1) + high + 1, begin, extent)};
}

std::vector<RowAccess> RowKernel::accesses() const {
  std::vector<RowAccess> all = reads;
  all.insert(all.end(), writes.begin(), writes.end());
  return all;
}

std::optional<size_t> outermost(const Dims& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!(shape[d] == Dim(1))) return d;
  }
  return std::nullopt;
}

std::vector<RowKernel> match_rows(const Kernel& kernel) {
  std::vector<RowKernel> found;
  const Definition* definition = loop::only_definition(kernel);
  if (definition == nullptr) return found;
  for (const bool sums : {false, true}) {
    for (const Axis& axis : sums ? definition->reduce_axes : definition->axes) {
      std::optional<RowKernel> rows = Matcher(kernel, *definition, axis.name, sums).run();
      if (rows) found.push_back(std::move(*rows));
    }
  }
  return found;
}

bool same_rows(const Dims& a, size_t da, const Dims& b, size_t db) {
  return a[da] == b[db] && count_of(a, 0, da) == count_of(b, 0, db) &&
         count_of(a, da + 1, a.size()) == count_of(b, db + 1, b.size());
}

RowView window_of(const Dims& shape, size_t dimension, const Rows& rows) {
  const int64_t row = count_of(shape, dimension + 1, shape.size());
  const int64_t outside = count_of(shape, 0, dimension);
  RowView window{shape, rows.begin * row};
  window.shape[dimension] = Dim(rows.count());
  if (outside > 1) {
    const int64_t plane = shape[dimension].constant() * row;
    window.shape = {Dim((outside - 1) * plane + rows.count() * row)};
  }
  return window;
}

Kernel with_parts(const Kernel& kernel, const RowKernel& by, const std::map<size_t, Rows>& passed,
                  const std::set<size_t>& apart) {
  Kernel result = kernel;
  std::map<std::string, RowAccess> accesses;
  for (const RowAccess& access : by.accesses()) {
    BufferParam& param = result.buffers[access.param];
    const Rows& part = passed.at(access.param);
    if (apart.contains(access.param)) {
      param.shape[access.dimension] = Dim(part.count());
    } else {
      param.shape = window_of(param.shape, access.dimension, part).shape;
    }
    accesses[param.name] = access;
  }
  // The same rows of both, if any.
  const auto alike = [&](const std::string& read, const std::string& written) {
    const auto a = accesses.find(read), b = accesses.find(written);
    if (a == accesses.end() || b == accesses.end()) return a == b;
    return !apart.contains(a->second.param) && !apart.contains(b->second.param) &&
           a->second.dimension == b->second.dimension && a->second.reaches_like(b->second);
  };
  for (BufferParam& param : result.buffers) {
    std::erase_if(param.over, [&](const std::string& over) { return !alike(over, param.name); });
  }
  return result;
}

std::vector<Expr> index_in_part(const Dims& whole, const Dims& part, std::vector<Expr> indices) {
  if (part.size() == whole.size()) return indices;
  return {loop::flat_index(whole, indices)};
}

Kernel restrict_rows(const Kernel& kernel, const RowKernel& by, const Rows& rows,
                     const std::map<size_t, Rows>& reached, const std::set<size_t>& apart) {
  Kernel result = with_parts(kernel, by, reached, apart);
  std::map<std::string, RowAccess> accesses;
  for (const RowAccess& access : by.accesses()) {
    accesses[kernel.buffers[access.param].name] = access;
  }
  const auto rebased = [&](const std::string& name, std::vector<Expr> indices) {
    const auto found = accesses.find(name);
    if (found == accesses.end()) return indices;
    const RowAccess& access = found->second;
    Expr& index = indices[access.dimension];
    index = index - Expr(reached.at(access.param).begin);
    return index_in_part(kernel.buffers[access.param].shape, result.buffers[access.param].shape,
                         std::move(indices));
  };
  Definition definition =
      moved(*loop::only_definition(kernel), {{by.axis, loop::var(by.axis) + Expr(rows.begin)}});
  for (Axis& axis : by.sums ? definition.reduce_axes : definition.axes) {
    if (axis.name == by.axis) axis.extent = Expr(rows.count());
  }
  for (loop::DefinitionOutput& output : definition.outputs) {
    output.indices = rebased(output.buffer, output.indices);
  }
  transform(definition, [&](const Expr& e) {
    if (e->kind != ExprKind::access) return e;
    return loop::access(e->name, e.type().scalar, rebased(e->name, e->args));
  });
  result.body = loop::simplify(loop::define(std::move(definition)));
  // All products of the rows: what padding leaves out counts as before.
  result.macs = kernel.macs * rows.count() / by.rows;
  return result;
}

}  // namespace backcast
