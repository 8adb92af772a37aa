// Elementwise kernels: how many registers side by side, and rows that share operands, such as the
// scales and shifts of a normalisation over channels: read once for all rows of a tile.
#include <algorithm>
#include <utility>
#include <vector>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Axis;
using loop::Expr;

namespace {

// Operations that a body needs before it is no longer.
constexpr int64_t kBodyWork = 8;
constexpr int64_t kMostRows = 4;
// Elements whose math functions a core in order computes side by side: one alone is a chain in
// which every operation waits for the one before.
constexpr int64_t kChains = 2;
// Elements with a copy of the body each.
constexpr int64_t kMostCopies = 8;
// Registers that each row needs beside what it reads.
constexpr int64_t kTemporaries = 2;

}  // namespace

void Chooser::choose_map() {
  if (schedule_.vector_axis.empty()) return choose_by_number();
  const int64_t work = std::max<int64_t>(cost(definition_).total(), 1);
  const bool waits = target_.vector_bits == 0 && math_calls() > 0;
  const int64_t vectors = waits ? kChains : std::clamp<int64_t>(kBodyWork / work, 1, 4);
  const int64_t rows = shared_rows();
  if (rows == 1) {
    schedule_.vector_segments = vector_segments(vectors);
    return;
  }
  schedule_.vector_segments = vector_segments(1);
  schedule_.tile_axis = row_axis()->name;
  schedule_.tile_segments = tile_segments(rows);
}

/// Few elements side by side that conditions tell apart, such as channels put beside each other:
/// each has a copy of the body, in which nothing is left to ask.
void Chooser::choose_by_number() {
  if (definition_.axes.empty()) return;
  const Axis& last = definition_.axes.back();
  const int64_t count = extent(last.name);
  if (count >= 2 && count <= kMostCopies && conditional_on(last.name)) {
    schedule_.unrolled.insert(last.name);
  }
}

/// The axis around the vectors'; null when there is none.
const Axis* Chooser::row_axis() const {
  for (size_t i = definition_.axes.size(); i-- > 0;) {
    const Axis& axis = definition_.axes[i];
    if (axis.name != schedule_.vector_axis && static_extent(axis) != 1) return &axis;
  }
  return nullptr;
}

/// What is added to each row in place has a factor of that row: where it is zero, the row stays as
/// it is (skip_unchanged.h).
bool Chooser::updates_by_rows(const std::string& rows) const {
  const bool has_factor = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
    return mentions(a.flat, rows) && !mentions(a.flat, schedule_.vector_axis);
  });
  return has_factor && std::ranges::any_of(definition_.outputs, [&](const auto& output) {
           const Expr& value = output.value;
           if (value->kind != loop::ExprKind::binary) return false;
           if (value->op != loop::Op::add && value->op != loop::Op::sub) return false;
           const std::vector<std::string>& over = kernel_.find(output.buffer)->over;
           return std::ranges::any_of(value->args, [&](const Expr& e) {
             return e->kind == loop::ExprKind::access &&
                    std::ranges::find(over, e->name) != over.end();
           });
         });
}

/// Rows of a tile: more than one where they share what is read along the vectors, and that does not
/// stay in registers all along.
int64_t Chooser::shared_rows() const {
  const Axis* rows = row_axis();
  if (rows == nullptr || extent(schedule_.vector_axis) <= lanes_) return 1;
  if (conditional_on(rows->name)) return 1;
  if (math_calls() > 0 || updates_by_rows(rows->name)) return 1;
  int64_t shared = 0, own = kTemporaries;
  std::vector<std::pair<std::string, Expr>> seen;
  for (const Access& a : accesses_) {
    if (!coefficient(a.flat, rows->name) || reads_memory(a.flat)) return 1;
    const bool again = std::any_of(seen.begin(), seen.end(), [&](const auto& other) {
      return other.first == a.buffer && loop::equal(other.second, a.flat);
    });
    if (again) continue;
    seen.emplace_back(a.buffer, a.flat);
    const bool with_rows = mentions(a.flat, rows->name);
    if (mentions(a.flat, schedule_.vector_axis) && !with_rows) ++shared;
    own += with_rows ? 1 : 0;
  }
  if (shared == 0) return 1;
  const int64_t fit = (registers() - shared) / own, total = extent(rows->name);
  const int64_t most = std::min(kMostRows, limits_.rows);
  for (int64_t n = std::min(most, fit); n > 1; --n) {
    if (total % n == 0) return n;
  }
  return total > most ? std::clamp<int64_t>(fit, 1, most) : 1;
}

}  // namespace backcast
