// See fetch_operands.h.
#include "passes/schedule/fetch_operands.h"

#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"
#include "passes/schedule/lanes.h"
#include "passes/schedule/window.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::Stmt;

namespace {

constexpr int64_t kLineBytes = 64;
// Nearer steps are what a machine's own prefetchers are made for.
constexpr int64_t kLeapBytes = 256;
// The way from the second cache under load takes so long. Lines that lie powers of two apart share
// few places in the first cache: more of them would displace one another.
constexpr int64_t kCyclesAhead = 112;
constexpr int64_t kMostAhead = 12;
// Where fewer are free, compilers keep accumulators in memory once a loop also computes rows.
constexpr int64_t kSpareRegisters = 2;
// What a kernel goes through once lies in the second cache only if it is a small part of that: as a
// rule other steps came between.
constexpr int64_t kNearParts = 8;
// Fewer tiles leave no time for the next strip.
constexpr int64_t kFewestTiles = 4;

/// The innermost loop of the reduction; null when all of it is unrolled.
const Axis* innermost_loop(const Definition& definition, const NestSchedule& schedule) {
  std::vector<std::string> order = schedule.reduce_order;
  if (order.empty()) {
    for (const Axis& axis : definition.reduce_axes) order.push_back(axis.name);
  }
  const Axis* innermost = nullptr;
  for (const std::string& name : order) {
    for (const Axis& axis : definition.reduce_axes) {
      const bool loops = !schedule.unrolled.count(name) && !schedule.is_block_axis(name);
      if (axis.name == name && loops && static_extent(axis) != 1) innermost = &axis;
    }
  }
  return innermost;
}

class FetchChooser {
 public:
  FetchChooser(const Definition& definition, const loop::Kernel& kernel,
               const NestSchedule& schedule, const TargetInfo& target)
      : definition_(definition),
        kernel_(kernel),
        schedule_(schedule),
        target_(target),
        axis_(innermost_loop(definition, schedule)) {}

  std::vector<Fetch> run() {
    if (const Axis* taps = window_taps(definition_, kernel_, schedule_)) return turns(*taps);
    if (!applies()) return {};
    segment_ = schedule_.vector_segments[0];
    rows_ = schedule_.largest_tile();
    for_each_access(definition_, [&](const loop::ExprNode& read, bool in_reduction) {
      const Operand operand = operand_of(read.name, read.args);
      affine_ = affine_ && operand.affine;
      if (!operand.affine) return;
      in_reduction ? add_streams(operand) : add_rows(operand);
    });
    for (const loop::DefinitionOutput& output : definition_.outputs) {
      const Operand operand = operand_of(output.buffer, output.indices);
      affine_ = affine_ && operand.affine;
      if (operand.affine && !lies_over_another(operand)) add_rows(operand);
    }
    return affine_ && has_free_loads(loads_, cycles()) ? fetches_ : std::vector<Fetch>{};
  }

 private:
  struct Operand {
    std::string buffer;
    Expr index;
    bool affine = false;
    int64_t bytes = 0, element = 1;          // of the whole and of an element
    int64_t step = 0, across = 0, down = 0;  // elements to the next step, lane and row
  };

  bool applies() const {
    const bool plain = schedule_.lane_axis.empty() && schedule_.jam_axis.empty() &&
                       schedule_.transposed_axis.empty() && schedule_.block_axes.empty();
    for (const Axis& axis : definition_.reduce_axes) {
      if (!static_extent(axis)) return false;
    }
    return target_.l2_bytes > 0 && plain && definition_.accumulators.size() == 1 &&
           axis_ != nullptr && *static_extent(*axis_) >= kFewestFetchedSteps &&
           schedule_.has_vectors();
  }

  /// Images that lie channel by channel come from main memory a piece of a row at a time, from
  /// other rows in every step: of an operand whose rows are large together, those that the next row
  /// of results reads.
  std::vector<Fetch> turns(const Axis& taps) const {
    std::vector<Fetch> turns;
    const auto tiles =
        std::find(schedule_.order.begin(), schedule_.order.end(), schedule_.tile_axis);
    if (target_.l2_bytes == 0 || tiles == schedule_.order.begin()) return {};
    const std::string& around = *(tiles - 1);
    for_each_access(definition_, [&](const loop::ExprNode& read, bool in_reduction) {
      const Operand operand = operand_of(read.name, read.args);
      const auto step = [&](const std::string& axis) {
        return coefficient(operand.index, axis).value_or(0) * operand.element;
      };
      bool scattered = in_reduction && operand.affine && operand.across == 0 && step(around) != 0 &&
                       operand.bytes * kNearParts >= target_.l2_bytes;
      for (const Axis& axis : definition_.reduce_axes) {
        const int64_t bytes = step(axis.name);
        const bool near = bytes > 0 && bytes < kLineBytes;
        scattered = scattered && (axis.name == taps.name ? near : std::abs(bytes) >= kLeapBytes);
      }
      if (scattered) turns.push_back({Fetch::Kind::turn, read.name, operand.index, around});
    });
    return turns;
  }

  /// Of a step of the largest tile.
  int64_t cycles() const {
    return std::max<int64_t>(rows_ * segment_.vectors / target_.fma_units, 1);
  }

  Operand operand_of(const std::string& buffer, const std::vector<Expr>& args) const {
    const loop::BufferParam& param = *kernel_.find(buffer);
    Operand operand{buffer, loop::flat_index(param.shape, args)};
    const auto along = [&](const std::string& axis) {
      return axis.empty() ? 0 : coefficient(operand.index, axis);
    };
    const std::optional<int64_t> step = along(axis_ ? axis_->name : ""),
                                 down = along(schedule_.tile_axis),
                                 across = along(schedule_.vector_axis);
    const std::optional<int64_t> bytes = static_bytes(param);
    operand.affine = step && down && across && bytes && !reads_memory(operand.index);
    if (!operand.affine) return operand;
    operand.element = byte_size(loop::element_of(param.element));
    operand.bytes = *bytes;
    operand.step = *step;
    operand.across = *across;
    operand.down = *down;
    return operand;
  }

  /// An operand of the products.
  void add_streams(const Operand& operand) {
    const int64_t vectors = operand.across != 0 ? segment_.vectors : 1;
    loads_ += (operand.down != 0 ? rows_ : 1) * vectors;
    const bool leaps = !schedule_.packed.count(operand.buffer) &&
                       operand.step * operand.element >= kLeapBytes &&
                       operand.bytes > target_.l1_bytes;
    // One line for each register, or one or two for all of the tile's rows.
    const bool vector = operand.across == 1 && operand.down == 0;
    const bool scalars = operand.across == 0 && operand.down == 1;
    if (!leaps || (!vector && !scalars)) return;
    const int64_t lines = (segment_.width() * operand.element + kLineBytes - 1) / kLineBytes;
    loads_ += vector ? lines : 2;
    const int64_t ahead = std::clamp<int64_t>(kCyclesAhead / cycles(), 2, kMostAhead);
    fetches_.push_back({Fetch::Kind::step, operand.buffer, operand.index, axis_->name, ahead});
    const bool strips = vector && operand.bytes * 4 >= target_.l2_bytes && has_strips(operand);
    if (strips) fetches_.push_back({Fetch::Kind::strip, operand.buffer, operand.index});
  }

  /// All tiles of a block of the vector axis share a strip of the operand, and there is a next one.
  bool has_strips(const Operand& operand) const {
    bool shared = schedule_.unrolled.empty() && segment_.count > 1 &&
                  schedule_.order.front() == schedule_.vector_axis;
    for (const std::string& axis : schedule_.order) {
      shared = shared && (axis == schedule_.vector_axis || !mentions(operand.index, axis));
    }
    return shared;
  }

  /// What is read or written beside the sums: rows of which the tile takes a small part.
  void add_rows(const Operand& operand) {
    const int64_t part = segment_.width() * operand.element;
    if (operand.across != 1 || operand.down * operand.element < 2 * part) return;
    if (operand.bytes * kNearParts < target_.l2_bytes) return;
    // Accumulators, a step's vectors and a scalar.
    const int64_t taken = rows_ * segment_.vectors + segment_.vectors + 1;
    if (taken + kSpareRegisters > target_.vector_registers) return;
    fetches_.push_back({Fetch::Kind::row, operand.buffer, operand.index});
  }

  bool lies_over_another(const Operand& output) const {
    const std::vector<std::string>& over = kernel_.find(output.buffer)->over;
    return std::any_of(fetches_.begin(), fetches_.end(), [&](const Fetch& fetch) {
      return std::count(over.begin(), over.end(), fetch.buffer) > 0;
    });
  }

  const Definition& definition_;
  const loop::Kernel& kernel_;
  const NestSchedule& schedule_;
  const TargetInfo& target_;
  const Axis* axis_;
  VectorSegment segment_;
  int64_t rows_ = 1, loads_ = 0;
  bool affine_ = true;
  std::vector<Fetch> fetches_;
};

}  // namespace

std::vector<Fetch> choose_fetches(const Definition& definition, const loop::Kernel& kernel,
                                  const NestSchedule& schedule, const TargetInfo& target) {
  return FetchChooser(definition, kernel, schedule, target).run();
}

// ---- expansion ----------------------------------------------------------------------------------

/// The lines of a row's registers.
void Expansion::fetch_lines(const Fetch& fetch, Bindings place, loop::Cache cache,
                            std::vector<Stmt>& body) const {
  const Expr first = place.at(schedule_.vector_axis);
  const int64_t bytes = byte_size(loop::element_of(kernel_.find(fetch.buffer)->element)) * lanes();
  for (int64_t n = 0; n < vectors(); ++n) {
    if (n * bytes % kLineBytes != 0) continue;
    place[schedule_.vector_axis] = first + Expr(n * lanes());
    body.push_back(loop::prefetch(fetch.buffer, loop::substitute(fetch.index, place), cache));
  }
}

void Expansion::fetch_step(const Fetch& fetch, Bindings place, std::vector<Stmt>& body) const {
  place[fetch.axis] = place.at(fetch.axis) + Expr(fetch.steps);
  if (mentions(fetch.index, schedule_.vector_axis)) {
    return fetch_lines(fetch, std::move(place), loop::Cache::first, body);
  }
  // The rows' elements lie in one line or two.
  for (const int64_t row : {int64_t{0}, rows() - 1}) {
    if (row > 0) place[schedule_.tile_axis] = tile_base_ + Expr(row);
    const Expr index = loop::substitute(fetch.index, place);
    body.push_back(loop::prefetch(fetch.buffer, index, loop::Cache::first));
    if (rows() == 1) return;
  }
}

/// Which of the tiles of a block of the vector axis this is, and how many there are, about.
Expr Expansion::tile_number(const Bindings& bindings, int64_t& tiles) const {
  Expr number = Expr(0);
  tiles = 1;
  for (const std::string& name : schedule_.order) {
    if (name == schedule_.vector_axis) continue;
    const bool tiled = name == schedule_.tile_axis;
    const int64_t size = tiled ? schedule_.largest_tile() : 1;
    const int64_t extent = static_extent(*axes_.at(name)).value_or(0) / size;
    const Expr at = tiled ? loop::floor_div(tile_base_, Expr(size)) : bindings.at(name);
    number = number * Expr(extent) + at;
    tiles *= extent;
  }
  return number;
}

/// The lines of all that the tile's window reads in this step, a turn later.
void Expansion::fetch_turns(const Bindings& bindings, const Bindings& reduce, const Axis& taps,
                            std::vector<Stmt>& body) const {
  for (const Fetch& fetch : schedule_.fetches) {
    Bindings first = at(bindings, 0);
    first.insert(reduce.begin(), reduce.end());
    first[fetch.axis] = first.at(fetch.axis) + Expr(1);
    first[taps.name] = Expr(0);
    const int64_t line =
        kLineBytes / byte_size(loop::element_of(kernel_.find(fetch.buffer)->element));
    const int64_t reach = (rows() - 1) * *coefficient(fetch.index, schedule_.tile_axis) +
                          (*static_extent(taps) - 1) * *coefficient(fetch.index, taps.name);
    const Expr index = loop::substitute(fetch.index, first);
    for (int64_t at = 0; at <= reach; at += line) {
      body.push_back(loop::prefetch(fetch.buffer, index + Expr(at), loop::Cache::second));
    }
  }
}

void Expansion::fetch_operands(const Bindings& bindings, const Bindings& reduce,
                               std::vector<Stmt>& body) const {
  if (schedule_.fetches.empty()) return;
  Bindings place = at(bindings, 0);
  place.insert(reduce.begin(), reduce.end());
  place[schedule_.vector_axis] = vector_base_;
  // The number of this step.
  Expr step = Expr(0);
  int64_t steps = 1;
  for (const Axis& axis : reduce_axes_) {
    step = step * Expr(*static_extent(axis)) + reduce.at(axis.name);
    steps *= *static_extent(axis);
  }
  for (const Fetch& fetch : schedule_.fetches) {
    if (fetch.kind == Fetch::Kind::step) {
      fetch_step(fetch, place, body);
      continue;
    }
    if (fetch.kind == Fetch::Kind::turn) continue;
    // The others need one request in several steps.
    if (copy_ > 0) continue;
    Bindings later = place;
    if (fetch.kind == Fetch::Kind::row) {
      if (rows() == 1) continue;
      const int64_t each = floor_power(std::max<int64_t>(steps / rows(), 1));
      if (each < schedule_.reduce_unroll) continue;
      later[schedule_.tile_axis] = tile_base_ + loop::floor_div(step, Expr(each));
    } else {
      int64_t tiles = 1;
      const Expr number = tile_number(bindings, tiles);
      if (tiles < kFewestTiles) continue;
      const int64_t parts = std::min(floor_power(tiles), floor_power(steps));
      Expr row = number * Expr((steps + parts - 1) / parts) + loop::floor_div(step, Expr(parts));
      for (size_t i = reduce_axes_.size(); i-- > 0;) {
        const Expr extent = Expr(*static_extent(reduce_axes_[i]));
        later[reduce_axes_[i].name] = i == 0 ? row : loop::floor_mod(row, extent);
        row = loop::floor_div(row, extent);
      }
      later[schedule_.vector_axis] = vector_base_ + Expr(segment_->width());
    }
    fetch_lines(fetch, std::move(later), loop::Cache::second, body);
  }
}

}  // namespace backcast
