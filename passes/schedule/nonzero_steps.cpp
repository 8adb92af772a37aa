// See nonzero_steps.h.
#include "passes/schedule/nonzero_steps.h"

#include <algorithm>
#include <utility>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/nonzero_rows.h"
#include "passes/schedule/reduction_blocks.h"
#include "passes/schedule/shift_taps.h"
#include "passes/schedule/skipping_costs.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;

namespace {

int64_t extent_of(const Definition& definition, const std::string& name) {
  for (const auto* axes : {&definition.axes, &definition.reduce_axes}) {
    for (const Axis& axis : *axes) {
      if (axis.name == name) return *static_extent(axis);
    }
  }
  return 1;
}

/// The order of a packed operand's steps becomes that of the loops, if it holds just these.
bool reorder(Packing& packing, const Definition& definition,
             const std::vector<std::string>& order) {
  if (packing.reduce == order) return true;
  if (packing.at_run_time || packing.reduce.size() != order.size()) return false;
  if (std::count(packing.reversed.begin(), packing.reversed.end(), true) > 0) return false;
  for (size_t i = 0; i < order.size(); ++i) {
    packing.reduce[i] = order[i];
    packing.reduce_extents[i] = extent_of(definition, order[i]);
  }
  return true;
}

/// Registers that a result's steps take in turn, so that none waits for its own last addition.
int64_t chains_for(int64_t registers, const TargetInfo& target) {
  const double units = SkippingCosts::units(target);
  int64_t chains = 1;
  while (static_cast<double>(chains * registers) < target.fma_latency * units &&
         4 * chains * registers <= target.vector_registers) {
    chains *= 2;
  }
  return chains;
}

/// One way to leave out zeros, and what it takes.
class Candidate {
 public:
  Candidate(const Definition& definition, const loop::Kernel& kernel,
            const SkippingContext& context)
      : kernel_(kernel), context_(context), target_(context.target) {
    result_.definition = definition;
  }

  /// False where sums of so many vectors cannot skip.
  bool form(const NonzeroRows& rows, const TileLimits& limits) {
    rows_ = rows;
    result_.schedule = context_.choose(result_.definition, limits);
    if (!adapt()) return false;
    const int64_t steps = costs().steps();
    const bool fit = is_across() ? fits(steps) : costs().weight_bytes(steps) <= target_.l1_bytes;
    const bool in_blocks = target_.vector_bits > 0 && costs().results() > 1 && !fit;
    if (in_blocks && !cut()) return false;
    gather_rows(in_blocks);
    return (!in_blocks || order_blocks()) && find_span();
  }

  const std::string& weight() const { return rows_.of.weight; }
  double cycles() const {
    return costs().skipping(marked(), context_.rearranging(result_.definition, result_.schedule));
  }
  double taking_all(double cycles) const { return costs().taking_all(cycles); }

  SkippingNest finish() {
    StepMask& mask = result_.schedule.taken;
    mask = {.axes = rows_.axes,
            .factor = rows_.of.factor,
            .element = kernel_.find(rows_.of.factor)->element,
            .count = rows_.count,
            .word = word(),
            .lanes = static_cast<int32_t>(target_.vector_lanes(costs().element_bytes())),
            .depth = depth_,
            .first = first_,
            .row = loop::simplify(row_ - first_),
            .span = span_,
            .results = results_};
    // Of registers one by one only where that is an instruction each.
    constexpr int64_t kWord = 32;
    const bool by_words = mask.lanes > 1 && !target_.gathers_lanes;
    mask.gathered = by_words ? static_cast<int32_t>(std::min(kWord, mask.bits())) : mask.lanes;
    if (rows_.is_guarded) mask.rows = rows_.rows;
    if (is_across()) {
      mask.is_joint = rows_.is_joint;
      mask.joined = joined_words(rows_, costs().element_bytes(), target_);
    }
    const auto packing = result_.schedule.packed.find(rows_.of.weight);
    // The second cache is near enough without.
    const bool is_far = context_.program_bytes > target_.l2_bytes;
    if (is_far && result_.schedule.local_totals > 0 && packing != result_.schedule.packed.end()) {
      mask.fetched = rows_.of.weight;
    }
    return std::move(result_);
  }

 private:
  SkippingCosts costs() const {
    return {target_, context_.program_bytes, rows_, result_.definition, result_.schedule, group_};
  }

  bool is_across() const { return !rows_.of.across.empty(); }

  loop::Scalar word() const { return mask_word(rows_, costs().element_bytes(), target_); }

  bool differs_along_vectors() const {
    const std::string& axis = result_.schedule.vector_axis;
    return is_across() ? rows_.results.contains(axis) : mentions(rows_.row, axis);
  }

  /// Whether vectors of results are not next to one another where they are stored.
  bool scatters() const {
    const auto& outputs = result_.definition.outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](const loop::DefinitionOutput& output) {
      const Expr flat = loop::flat_index(kernel_.find(output.buffer)->shape, output.indices);
      return coefficient(flat, result_.schedule.vector_axis) != 1;
    });
  }

  /// Blocks of the vector axis.
  int64_t panels() const {
    int64_t count = 0;
    for (const VectorSegment& segment : result_.schedule.vector_segments) count += segment.count;
    return count;
  }

  /// Elements of the factor that are compared.
  double marked() const {
    double elements = static_cast<double>(rows_.count);
    if (!is_across()) {
      // Each panel of a single result has comparisons of its own.
      const bool in_panels = target_.vector_bits > 0 && costs().results() == 1;
      return elements * static_cast<double>(rows_.rows * (in_panels ? panels() : 1));
    }
    elements *= static_cast<double>(span_ * result_.schedule.blocks);
    for (size_t at = 0; at < depth_; ++at) {
      const std::string& name = result_.schedule.order[at];
      if (result_.schedule.is_block_axis(name)) continue;
      const bool along = name == result_.schedule.vector_axis;
      elements *= static_cast<double>(along ? panels() : extent_of(result_.definition, name));
    }
    return elements;
  }

  bool adapt() {
    NestSchedule& schedule = result_.schedule;
    // From memory, rows come no faster when every other one is left out.
    const bool from_memory =
        target_.l2_bytes > 0 && context_.program_bytes > SkippingCosts::held(target_);
    // Tiles of rows load a weight once, others multiply straight from memory; where a product and
    // its sum are two instructions, a third one to load does not outweigh both left out.
    const bool loads_apart =
        target_.vector_bits == 0 || (target_.loads_apart() && target_.fuses_products());
    if (costs().results() == 1 ? from_memory : loads_apart) return false;
    if (schedule.vector_axis.empty() || !schedule.lane_axis.empty() ||
        !schedule.block_axes.empty() || !schedule.tile_axis.empty() || schedule.jam > 1 ||
        differs_along_vectors() || schedule.packed.count(rows_.of.factor)) {
      return false;
    }
    if (costs().results() == 0 || (is_across() && scatters())) return false;
    const auto packing = schedule.packed.find(rows_.of.weight);
    const bool fits = packing == schedule.packed.end()
                          ? rows_.is_joint || is_across()
                          : reorder(packing->second, result_.definition, rows_.order);
    if (!fits) return false;
    schedule.reduce_order = rows_.order;
    schedule.unrolled.clear();
    schedule.reduce_unroll = schedule.joined_steps = 1;
    const int64_t vectors = schedule.vector_segments.front().vectors;
    if (!jam_taps(vectors)) return false;
    schedule.chains = chains_for(schedule.jam * vectors, target_);
    return true;
  }

  /// All taps take the step of a bit. False where there are no registers for that.
  bool jam_taps(int64_t vectors) {
    NestSchedule& schedule = result_.schedule;
    const std::vector<std::string>& taps = rows_.of.taps;
    if (taps.empty()) return true;
    for (const std::string& tap : taps) schedule.jam *= extent_of(result_.definition, tap);
    std::erase_if(schedule.order, [&](const std::string& axis) {
      return std::count(taps.begin(), taps.end(), axis) > 0;
    });
    schedule.jam_axis = taps.back();
    if (taps.size() > 1) schedule.outer_jam_axis = taps[taps.size() - 2];
    constexpr int64_t kOthers = 3;
    return taps.size() <= 2 && schedule.jam * vectors + kOthers <= target_.vector_registers;
  }

  /// Blocks whose weights the first cache holds, each for many results before the next one.
  bool cut() {
    constexpr int64_t kFewestSteps = 24;
    const int64_t all = rows_.count;
    std::set<std::string> outside;
    while (!fits(rows_.count)) {
      const std::string axis = rows_.axes.front();
      const int64_t extent = extent_of(result_.definition, axis), inside = rows_.count / extent;
      int64_t size = extent - 1;
      while (size > 0 && (extent % size != 0 || !fits(size * inside))) --size;
      if (size < 2 || size * inside < kFewestSteps) {
        if (rows_.axes.size() == 1) return false;
        outside.insert(axis);
      } else {
        const std::string block = fresh_axis(result_.definition, axis);
        result_.definition = cut_axis(result_.definition, axis, size, block);
        outside.insert(block);
      }
      const auto rows = find_nonzero_rows(result_.definition, kernel_, rows_.of, outside);
      if (!rows || rows->count < std::min(kFewestSteps, all)) return false;
      rows_ = *rows;
    }
    if (rows_.count == all) return true;
    result_.schedule = context_.choose(result_.definition, limits_of());
    return adapt();
  }

  TileLimits limits_of() const { return {1, result_.schedule.vector_segments.front().vectors}; }

  /// The innermost loops over results, `group_` of them, that share what they find of the factor
  /// and, in blocks or where the first cache does not hold all panels, the weights. What stands
  /// outside can be shared out among threads.
  void gather_rows(bool in_blocks) {
    NestSchedule& schedule = result_.schedule;
    depth_ = 0;
    if (target_.vector_bits == 0) return;
    const bool in_panels = order_vectors(in_blocks);
    const int64_t most_marked = is_across() ? 64 : 32;
    // Totals take no more of the stack than the first cache has.
    const int64_t total = costs().weight_bytes(1) * schedule.jam;
    const int64_t most = in_blocks ? target_.l1_bytes / total : most_marked;
    const bool is_shared_out =
        target_.parallel_grain > 0 && (panels() == 1 || !(in_blocks || in_panels));
    depth_ = schedule.order.size();
    gather_rows(most, in_blocks, is_shared_out);
    if (!in_panels) return;
    schedule.order.insert(schedule.order.begin() + static_cast<std::ptrdiff_t>(depth_),
                          schedule.vector_axis);
    // Threads share out the outermost loop, each with bits of its own.
    if (depth_ == 0) ++depth_;
  }

  void gather_rows(int64_t most, bool in_blocks, bool is_shared_out) {
    NestSchedule& schedule = result_.schedule;
    for (size_t at = schedule.order.size(); at-- > 0;) {
      const std::string name = schedule.order[at];
      if (name == schedule.vector_axis) {
        // Results whose weights come one vector after another.
        if (in_blocks || group_ > 1 || costs().results() == 1) return;
        depth_ = at;
        continue;
      }
      const int64_t extent = extent_of(result_.definition, name);
      const bool is_all = is_shared_out && group_ * extent == costs().results();
      const bool is_long = group_ * extent > most;
      if (extent > 1 && (is_all || is_long)) {
        const int64_t size = part_of(extent, std::min(most / group_, extent / 2));
        if (size > 1 && !mentions(rows_.flat_weight, name)) {
          cut_results(name, size, at);
          group_ *= size;
          depth_ = at + 1;
          return;
        }
        // What cannot be cut stays together.
        if (is_long || name != rows_.of.across) return;
      }
      group_ *= extent;
      depth_ = at;
    }
  }

  /// Results that share vectors of comparisons are next to one another. True where the panels of
  /// weights, together too large for the first cache, each wait for a place outside of the results
  /// that share them.
  bool order_vectors(bool in_blocks) {
    std::vector<std::string>& order = result_.schedule.order;
    const std::string& vectors = result_.schedule.vector_axis;
    const bool in_panels = !in_blocks && costs().results() > 1 && !costs().holds_all();
    if (in_panels || is_across()) std::erase(order, vectors);
    if (is_across()) {
      std::erase(order, rows_.of.across);
      if (in_blocks) order.push_back(vectors);
      order.push_back(rows_.of.across);
      if (!in_blocks && !in_panels) order.push_back(vectors);
    }
    return in_panels;
  }

  /// The largest divisor that is not beyond `most`.
  static int64_t part_of(int64_t extent, int64_t most) {
    int64_t size = std::max<int64_t>(most, 1);
    while (extent % size != 0) --size;
    return size;
  }

  /// Results along axis `name`, which stands at `at` of the order, in parts of `size`.
  void cut_results(const std::string& name, int64_t size, size_t at) {
    const std::string part = fresh_axis(result_.definition, name);
    result_.definition = cut_axis(result_.definition, name, size, part);
    std::vector<std::string>& order = result_.schedule.order;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), part);
    if (is_across()) return;
    rows_.row =
        loop::substitute(rows_.row, {{name, loop::var(part) * Expr(size) + loop::var(name)}});
  }

  /// Does the first cache hold the weights of so many steps, beside what they are multiplied by?
  bool fits(int64_t steps) const { return 4 * costs().weight_bytes(steps) <= 3 * target_.l1_bytes; }

  /// Blocks stand right outside of the results that share their weights.
  bool order_blocks() {
    NestSchedule& schedule = result_.schedule;
    constexpr int64_t kFewestRows = 4;
    if (group_ < kFewestRows) return false;
    schedule.block_axes.assign(rows_.order.begin(),
                               rows_.order.end() - static_cast<std::ptrdiff_t>(rows_.axes.size()));
    // Taps whose weights are near together are taken one after another.
    int64_t steps = rows_.count;
    while (!schedule.block_axes.empty() && !is_across() &&
           fits(steps * extent_of(result_.definition, schedule.block_axes.back()))) {
      steps *= extent_of(result_.definition, schedule.block_axes.back());
      schedule.block_axes.pop_back();
    }
    if (schedule.block_axes.empty()) return false;
    schedule.blocks = costs().steps() / steps;
    schedule.order.insert(schedule.order.begin() + static_cast<std::ptrdiff_t>(depth_),
                          schedule.block_axes.begin(), schedule.block_axes.end());
    for (const VectorSegment& segment : schedule.vector_segments) {
      schedule.local_totals =
          std::max(schedule.local_totals, group_ * schedule.jam * segment.width());
    }
    return true;
  }

  /// The rows of the factor that are read inside: from one on that depends on loops outside.
  bool find_span() {
    constexpr int64_t kMostBytes = int64_t{32} << 10;
    if (is_across() ? !span_results() : !span_rows()) return false;
    const int64_t bits = 8 * byte_size(loop::element_of(word()));
    return span_ * ((rows_.count + bits - 1) / bits) * bits / 8 <= kMostBytes;
  }

  bool span_rows() {
    row_ = rows_.row;
    Expr first = row_;
    span_ = 1;
    const auto add = [&](const Axis& axis) {
      const std::optional<int64_t> step = coefficient(rows_.row, axis.name);
      if (!step || *step < 0) return false;
      span_ += *step * (*static_extent(axis) - 1);
      first = loop::substitute(first, {{axis.name, Expr(0)}});
      return true;
    };
    const std::vector<std::string>& order = result_.schedule.order;
    for (const Axis& axis : result_.definition.axes) {
      const auto at = std::find(order.begin(), order.end(), axis.name) - order.begin();
      if (at >= static_cast<std::ptrdiff_t>(depth_) && !add(axis)) return false;
    }
    for (const Axis& axis : result_.definition.reduce_axes) {
      const bool along = std::count(rows_.axes.begin(), rows_.axes.end(), axis.name) > 0;
      if (!along && !add(axis)) return false;
    }
    first_ = loop::simplify(first);
    return true;
  }

  /// The same for the results inside, whose bits are of what they read across rows.
  bool span_results() {
    const std::vector<std::string>& order = result_.schedule.order;
    row_ = first_ = Expr(0);
    for (size_t at = depth_; at < order.size(); ++at) {
      if (!rows_.results.contains(order[at])) continue;
      const int64_t extent = extent_of(result_.definition, order[at]);
      results_.push_back(order[at]);
      row_ = row_ * Expr(extent) + loop::var(order[at]);
      span_ *= extent;
    }
    return !results_.empty() && results_.back() == rows_.of.across;
  }

  const loop::Kernel& kernel_;
  const SkippingContext& context_;
  const TargetInfo& target_;
  NonzeroRows rows_;
  SkippingNest result_;
  int64_t group_ = 1;  // results beside one another that share a block's weights and bits
  size_t depth_ = 0;   // of their loops
  Expr first_, row_;   // of the rows that they read: the first one, and each result's
  int64_t span_ = 1;   // how many
  std::vector<std::string> results_;  // inside, that bits differ along
};

}  // namespace

std::optional<SkippingNest> choose_nonzero_steps(const Definition& definition,
                                                 const loop::Kernel& kernel,
                                                 const SkippingContext& context) {
  std::optional<Candidate> best;
  double cycles = 0;
  const auto consider = [&](const Definition& form, const ZeroFactor& factor) {
    const std::optional<NonzeroRows> rows = find_nonzero_rows(form, kernel, factor);
    if (!rows) return;
    for (const int64_t vectors : {16, 6, 4, 2}) {
      Candidate candidate(form, kernel, context);
      if (!candidate.form(*rows, {1, vectors})) continue;
      if (best && candidate.cycles() >= cycles) continue;
      cycles = candidate.cycles();
      best.emplace(std::move(candidate));
    }
  };
  for (ZeroFactor factor : zero_factors(definition, kernel, context.is_rectified)) {
    consider(definition, factor);
    if (factor.across.empty()) continue;
    const std::optional<ShiftedTaps> shifted = shift_taps(definition, factor.factor);
    if (!shifted) continue;
    // All taps, or those along the last axes.
    for (size_t first = 0; first < shifted->taps.size(); ++first) {
      factor.taps.clear();
      double inside = 1;
      for (size_t i = first; i < shifted->taps.size(); ++i) {
        factor.taps.push_back(shifted->taps[i]);
        inside *= shifted->inside[i];
      }
      factor.border = 1 - inside;
      consider(shifted->definition, factor);
    }
  }
  constexpr double kGain = 1.05;
  if (!best) return std::nullopt;
  const double all = best->taking_all(context.cycles());
  if (kGain * cycles > all) return std::nullopt;
  // Last: this looks at every weight.
  if (!context.is_finite(best->weight())) return std::nullopt;
  SkippingNest nest = best->finish();
  nest.part = cycles / all;
  return nest;
}

}  // namespace backcast
