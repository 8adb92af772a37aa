// Facts about a definition, and the axes that vectors and tiles run along.
#include "passes/schedule/choose.h"

#include <algorithm>

#include "ir/loop/byte_tables.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Axis;
using loop::Expr;
using loop::ExprKind;
using loop::Scalar;

namespace {

// Elements of an axis that a tile takes as a whole beside its own two sides.
constexpr int64_t kLongestJam = 4;
// The same where a tile has fewer sums than the units wait for.
constexpr int64_t kLongestJamOfFew = 8;

}  // namespace

Chooser::Chooser(const loop::Definition& definition, const loop::Kernel& kernel,
                 const TargetInfo& target,
                 const std::function<bool(const std::string&)>& is_constant,
                 const TileLimits& limits)
    : definition_(definition),
      kernel_(kernel),
      target_(target),
      is_constant_(is_constant),
      limits_(limits) {
  collect();
  is_reduction_ = !definition_.reduce_axes.empty();
}

Chooser::Plan Chooser::plan(VectorMode mode, const std::string& lane_axis) {
  schedule_ = {};
  window_taps_ = window_step_ = 1;
  unpacked_.clear();
  mode_ = mode;
  schedule_.lane_axis = lane_axis;
  for (Access& access : accesses_) access.packable = packable(access);
  schedule_.use_fma = target_.uses_fma() && (scalar_ != Scalar::f64 || target_.has_f64);
  schedule_.widens_loads = target_.widening_loads;
  Plan result;
  choose_reduce_order();
  if (mode == VectorMode::lanes) {
    choose_columns();
    choose_tile_axis();
    choose_lane_sizes();
    choose_order();
    result.cycles = lane_cycles(0, 0, schedule_.chains);
  } else {
    choose_unrolled();
    choose_vector_axis();
    if (!choose_transposition() && !choose_interleaving()) {
      choose_tile_axis();
      choose_jam();
      choose_sizes();
      choose_window();
      choose_unpacking();
    }
    choose_order();
    choose_packing();
    choose_addend();
    result.cycles = direct_cycles() + packing_cycles(schedule_) + far_row_cycles();
    result.possible = mode == VectorMode::direct || reads_in_vectors();
  }
  result.schedule = schedule_;
  return result;
}

// ---- facts --------------------------------------------------------------------------------------

void Chooser::collect() {
  for_each_access(definition_, [&](const loop::ExprNode& read, bool in_reduction) {
    Expr flat = loop::flat_index(kernel_.find(read.name)->shape, read.args);
    accesses_.push_back(
        {read.name, flat, in_reduction, false, is_constant_(read.name), reads_byte_table(read)});
  });
  for (const loop::DefinitionOutput& output : definition_.outputs) {
    outputs_.push_back(loop::flat_index(kernel_.find(output.buffer)->shape, output.indices));
    scalars_.insert(kernel_.find(output.buffer)->element);
    collect_types(output.value);
  }
  for (const loop::Accumulator& acc : definition_.accumulators) {
    collect_types(acc.value);
    int64_t products = 0, shifts = 0;
    loop::visit(acc.value, [&](const Expr& n) {
      const bool product = n->kind == ExprKind::binary && n.type().scalar == Scalar::i32 &&
                           (n->op == loop::Op::dot2 || n->op == loop::Op::mul);
      added_products_ += product && target_.pair_products;
      products += product;
      shifts += n->kind == ExprKind::binary && (n->op == loop::Op::shl || n->op == loop::Op::shr);
    });
    if (products > 1 && !target_.pair_products && target_.vector_bits == 0) {
      products_in_turn_ = products;
      shifts_ = shifts;
    }
    general_ = general_ || acc.combine == loop::Combine::general;
  }
  if (added_products_ > 0) collect_taken();
  scalar_ = scalars_.empty() ? Scalar::f32 : *scalars_.begin();
  if (!definition_.accumulators.empty()) scalar_ = definition_.accumulators[0].type.scalar;
}

int64_t Chooser::extent(const std::string& name) const {
  for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
    for (const Axis& axis : *axes) {
      if (axis.name == name) return static_extent(axis).value_or(0);
    }
  }
  return 0;
}

bool Chooser::conditional_on(const std::string& axis) const {
  return std::any_of(conditions_.begin(), conditions_.end(),
                     [&](const Expr& c) { return mentions(c, axis); });
}

// ---- axes ---------------------------------------------------------------------------------------

/// Far steps outside, near ones inside. Reductions over constants keep their order, and so do those
/// where it matters.
void Chooser::choose_reduce_order() {
  bool constants = std::any_of(accesses_.begin(), accesses_.end(),
                               [](const Access& a) { return a.in_reduction && a.constant; });
  if (general_ || constants || definition_.reduce_axes.size() < 2 || !vectorizable_types()) return;
  // Neighbouring positions of a window share what they read, if there are registers to keep it and
  // the loop outside is long.
  bool wide = target_.vector_registers >= 32;
  int64_t outside = 1;
  for (const Axis& axis : definition_.reduce_axes) {
    if (!conditional_on(axis.name)) outside *= extent(axis.name);
  }
  std::vector<std::pair<std::pair<bool, int64_t>, std::string>> steps;
  for (const Axis& axis : definition_.reduce_axes) {
    int64_t longest = 0;
    for (const Access& a : accesses_) {
      if (!a.in_reduction || (a.packable && !wide)) continue;
      longest = std::max(longest, std::abs(coefficient(a.flat, axis.name).value_or(0)));
    }
    bool window = wide && mode_ != VectorMode::lanes && outside >= 8 && conditional_on(axis.name);
    steps.emplace_back(std::pair(window, -longest), axis.name);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [step, name] : steps) schedule_.reduce_order.push_back(name);
}

std::vector<Axis> Chooser::reduce_axes() const { return reduction_loops(definition_, schedule_); }

/// Short reduction loops without run-time bounds are unrolled, innermost first.
void Chooser::choose_unrolled() {
  int64_t steps = 1;
  constexpr int64_t kMostSteps = 4;
  const std::vector<Axis> axes = reduce_axes();
  for (size_t i = axes.size(); i-- > 0;) {
    const Axis& axis = axes[i];
    std::optional<int64_t> e = static_extent(axis);
    if (!e || steps * *e > kMostSteps || (conditional_on(axis.name) && general_)) return;
    // A guarded axis gets run-time bounds and stays a loop.
    if (conditional_on(axis.name)) return;
    schedule_.unrolled.insert(axis.name);
    steps *= *e;
  }
}

void Chooser::choose_vector_axis() {
  bool vectors = fills_lanes();
  int64_t best_score = 0;
  for (const Axis& axis : definition_.axes) {
    std::optional<int64_t> e = static_extent(axis);
    if (!e || *e < 2 || conditional_on(axis.name)) continue;
    int64_t score = 1, constants = 0, rearranged = 0;
    bool fits = true;
    for (const Access& access : accesses_) {
      if (access.from_byte_table) continue;
      std::optional<int64_t> c = coefficient(access.flat, axis.name);
      // Scalars need no constants packed: these lie in the order of reading.
      const bool ordered = access.packable || (!vectors && access.in_reduction);
      if (ordered && access.constant && c && *c != 0) {
        score += 8;
        ++constants;
      } else if (is_reduction_ && !access.in_reduction && c) {
        // Read once per result, as results are written; one value for all lanes costs no more.
        score += *c == 0 || *c == 1 ? 2 : 0;
      } else if (c && *c == 1) {
        score += 4;
      } else if (access.packable && c && *c != 0) {
        score += 3;
        ++rearranged;
      } else if (!c || (*c != 0 && (access.in_reduction || !is_reduction_))) {
        fits = false;  // a gather: never faster than scalar code
      }
    }
    fits = fits && rearranged <= 1;
    for (const Expr& flat : outputs_) {
      std::optional<int64_t> c = coefficient(flat, axis.name);
      if (c && *c == 1) {
        score += is_reduction_ ? 2 : 4;
      } else if (!is_reduction_) {
        fits = false;
      }
    }
    if (!fits && vectors) continue;
    if (!fits) score = 1;
    // Lanes that stay empty outweigh what is contiguous.
    if (vectors && constants == 0 && *e * 2 <= vector_lanes())
      score = std::max<int64_t>(score - 4, 1);
    // On scalar targets any axis gives the tile its second side.
    if (!is_reduction_ && !fits) continue;
    if (score > best_score) {
      best_score = score;
      schedule_.vector_axis = axis.name;
    }
  }
  lanes_ = vectors && !schedule_.vector_axis.empty() ? vector_lanes() : 1;
  if (general_ && !vectors) schedule_.vector_axis.clear();
}

/// Whether a tile may run along the axis: elements of it share something.
bool Chooser::may_tile(const Axis& axis) const {
  if (axis.name == schedule_.vector_axis) return false;
  std::optional<int64_t> e = static_extent(axis);
  if (e && *e < 2) return false;
  if (e ? !borders_decidable(axis.name) : !symbolic_interior(axis.name)) return false;
  // Something must be shared along the axis, or the tile gains nothing.
  bool shares = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
    return a.in_reduction && !mentions(a.flat, axis.name);
  });
  // What results are made of may be repeated along the axis: each row finds its own place.
  bool affine = std::all_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
    return !a.in_reduction || is_linear(a.flat, axis.name);
  });
  return affine && shares;
}

void Chooser::choose_tile_axis() {
  if (!is_reduction_ || general_ || limits_.rows == 1) return;
  bool constants = std::any_of(accesses_.begin(), accesses_.end(),
                               [](const Access& a) { return a.in_reduction && a.constant; });
  const auto is_short = [&](const Axis& axis) {
    const int64_t rows = static_extent(axis).value_or(kLongestJam + 1);
    if (constants || !vectorizable_types() || rows > kLongestJam) return false;
    return conditional_on(axis.name) || (leaves_units_idle(axis) && may_jam(axis));
  };
  // The innermost; an axis that can be jammed comes last.
  for (const bool may_be_short : {false, true}) {
    for (size_t i = definition_.axes.size(); i-- > 0;) {
      const Axis& axis = definition_.axes[i];
      if (is_short(axis) != may_be_short || !may_tile(axis)) continue;
      schedule_.tile_axis = axis.name;
      return;
    }
  }
}

/// Whether a tile of all elements of the axis has half the sums that the units wait for, and no
/// other short axis has more of them: a tile of a longer axis may have.
bool Chooser::leaves_units_idle(const Axis& axis) const {
  if (schedule_.vector_axis.empty()) return false;
  int64_t jam = 1;
  for (const Axis& other : definition_.axes) {
    const int64_t e = extent(other.name);
    if (is_tiled(other.name) || other.name == axis.name || e > kLongestJam) continue;
    if (may_jam(other)) jam = std::max(jam, e);
  }
  const int64_t sums = extent(axis.name) * vectors_of(schedule_.vector_axis);
  return 2 * sums * jam <= fewest_sums();
}

/// Conditions mention the axis together with one reduction axis only, or not at all.
bool Chooser::may_jam(const Axis& axis) const {
  std::string partner;
  for (const Axis& r : definition_.reduce_axes) {
    bool together = std::any_of(conditions_.begin(), conditions_.end(), [&](const Expr& c) {
      return mentions(c, axis.name) && mentions(c, r.name);
    });
    if (together && !partner.empty()) return false;
    if (together) partner = r.name;
  }
  for (const Expr& c : conditions_) {
    if (!mentions(c, axis.name) && (partner.empty() || !mentions(c, partner))) continue;
    if (partner.empty() || !mentions(c, axis.name) || !mentions(c, partner)) return false;
    if (!evaluate(c, {{axis.name, 0}, {partner, 0}}) || schedule_.unrolled.count(partner)) {
      return false;
    }
  }
  return true;
}

/// A few elements of an axis, or of two, that one operand does not depend on: it is read once for
/// all of them. The second makes up for a tile that there is not, and so do more of them, as far as
/// there are registers.
void Chooser::choose_jam() {
  bool constants = std::any_of(accesses_.begin(), accesses_.end(),
                               [](const Access& a) { return a.in_reduction && a.constant; });
  if (!is_reduction_ || constants || limits_.rows == 1 || schedule_.vector_axis.empty()) return;
  if (!vectorizable_types()) return;
  int64_t sums = vectors_of(schedule_.vector_axis);
  if (!schedule_.tile_axis.empty()) sums *= extent(schedule_.tile_axis);
  for (size_t i = definition_.axes.size(); i-- > 0;) {
    const Axis& axis = definition_.axes[i];
    int64_t e = extent(axis.name);
    const int64_t now = sums * schedule_.jam;
    const bool few = now > 0 && now < fewest_sums();
    const int64_t most = few ? kLongestJamOfFew : kLongestJam;
    if (is_tiled(axis.name) || e < 2 || e > most || !may_jam(axis)) continue;
    bool shares = false, affine = true;
    for (const Access& a : accesses_) {
      affine = affine && coefficient(a.flat, axis.name);
      shares = shares || (a.in_reduction && !mentions(a.flat, axis.name));
    }
    if (!affine || !shares) continue;
    std::string& jammed =
        schedule_.jam_axis.empty() ? schedule_.jam_axis : schedule_.outer_jam_axis;
    jammed = axis.name;
    schedule_.jam *= e;
    if (!fits_registers(1, 1)) {
      jammed.clear();
      schedule_.jam /= e;
      continue;
    }
    if (!schedule_.tile_axis.empty() || !schedule_.outer_jam_axis.empty()) return;
  }
}

bool Chooser::is_tiled(const std::string& axis) const {
  return axis == schedule_.vector_axis || axis == schedule_.tile_axis ||
         axis == schedule_.jam_axis || axis == schedule_.outer_jam_axis;
}

/// Whether all constants of the contraction stay in the first cache, beside what runs past them, or
/// there is none for them to stay in.
bool Chooser::are_constants_near() const {
  int64_t bytes = 0;
  for (const loop::BufferParam& param : kernel_.buffers) {
    const bool packed = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
      return a.buffer == param.name && a.packable && a.constant;
    });
    if (!packed) continue;
    const std::optional<int64_t> size = static_bytes(param);
    if (!size) return false;
    bytes += *size;
  }
  return bytes > 0 && (!target_.has_data_cache || bytes <= target_.l1_bytes / 2);
}

/// The vector axis goes outside where its blocks share something (a contraction), so that a packed
/// panel stays in cache, or a cache keeps rows of a window in blocks only; inside of tiles where
/// all panels stay: operands and results are walked through once, in order. Axes that choose a
/// product of their own stay outside of everything; on scalar cores innermost, where each block has
/// constants of its own: no operand stays the same then, for compilers to load before the loop.
void Chooser::choose_order() {
  bool contraction = false;
  for (const Access& a : accesses_) {
    contraction = contraction || (a.in_reduction && !schedule_.vector_axis.empty() &&
                                  !mentions(a.flat, schedule_.vector_axis));
  }
  std::vector<std::string> inside;
  for (const Axis& axis : definition_.axes) {
    if (is_tiled(axis.name)) continue;
    bool in_panel = false, in_block = false, in_all = contraction;
    for (const Access& a : accesses_) {
      const bool mentioned = mentions(a.flat, axis.name);
      in_panel = in_panel || (a.packable && mentioned);
      in_block = in_block || (a.packable && mentioned && mentions(a.flat, schedule_.vector_axis));
      in_all = in_all && (!a.in_reduction || mentioned);
    }
    if (in_all && in_block && target_.vector_bits == 0) {
      inside.push_back(axis.name);
    } else if (in_panel || in_all) {  // another panel (groups)
      schedule_.order.push_back(axis.name);
    }
  }
  const bool far_panels = !are_constants_near() && schedule_.unpacked.empty();
  const bool panels_outside = contraction ? far_panels : loses_window_rows();
  if (panels_outside) schedule_.order.push_back(schedule_.vector_axis);
  for (const Axis& axis : definition_.axes) {
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), axis.name) != names.end();
    };
    if (is_tiled(axis.name) || has(schedule_.order) || has(inside)) continue;
    schedule_.order.push_back(axis.name);
  }
  if (!schedule_.tile_axis.empty()) schedule_.order.push_back(schedule_.tile_axis);
  if (!panels_outside && !schedule_.vector_axis.empty()) {
    schedule_.order.push_back(schedule_.vector_axis);
  }
  schedule_.order.insert(schedule_.order.end(), inside.begin(), inside.end());
}

/// A bias or the like: what the results add to the sum, the same for all rows of a tile. Cores with
/// vectors gain nothing by it.
void Chooser::choose_addend() {
  if (definition_.accumulators.size() != 1 || target_.vector_bits > 0) return;
  const loop::Accumulator& acc = definition_.accumulators[0];
  const bool is_float =
      acc.type.scalar == loop::Scalar::f32 || acc.type.scalar == loop::Scalar::f64;
  const bool is_zero = acc.init->kind == ExprKind::constant && acc.init->float_value == 0;
  if (acc.combine != loop::Combine::sum || !is_float || !is_zero) return;
  const auto is_sum = [&](const Expr& e) {
    return e->kind == ExprKind::var && e->name == acc.name;
  };
  int64_t uses = 0;
  Expr addend;
  for (const loop::DefinitionOutput& output : definition_.outputs) {
    loop::visit(output.value, [&](const Expr& e) {
      uses += is_sum(e);
      if (e->kind != ExprKind::binary || e->op != loop::Op::add) return;
      if (is_sum(e->args[0])) addend = e->args[1];
      if (is_sum(e->args[1])) addend = e->args[0];
    });
  }
  if (uses != 1 || !addend) return;
  bool fits = true;
  loop::visit(addend, [&](const Expr& e) {
    fits = fits && e->kind != ExprKind::if_then_else && e->kind != ExprKind::call;
    if (e->kind == ExprKind::var) {
      fits = fits && e->name != schedule_.tile_axis && e->name != schedule_.jam_axis &&
             e->name != schedule_.outer_jam_axis;
    }
    if (e->kind != ExprKind::access) return;
    // A result may take over what it reads only where it is written.
    for (const loop::BufferParam& param : kernel_.buffers) {
      fits = fits && std::find(param.over.begin(), param.over.end(), e->name) == param.over.end();
    }
  });
  if (fits) schedule_.addend = addend;
}

}  // namespace backcast
