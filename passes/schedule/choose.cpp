// The analytic model: for every register tile that fits, the cycles per step of the reduction are
// the largest of arithmetic, loads and the latency of the accumulators; the cheapest tiling of the
// whole iteration space, remainders included, wins.
#include "passes/schedule/choose.h"

#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Scalar;

namespace {

struct Access {
  std::string buffer;
  Expr flat;
  bool in_reduction = false;
  bool packable = false;
};

class Chooser {
 public:
  Chooser(const Definition& definition, const loop::Kernel& kernel, const TargetInfo& target,
          const std::function<bool(const std::string&)>& is_constant)
      : definition_(definition), kernel_(kernel), target_(target), is_constant_(is_constant) {
    collect();
  }

  NestSchedule run() {
    is_reduction_ = !definition_.reduce_axes.empty();
    choose_unrolled();
    choose_vector_axis();
    choose_tile_axis();
    choose_sizes();
    choose_order();
    choose_packing();
    schedule_.use_fma =
        target_.has_fma && target_.prefers_fma && (scalar_ != Scalar::f64 || target_.has_f64);
    return schedule_;
  }

 private:
  // ---- facts ------------------------------------------------------------------------------------

  void collect() {
    for_each_access(definition_, [&](const loop::ExprNode& read, bool in_reduction) {
      Expr flat = loop::flat_index(kernel_.find(read.name)->shape, read.args);
      accesses_.push_back({read.name, flat, in_reduction, false});
      scalars_.insert(read.type.scalar);
    });
    for (const loop::DefinitionOutput& output : definition_.outputs) {
      outputs_.push_back(loop::flat_index(kernel_.find(output.buffer)->shape, output.indices));
      scalars_.insert(kernel_.find(output.buffer)->element);
      collect_types(output.value);
    }
    for (const loop::Accumulator& acc : definition_.accumulators) {
      collect_types(acc.value);
      general_ = general_ || acc.combine == loop::Combine::general;
    }
    for (Access& access : accesses_) access.packable = packable(access);
  }

  void collect_types(const Expr& e) {
    loop::visit(e, [&](const Expr& n) {
      if (n.type().scalar != Scalar::boolean && n.type().scalar != Scalar::index) {
        scalars_.insert(n.type().scalar);
      }
      if (n->kind == ExprKind::if_then_else) {
        for (const Expr& part : conjuncts(n->args[0])) conditions_.push_back(part);
      }
    });
  }

  /// A constant that only accumulators read, at one place, affinely, and that does not depend on
  /// every axis in a way that repeats it.
  bool packable(const Access& access) const {
    if (!access.in_reduction || !is_constant_(access.buffer)) return false;
    int reads = 0;
    for (const Access& other : accesses_) reads += other.buffer == access.buffer;
    if (reads != 1 || reads_memory(access.flat)) return false;
    for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
      for (const Axis& axis : *axes) {
        if (!coefficient(access.flat, axis.name)) return false;
        if (mentions(access.flat, axis.name) && !static_extent(axis)) return false;
      }
    }
    for (const Axis& axis : definition_.reduce_axes) {
      if (!static_extent(axis)) return false;
    }
    return true;
  }

  int64_t extent(const std::string& name) const {
    for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
      for (const Axis& axis : *axes) {
        if (axis.name == name) return static_extent(axis).value_or(0);
      }
    }
    return 0;
  }

  bool conditional_on(const std::string& axis) const {
    return std::any_of(conditions_.begin(), conditions_.end(),
                       [&](const Expr& c) { return mentions(c, axis); });
  }

  // ---- unrolled reduction axes ------------------------------------------------------------------

  /// Short reduction loops without run-time bounds are unrolled, innermost first.
  void choose_unrolled() {
    int64_t steps = 1;
    int64_t budget = target_.vector_bits > 0 ? 4 : 12;
    for (size_t i = definition_.reduce_axes.size(); i-- > 0;) {
      const Axis& axis = definition_.reduce_axes[i];
      std::optional<int64_t> e = static_extent(axis);
      if (!e || steps * *e > budget || (conditional_on(axis.name) && general_)) return;
      // A guarded axis gets run-time bounds and stays a loop.
      if (conditional_on(axis.name)) return;
      schedule_.unrolled.insert(axis.name);
      steps *= *e;
    }
  }

  // ---- the vector axis --------------------------------------------------------------------------

  bool vectorizable_types() const {
    if (scalars_.size() != 1 || general_ || target_.vector_bits == 0) return false;
    Scalar s = *scalars_.begin();
    return s == Scalar::f32 || s == Scalar::f64 || s == Scalar::i32;
  }

  void choose_vector_axis() {
    bool vectors = vectorizable_types();
    scalar_ = scalars_.empty() ? Scalar::f32 : *scalars_.begin();
    int64_t best_score = 0;
    for (const Axis& axis : definition_.axes) {
      std::optional<int64_t> e = static_extent(axis);
      if (!e || *e < 2 || conditional_on(axis.name)) continue;
      int64_t score = 1;
      bool fits = true;
      for (const Access& access : accesses_) {
        std::optional<int64_t> c = coefficient(access.flat, axis.name);
        if (access.packable && c && *c != 0) {
          score += 8;
        } else if (c && *c == 1) {
          score += 4;
        } else if (!c || *c != 0) {
          fits = false;  // a gather: never faster than scalar code
        }
      }
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
      // On scalar targets any axis gives the tile its second side.
      if (!is_reduction_ && !fits) continue;
      if (score > best_score) {
        best_score = score;
        schedule_.vector_axis = axis.name;
      }
    }
    lanes_ = 1;
    if (vectors && !schedule_.vector_axis.empty()) {
      lanes_ = target_.vector_lanes(static_cast<int>(byte_size(loop::element_of(scalar_))));
    }
    if (general_) schedule_.vector_axis.clear();
  }

  // ---- the tile axis ----------------------------------------------------------------------------

  /// The guards on the axis can be decided tile by tile: static, and each with reduction axes that
  /// can be unrolled at the border.
  bool borders_decidable(const std::string& axis) const {
    for (const Expr& part : conditions_) {
      if (!mentions(part, axis)) continue;
      if (part->kind != ExprKind::binary ||
          (part->op != loop::Op::ge && part->op != loop::Op::lt)) {
        return false;
      }
      for (const Axis& other : definition_.axes) {
        if (other.name != axis && mentions(part, other.name)) return false;
      }
      for (const Axis& r : definition_.reduce_axes) {
        if (mentions(part, r.name) && extent(r.name) > 8) return false;
      }
      std::map<std::string, int64_t> zeros{{axis, 0}};
      for (const Axis& r : definition_.reduce_axes) zeros[r.name] = 0;
      if (!evaluate(part->args[0] - part->args[1], zeros)) return false;
    }
    return true;
  }

  void choose_tile_axis() {
    if (!is_reduction_ || general_) return;
    for (size_t i = definition_.axes.size(); i-- > 0;) {
      const Axis& axis = definition_.axes[i];
      if (axis.name == schedule_.vector_axis) continue;
      std::optional<int64_t> e = static_extent(axis);
      if (e && *e < 2) continue;
      if (!e && conditional_on(axis.name)) continue;
      if (!borders_decidable(axis.name)) continue;
      // Something must be shared along the axis, or the tile gains nothing.
      bool shares = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
        return a.in_reduction && !mentions(a.flat, axis.name);
      });
      bool affine = std::all_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
        return coefficient(a.flat, axis.name).has_value();
      });
      if (!affine || !shares) continue;
      schedule_.tile_axis = axis.name;
      return;
    }
  }

  // ---- sizes ------------------------------------------------------------------------------------

  /// Registers of the kind that holds this scalar type.
  int registers() const {
    if (lanes_ > 1) return target_.vector_registers;
    if (loop::is_float(scalar_) && target_.vector_bits > 0) return target_.vector_registers;
    if (loop::is_float(scalar_) && target_.float_registers > 0) return target_.float_registers;
    return std::max(target_.integer_registers - 6, 4);  // addresses and counters take the others
  }

  /// Cycles of one reduction step of a tile; a huge figure when it does not fit the registers.
  double step_cycles(int64_t tile, int64_t vectors) const {
    int64_t accumulators = tile * vectors;
    int64_t loads = 0, held = 0;
    for (const Access& a : accesses_) {
      if (!a.in_reduction) continue;
      bool with_tile = !schedule_.tile_axis.empty() && mentions(a.flat, schedule_.tile_axis);
      bool with_vector = mentions(a.flat, schedule_.vector_axis);
      loads += (with_tile ? tile : 1) * (with_vector ? vectors : 1);
      held += with_vector && !with_tile ? vectors : 1;
    }
    bool fused = target_.has_fma && target_.prefers_fma;
    if (accumulators + held + (fused ? 0 : 1) > registers()) return 1e30;
    double arithmetic = static_cast<double>(accumulators) * (fused ? 1 : 2);
    if (target_.vector_bits == 0) {
      // In order, one instruction at a time; three more for the loop.
      double memory = 1.5 * static_cast<double>(loads);
      return arithmetic + memory + 3.0;
    }
    double memory = static_cast<double>(loads) / 2;
    double units = static_cast<double>(accumulators) / target_.fma_units * (fused ? 1 : 2);
    return std::max({units, memory, static_cast<double>(target_.fma_latency)});
  }

  std::vector<VectorSegment> vector_segments(int64_t vectors) const {
    std::vector<VectorSegment> segments;
    int64_t total = extent(schedule_.vector_axis), at = 0;
    const auto add = [&](int64_t count, int64_t n, int32_t lanes) {
      if (count == 0 || n == 0) return;
      segments.push_back({at, count, n, lanes});
      at += count * n * lanes;
    };
    add(total / (vectors * lanes_), vectors, lanes_);
    add(1, (total - at) / lanes_, lanes_);
    for (int32_t lanes = lanes_ / 2; lanes >= 1; lanes /= 2) add((total - at) / lanes, 1, lanes);
    return segments;
  }

  /// Whether every guard on the tile axis holds at element u for every window element.
  bool interior(int64_t u) const {
    for (const Expr& part : conditions_) {
      if (!mentions(part, schedule_.tile_axis)) continue;
      // Affine with positive coefficients: the extremes of the window decide.
      for (bool last : {false, true}) {
        std::map<std::string, int64_t> values{{schedule_.tile_axis, u}};
        for (const Axis& r : definition_.reduce_axes)
          values[r.name] = last ? extent(r.name) - 1 : 0;
        int64_t margin = evaluate(part->args[0] - part->args[1], values).value();
        if (part->op == loop::Op::ge ? margin < 0 : margin >= 0) return false;
      }
    }
    return true;
  }

  std::vector<TileSegment> tile_segments(int64_t size) const {
    if (schedule_.tile_axis.empty()) return {};
    int64_t total = extent(schedule_.tile_axis);
    if (total == 0) return symbolic_tiles(size);
    int64_t low = 0, high = total;
    while (low < total && !interior(low)) ++low;
    while (high > low && !interior(high - 1)) --high;
    std::vector<TileSegment> segments;
    int64_t at = 0;
    const auto border = [&](int64_t n) {
      segments.push_back({Expr(at), Expr(1), n, true});
      at += n;
    };
    while (at < low) border(std::min(size, total - at));
    if (int64_t full = std::max<int64_t>(high - at, 0) / size; full > 0) {
      segments.push_back({Expr(at), Expr(full), size, false});
      at += full * size;
    }
    if (high == total && at < total) {
      segments.push_back({Expr(at), Expr(1), total - at, false});
      at = total;
    }
    while (at < total) border(std::min(size, total - at));
    return segments;
  }

  std::vector<TileSegment> symbolic_tiles(int64_t size) const {
    Expr total;
    for (const Axis& axis : definition_.axes) {
      if (axis.name == schedule_.tile_axis) total = axis.extent;
    }
    Expr full = loop::floor_div(total, Expr(size));
    return {{Expr(0), full, size, false},
            {full * Expr(size), loop::floor_mod(total, Expr(size)), 1, false}};
  }

  double total_cycles(int64_t size, int64_t vectors) const {
    double total = 0;
    std::vector<VectorSegment> columns = schedule_.vector_axis.empty()
                                             ? std::vector<VectorSegment>{{0, 1, 1, 1}}
                                             : vector_segments(vectors);
    std::vector<TileSegment> rows = tile_segments(size);
    if (rows.empty()) rows = {{Expr(0), Expr(1), 1, false}};
    for (const VectorSegment& c : columns) {
      for (const TileSegment& r : rows) {
        int64_t count = 8;  // of a symbolic number of tiles
        loop::as_constant(r.count, count);
        // A tile's start and end cost about as much as a few steps.
        total += static_cast<double>(count * c.count) * step_cycles(r.size, c.vectors);
      }
    }
    return total;
  }

  void choose_sizes() {
    if (!is_reduction_) {
      if (!schedule_.vector_axis.empty()) {
        int64_t work = std::max<int64_t>(cost(definition_).total(), 1);
        schedule_.vector_segments = vector_segments(std::clamp<int64_t>(8 / work, 1, 4));
      }
      return;
    }
    double best = 2e30;
    int64_t best_tile = 1, best_vectors = 1;
    int64_t max_tile = schedule_.tile_axis.empty() ? 1 : 16;
    int64_t max_vectors = schedule_.vector_axis.empty() ? 1 : 8;
    if (int64_t e = extent(schedule_.tile_axis); e > 0) max_tile = std::min(max_tile, e);
    if (!schedule_.vector_axis.empty()) {
      max_vectors = std::clamp<int64_t>(extent(schedule_.vector_axis) / lanes_, 1, max_vectors);
    }
    int64_t steps = 1;
    for (const std::string& axis : schedule_.unrolled) steps *= extent(axis);
    for (int64_t tile = 1; tile <= max_tile; ++tile) {
      for (int64_t vectors = 1; vectors <= max_vectors; ++vectors) {
        if (tile * vectors > 1 && tile * vectors * steps > target_.unroll_budget) continue;
        double cycles = total_cycles(tile, vectors);
        if (cycles < best * 0.999) {
          best = cycles;
          best_tile = tile;
          best_vectors = vectors;
        }
      }
    }
    if (!schedule_.vector_axis.empty()) schedule_.vector_segments = vector_segments(best_vectors);
    if (!schedule_.tile_axis.empty()) schedule_.tile_segments = tile_segments(best_tile);
    int64_t body = best_tile * best_vectors * steps;
    if (steps == 1) schedule_.reduce_unroll = std::clamp<int64_t>(16 / body, 1, 4);
  }

  // ---- order and packing ------------------------------------------------------------------------

  /// Where something is reused across the vector axis' blocks (a contraction) the packed panel
  /// stays in cache: vector axis outside. Otherwise memory order.
  void choose_order() {
    bool contraction = false;
    for (const Access& a : accesses_) {
      contraction = contraction || (a.in_reduction && !schedule_.vector_axis.empty() &&
                                    !mentions(a.flat, schedule_.vector_axis));
    }
    for (const Axis& axis : definition_.axes) {
      if (axis.name == schedule_.vector_axis || axis.name == schedule_.tile_axis) continue;
      bool in_panel = false;
      for (const Access& a : accesses_)
        in_panel = in_panel || (a.packable && mentions(a.flat, axis.name));
      // Axes that choose another panel (groups) stay outside of everything.
      if (in_panel) schedule_.order.push_back(axis.name);
    }
    if (contraction) schedule_.order.push_back(schedule_.vector_axis);
    for (const Axis& axis : definition_.axes) {
      const auto& order = schedule_.order;
      if (axis.name == schedule_.tile_axis || axis.name == schedule_.vector_axis) continue;
      if (std::find(order.begin(), order.end(), axis.name) == order.end()) {
        schedule_.order.push_back(axis.name);
      }
    }
    if (!schedule_.tile_axis.empty()) schedule_.order.push_back(schedule_.tile_axis);
    if (!contraction && !schedule_.vector_axis.empty()) {
      schedule_.order.push_back(schedule_.vector_axis);
    }
  }

  void choose_packing() {
    if (schedule_.vector_axis.empty()) return;
    for (const Access& a : accesses_) {
      if (!a.packable || !mentions(a.flat, schedule_.vector_axis)) continue;
      if (!schedule_.tile_axis.empty() && mentions(a.flat, schedule_.tile_axis)) continue;
      Packing packing;
      for (const Axis& axis : definition_.axes) {
        if (axis.name == schedule_.vector_axis || !mentions(a.flat, axis.name)) continue;
        packing.outer.push_back(axis.name);
        packing.outer_extents.push_back(extent(axis.name));
      }
      for (const Axis& axis : definition_.reduce_axes) {
        packing.reduce_extents.push_back(extent(axis.name));
      }
      // Reading every element once per position means no repetition: all reduction axes count.
      bool repeats = std::any_of(
          definition_.reduce_axes.begin(), definition_.reduce_axes.end(),
          [&](const Axis& axis) { return extent(axis.name) > 1 && !mentions(a.flat, axis.name); });
      if (!repeats) schedule_.packed[a.buffer] = packing;
    }
  }

  const Definition& definition_;
  const loop::Kernel& kernel_;
  const TargetInfo& target_;
  const std::function<bool(const std::string&)>& is_constant_;
  std::vector<Access> accesses_;
  std::vector<Expr> outputs_;
  std::vector<Expr> conditions_;
  std::set<Scalar> scalars_;
  Scalar scalar_ = Scalar::f32;
  int32_t lanes_ = 1;
  bool general_ = false;
  bool is_reduction_ = false;
  NestSchedule schedule_;
};

}  // namespace

NestSchedule choose_schedule(const Definition& definition, const loop::Kernel& kernel,
                             const TargetInfo& target,
                             const std::function<bool(const std::string&)>& is_constant) {
  return Chooser(definition, kernel, target, is_constant).run();
}

}  // namespace backcast
