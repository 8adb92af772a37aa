// The expansion of a definition under a NestSchedule, outermost loop first. Internal to nest.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "passes/schedule/lanes.h"
#include "passes/schedule/nest.h"
#include "passes/schedule/vectorize.h"

namespace backcast {

/// What at() binds to the row of the tile, where words are taken apart beforehand.
inline constexpr const char* kTileRow = "#row";

class Expansion {
 public:
  Expansion(const loop::Definition& definition, const loop::Kernel& kernel,
            const NestSchedule& schedule);

  loop::Stmt run() { return axis_loops(0, {}); }

 private:
  using Bindings = std::map<std::string, loop::Expr>;
  /// One accumulator of the tile: row m, column n, and which of its registers.
  struct Cell {
    int64_t m = 0, n = 0, chain = 0;
    bool tail = false;  // the scalar that takes what does not fill the lanes
  };

  std::string fresh(const std::string& base);
  LetCache let_cache(std::vector<loop::Stmt>& body) {
    return {body, [this](const std::string& base) { return fresh(base); }, schedule_.widens_loads};
  }
  /// Names values by `let` statements at the end of `body`.
  Naming naming(const std::string& base, std::vector<loop::Stmt>& body);

  // Loops over the axes
  loop::Stmt axis_loops(size_t depth, const Bindings& bindings);
  loop::Stmt loops_inside(size_t depth, const Bindings& bindings);
  loop::Stmt vector_loops(size_t depth, const Bindings& bindings);
  void fill_panels(const Bindings& bindings, std::vector<loop::Stmt>& body) const;
  loop::Stmt tile_loops(size_t depth, const Bindings& bindings);

  // One register tile
  bool lanes_reduce() const { return !schedule_.lane_axis.empty(); }
  int64_t tile_size() const { return tile_segment_ ? tile_segment_->size : 1; }
  int64_t rows() const { return tile_size() * schedule_.jam; }
  int64_t vectors() const { return segment_ ? segment_->vectors : 1; }
  int32_t lanes() const { return segment_ ? segment_->lanes : 1; }
  int32_t splits() const { return segment_ ? segment_->splits : 1; }
  /// Steps of a reduction axis that a register takes side by side.
  int64_t steps_at_once(const std::string& axis) const {
    return axis == schedule_.split_axis ? splits() : 1;
  }
  int32_t register_lanes() const {
    return lanes_reduce() && !schedule_.sums_lanes ? schedule_.lanes : lanes();
  }
  int64_t registers() const { return rows() * vectors() * schedule_.chains; }
  loop::Expr slot(const Cell& cell) const;
  Bindings at(const Bindings& bindings, int64_t m) const;
  Vectorizer vectorizer(const loop::Expr& n) const;
  loop::Stmt tile(const Bindings& bindings);
  void start(const Bindings& bindings, std::vector<loop::Stmt>& body);
  loop::Expr first_value(const loop::Accumulator& acc, const Bindings& bindings,
                         const Cell& cell) const;
  VectorSegment add_splits(const Bindings& bindings, std::vector<loop::Stmt>& body);

  // A reduction in blocks
  bool in_blocks() const { return !schedule_.block_axes.empty(); }
  loop::Expr in_block(const Bindings& bindings, bool is_last) const;
  loop::Expr row_in_block(const Bindings& bindings, const Cell& cell, int64_t& rows) const;
  loop::Expr waiting(const Bindings& bindings, const Cell& cell) const;
  void take_up(const Bindings& bindings, std::vector<loop::Stmt>& body);
  void finish(const Bindings& bindings, std::vector<loop::Stmt>& body);

  // The reduction
  void share_guards();
  loop::Stmt reduce_loops(size_t depth, const Bindings& bindings, const Bindings& reduce);
  loop::Stmt factored_loops(size_t depth, const Bindings& bindings, const Bindings& reduce);
  void mark_steps(const Bindings& bindings, std::vector<loop::Stmt>& body);
  loop::Stmt mark_rows(const Bindings& bindings);
  loop::Stmt mark_results(const Bindings& bindings, size_t depth);
  loop::Stmt mark_vectors(const Bindings& bindings, int64_t vectors, int32_t lanes);
  loop::Stmt mark_step(const std::vector<std::string>& found, const loop::Expr& bit,
                       const loop::Expr& step, Bindings place, int64_t vectors, int32_t lanes);
  bool asks_jammed(const loop::Expr& condition) const;
  loop::Expr all_jammed(const loop::Expr& condition) const;
  void border_updates(int64_t m, const Bindings& place, std::vector<loop::Stmt>& body);
  bool always_holds(const loop::Expr& condition) const;
  loop::Expr word_at(const loop::Expr& row, const loop::Expr& word) const;
  void bind_step(Bindings& reduce, const loop::Expr& step) const;
  void mark_word(const loop::Expr& to, const loop::Expr& at, int64_t elements,
                 std::vector<loop::Stmt>& body);
  void fetch_next_block(const Bindings& bindings, std::vector<loop::Stmt>& body) const;
  loop::Stmt masked_steps(const Bindings& bindings, const Bindings& reduce);
  void steps_of_row(const loop::Expr& row, const Bindings& bindings, const Bindings& reduce,
                    std::vector<loop::Stmt>& steps);
  loop::Stmt steps_of_word(const loop::Expr& word, const loop::Expr& first,
                           const Bindings& bindings, const Bindings& reduce);
  loop::Stmt masked_step(const std::string& left, const loop::Expr& remaining,
                         const loop::Expr& first, const Bindings& bindings, Bindings reduce);
  loop::Stmt lane_loops(const loop::Axis& axis, const Bindings& bindings, const Bindings& reduce);
  int64_t unroll_of(const loop::Axis& axis, const loop::Expr& begin, const loop::Expr& end) const;
  bool guarded_with(const std::string& axis, const std::string& reduce_axis) const;
  loop::Stmt jam_loops(size_t depth, const loop::Axis& axis, const std::string& jam,
                       const Bindings& bindings, const Bindings& reduce);
  loop::Stmt border_loops(size_t depth, const loop::Axis& axis, const Bindings& bindings,
                          const Bindings& reduce);
  loop::Stmt loop_inside(size_t depth, const loop::Axis& axis,
                         const std::function<bool(int64_t)>& holds, const std::string& tiled,
                         const Bindings& bindings, const Bindings& reduce);
  bool border_guards_hold(const std::string& reduce_axis, int64_t at) const;
  bool jam_guards_hold(const std::string& jam, const std::string& reduce_axis, int64_t at) const;
  std::string jam_guarded_with(const std::string& reduce_axis) const;
  std::vector<std::string> reduce_axes_of(const loop::Expr& part) const;
  bool clips(const loop::Expr& part, const std::string& axis) const;
  void clip(const loop::Axis& axis, const Bindings& bindings, loop::Expr& begin,
            loop::Expr& end) const;
  loop::Expr remaining_guard(size_t acc, const Bindings& at_place, bool& never) const;
  std::vector<loop::Expr> terms_in_turn() const;
  loop::Stmt updates(const Bindings& bindings, const Bindings& reduce);
  int64_t tap_step(const loop::Axis& axis) const;
  loop::Stmt window_updates(const loop::Axis& axis, int64_t step, const Bindings& bindings,
                            const Bindings& reduce);
  std::vector<std::pair<int64_t, int64_t>> window_positions(const loop::Axis& axis,
                                                            int64_t step) const;
  loop::Stmt lane_updates(const Bindings& bindings, const Bindings& reduce, const loop::Expr& base,
                          int64_t chain, bool tail);
  void update(const Cell& cell, const Vectorizer& base, const Bindings& place, LetCache& lets,
              std::vector<loop::Stmt>& body);
  loop::Expr accumulator(const std::string& name, const Cell& cell) const;
  loop::Expr packed_index(const std::string& buffer, const Bindings& place,
                          const loop::Expr& n) const;
  void fetch_ahead(const Bindings& bindings, const Bindings& reduce,
                   std::vector<loop::Stmt>& body) const;
  void fetch_operands(const Bindings& bindings, const Bindings& reduce,
                      std::vector<loop::Stmt>& body) const;
  void fetch_turns(const Bindings& bindings, const Bindings& reduce, const loop::Axis& taps,
                   std::vector<loop::Stmt>& body) const;
  void fetch_step(const Fetch& fetch, Bindings place, std::vector<loop::Stmt>& body) const;
  void fetch_lines(const Fetch& fetch, Bindings place, loop::Cache cache,
                   std::vector<loop::Stmt>& body) const;
  loop::Expr tile_number(const Bindings& bindings, int64_t& tiles) const;
  loop::Expr packed_load(const std::string& buffer, loop::Type type, const Bindings& place,
                         const loop::Expr& n) const;
  /// Cells of a tile whose totals become one register, whose lanes are those of neighbours.
  struct Group {
    Cell first;
    int64_t count = 1;
  };
  std::vector<Group> groups() const;
  void combine_lanes(std::vector<loop::Stmt>& body);
  void combine_chains(std::vector<loop::Stmt>& body) const;

  // Words that are taken apart beforehand
  loop::Expr with_unpacked(const loop::Expr& value) const;
  bool is_unpacked(const std::string& buffer) const;
  loop::Expr unpacked_load(const std::string& buffer, const Bindings& place) const;
  loop::Expr unpacked_index(const Bindings& place, size_t value) const;
  void unpack(const Bindings& bindings, std::vector<loop::Stmt>& body);

  // The epilogue
  struct Part {
    int32_t first = 0, lanes = 1;
  };
  std::vector<Part> stored_parts(int64_t n) const;
  Vectorizer part_vectorizer(const loop::Expr& n, const Part& part,
                             const std::function<loop::Expr(const std::string&)>& whole) const;
  void write_outputs(const Bindings& bindings, std::vector<loop::Stmt>& body);
  void write_totals(const Bindings& bindings, std::vector<loop::Stmt>& body);
  std::vector<std::string> keep_sums(std::vector<loop::Stmt>& body);
  void write_rows_in_loop(const Bindings& bindings, std::vector<loop::Stmt>& body);
  /// A row of a tile, and where its sums are in copies of them.
  struct TileRow {
    Bindings place;
    loop::Expr first_cell;
  };
  loop::Stmt row_loops(const Bindings& bindings, int64_t together,
                       const std::function<loop::Stmt(const std::vector<TileRow>&)>& write);
  std::function<loop::Expr(const std::string&)> kept_in(const std::vector<std::string>& sums,
                                                        const loop::Expr& cell) const;
  void write_together(const Bindings& bindings, std::vector<loop::Stmt>& body);
  loop::Expr result(size_t i, const Vectorizer& v, const Bindings& place) const;
  loop::Stmt store_result(size_t i, const Vectorizer& v, const Bindings& place,
                          const loop::Expr& value) const;
  void write_row(const Vectorizer& v, const Bindings& place, std::vector<loop::Stmt>& body);
  void write_transposed(const Bindings& bindings, std::vector<loop::Stmt>& body);
  void write_interleaved(const Bindings& bindings, std::vector<loop::Stmt>& body);

  const loop::Definition& definition_;
  const loop::Kernel& kernel_;
  const NestSchedule& schedule_;
  std::map<std::string, const loop::Axis*> axes_;
  std::vector<loop::Axis> reduce_axes_;          // in the order of their loops
  std::vector<loop::Expr> values_;               // per accumulator, without its guard
  std::vector<std::vector<loop::Expr>> guards_;  // per accumulator, the guard's conjuncts
  bool share_guards_ = false;                    // all accumulators have the same
  std::vector<loop::Expr> epilogues_;            // per output, without what the sum begins with
  std::map<std::string, int> counters_;
  // The tile under construction.
  const VectorSegment* segment_ = nullptr;
  const TileSegment* tile_segment_ = nullptr;
  loop::Expr block_, vector_base_, tile_base_;
  std::set<std::string> inside_;  // tiled axes of which every guard holds
  bool guards_hold_ = false;      // of the steps under construction: they have been asked
  bool at_border_ = false;        // steps that not all jammed elements take: these are asked
  int64_t chain_ = 0;             // that takes the step in hand of an unrolled reduction
  int64_t copy_ = 0;              // the step in hand of the unrolled loop's iteration
  std::vector<std::string> registers_, tails_;
  std::string whole_sums_;   // the registers of these, inside of what has a factor in common
  std::string unpacked_;     // the array of pairs
  std::string marks_;        // the array of words of the mask
  std::string totals_name_;  // of the buffer that running totals wait in
  std::vector<std::vector<loop::Expr>> totals_;  // per accumulator: of every group of cells
};

}  // namespace backcast
