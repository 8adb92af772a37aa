// Products of words of small integers on scalar cores: what is taken out of each operand's words,
// and whether a tile's operand is taken apart once for all blocks of the vector axis.
#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Axis;
using loop::Expr;
using loop::ExprKind;

namespace {

// What waits on the stack for the blocks of a tile.
constexpr int64_t kMostUnpacked = 2048;
// Words of a sum that make up for the loop around it: of four, a product of 16 by 32 channels takes
// 1.17 of its time.
constexpr double kFewestWords = 8;

}  // namespace

int64_t Chooser::Access::pairs() const {
  return std::count_if(taken.begin(), taken.end(),
                       [](const Expr& value) { return value->kind != ExprKind::access; });
}

/// What products of words take of each operand; the first of equal reads has it.
void Chooser::collect_taken() {
  added_products_ /= static_cast<int64_t>(definition_.accumulators.size());
  const auto take = [&](const Expr& factor, const Expr& read) {
    const Expr flat = loop::flat_index(kernel_.find(read->name)->shape, read->args);
    const auto same = std::find_if(accesses_.begin(), accesses_.end(), [&](const Access& a) {
      return a.in_reduction && a.buffer == read->name && loop::equal(a.flat, flat);
    });
    const auto equals = [&](const Expr& value) { return loop::equal(value, factor); };
    if (std::none_of(same->taken.begin(), same->taken.end(), equals)) same->taken.push_back(factor);
  };
  for (const loop::Accumulator& acc : definition_.accumulators) {
    loop::visit(acc.value, [&](const Expr& n) {
      if (n->kind != ExprKind::binary || n->op != loop::Op::dot2) return;
      for (const Expr& factor : n->args) {
        loop::visit(factor, [&](const Expr& read) {
          if (read->kind == ExprKind::access) take(factor, read);
        });
      }
    });
  }
}

bool Chooser::is_unpacked(const Access& a) const { return std::ranges::count(unpacked_, &a) > 0; }

/// What a register each holds of an operand's word: of pairs that come from an array, or that sums
/// take in turn, one after another; beside those of a word of more than two, the word.
int64_t Chooser::taken_at_once(const Access& a, bool with_vector, bool kept) const {
  const bool in_turn = adds_products() && added_products_ > 2;
  const bool at_a_time = is_unpacked(a) || (with_vector ? !kept : in_turn) ||
                         (!unpacked_.empty() && a.pairs() < a.values());
  return at_a_time ? 1 : std::min<int64_t>(a.values(), 2);
}

/// What the tile reads of an operand whose words are taken apart for every block of the vector
/// axis; nothing where there is none, or borders decide what is read.
std::vector<const Chooser::Access*> Chooser::unpackable() const {
  if (!adds_products() || window_taps_ > 1 || schedule_.jam > 1 || !conditions_.empty()) return {};
  if (schedule_.tile_axis.empty() || schedule_.vector_axis.empty()) return {};
  const auto is_static = [](const Axis& axis) { return static_extent(axis).has_value(); };
  const std::vector<Axis> axes = reduce_axes();
  if (!std::all_of(axes.begin(), axes.end(), is_static)) return {};
  std::vector<const Access*> found;
  for (const Access& a : accesses_) {
    const bool is_taken_apart = a.pairs() > 0 && a.pairs() == a.values() && !a.constant;
    if (!is_taken_apart || (!found.empty() && found[0]->buffer != a.buffer)) continue;
    const bool in_tile = mentions(a.flat, schedule_.tile_axis);
    if (in_tile && !mentions(a.flat, schedule_.vector_axis)) found.push_back(&a);
  }
  return found;
}

/// Loading pairs from an array instead of taking them out of words once more for each block leaves
/// registers for a larger tile.
void Chooser::choose_unpacking() {
  const std::vector<const Access*> operand = unpackable();
  std::vector<Expr> taken;
  for (const Access* read : operand) {
    taken.insert(taken.end(), read->taken.begin(), read->taken.end());
  }
  const double values = static_cast<double>(taken.size());
  if (taken.empty() || reduce_points() * static_cast<double>(operand.size()) < kFewestWords) return;
  const NestSchedule plain = schedule_;
  const double before = direct_cycles();
  unpacked_ = operand;
  choose_sizes();
  const int64_t steps = static_cast<int64_t>(reduce_points());
  const int64_t words = schedule_.largest_tile() * steps;
  const double each = 2.5 * static_cast<double>(operand.size()) + 2 * values;
  const double filling = each * reduce_points() * outer_points() *
                         static_cast<double>(std::max<int64_t>(extent(schedule_.tile_axis), 8));
  const bool fits = 4 * words * static_cast<int64_t>(taken.size()) <= kMostUnpacked;
  if (!fits || direct_cycles() + filling >= before) {
    schedule_ = plain;
    unpacked_.clear();
    return;
  }
  schedule_.unpacked = taken;
}

}  // namespace backcast
