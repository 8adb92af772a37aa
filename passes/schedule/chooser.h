// The choice of a schedule. Internal to choose_schedule: choose.cpp finds facts and axes,
// choose_packing.cpp what is rearranged, choose_sizes.cpp weighs tiles, choose_bodies.cpp what they
// execute, choose_map.cpp finds rows of elementwise kernels, choose_lanes.cpp the ways that need no
// constant operand.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/target/target_info.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/nest.h"
#include "passes/schedule/window.h"

namespace backcast {

/// How a reduction fills vectors: with elements of an axis as they lie in memory (or as constants
/// were packed), with partial results along a reduction axis, or with an operand rearranged at run
/// time.
enum class VectorMode { direct, lanes, repack };

class Chooser {
 public:
  Chooser(const loop::Definition& definition, const loop::Kernel& kernel, const TargetInfo& target,
          const std::function<bool(const std::string&)>& is_constant,
          const TileLimits& limits = {});

  struct Plan {
    NestSchedule schedule;
    double cycles = 0;
    bool possible = true;
  };
  Plan plan(VectorMode mode, const std::string& lane_axis = "");
  double scattering_cycles(const NestSchedule& schedule) const;
  double packing_cycles(const NestSchedule& schedule) const;
  /// Reduction axes along which lanes can lie.
  std::vector<std::string> lane_axes() const;
  /// A reduction of one vectorisable type, or one to whose type small integers are converted as
  /// they are read; where it is a product by constants, only if `direct` has no use for lanes.
  bool may_vectorize_reduction(const NestSchedule& direct) const;
  /// Products of bytes that one instruction forms of two registers and adds up.
  bool multiplies_registers() const;
  bool leaves_lanes_empty(const NestSchedule& schedule) const;

 private:
  struct Access {
    std::string buffer;
    loop::Expr flat;
    bool in_reduction = false;
    bool packable = false;
    bool constant = false;
    bool from_byte_table = false;  // lanes look up a byte each
    // Of a word of small integers, what products take: the word, or pairs of bytes out of it.
    std::vector<loop::Expr> taken = {};
    int64_t values() const { return taken.empty() ? 1 : static_cast<int64_t>(taken.size()); }
    int64_t pairs() const;
  };

  // Facts
  void collect();
  void collect_scalars(const loop::Expr& e);
  bool reads_byte_table(const loop::ExprNode& read) const;
  void collect_types(const loop::Expr& e);
  void collect_taken();
  bool packable(const Access& access) const;
  std::optional<int64_t> origin(const Access& access) const;
  bool repeats(const Access& access) const;
  static bool reads_again(const Access& a, const Access& b);
  int64_t extent(const std::string& name) const;
  bool conditional_on(const std::string& axis) const;
  bool vectorizable_types() const;
  bool moves_elements() const;
  bool fills_lanes() const;
  bool widens_to(loop::Scalar s) const;
  bool sums_one_type() const;
  int64_t element_bytes() const;
  int32_t vector_lanes() const;
  bool borders_decidable(const std::string& axis) const;

  // Axes
  void choose_reduce_order();
  std::vector<loop::Axis> reduce_axes() const;
  void choose_unrolled();
  void choose_vector_axis();
  void choose_columns();
  static int64_t length_of(const loop::Axis& axis);
  int64_t lane_length() const;
  bool may_tile(const loop::Axis& axis) const;
  void choose_tile_axis();
  int64_t vectors_of(const std::string& axis) const;
  /// Fewer sums leave the units idle.
  int64_t fewest_sums() const { return int64_t{target_.fma_latency} * target_.fma_units; }
  bool leaves_units_idle(const loop::Axis& axis) const;
  bool may_jam(const loop::Axis& axis) const;
  void choose_jam();
  bool is_tiled(const std::string& axis) const;
  bool choose_transposition();
  bool choose_interleaving();
  std::string contiguous_partner(const std::string& vector_axis) const;
  bool are_constants_near() const;
  void choose_order();
  std::vector<loop::Axis> in_memory_order(const Access& access) const;
  int64_t contiguous_run(const Access& access) const;
  void choose_addend();
  bool is_shared(const Access& access) const;
  bool packs(const Access& access) const;
  void choose_packing();
  struct Rows {
    double count = 1;
    int64_t pitch = 0;  // elements
  };
  Rows rows_of(const Access& access) const;
  bool asks_ahead() const;
  bool is_row_of_all_tiles(const Access& access) const;
  bool has_far_rows(const Access& access) const;
  bool loses_window_rows() const;
  double late_scalars(const Access& access) const;
  bool reads_in_vectors() const;
  bool fits_panel(int64_t vectors) const;

  // Sizes
  int registers() const;
  bool adds_products() const;
  bool multiplies_separately() const;
  bool takes_scalars() const;
  bool takes_lanes(const Access& access) const;
  int32_t steps_to_join() const;
  bool reads_halves() const;
  int64_t conversions() const;
  int64_t waiting_loads() const;
  bool overlaps_windows() const;
  bool fits_registers(int64_t tile, int64_t vectors) const;
  double step_cycles(int64_t tile, int64_t vectors, int64_t chains = 1) const;
  bool may_spare_lanes() const;
  std::vector<VectorSegment> vector_segments(int64_t vectors) const;
  std::vector<VectorSegment> column_segments(int64_t columns) const;
  bool interior(int64_t u) const;
  std::pair<int64_t, int64_t> interior_range(int64_t total) const;
  std::vector<TileSegment> tile_segments(int64_t size) const;
  /// Positions from `begin` up to `end` (to the last where it is empty).
  struct Interior {
    int64_t begin = 0;
    loop::Expr end;
  };
  std::optional<Interior> symbolic_interior(const std::string& axis) const;
  std::vector<TileSegment> symbolic_tiles(int64_t size) const;
  std::vector<int64_t> symbolic_sizes(int64_t size) const;
  double fetching_cycles(int64_t vectors) const;
  static double tiles_in(const std::vector<TileSegment>& segments, size_t s);
  double waiting_cycles(int64_t tile, int64_t vectors) const;
  double total_cycles(int64_t size, int64_t vectors) const;
  bool streams_constant() const;
  bool needs_rolled_epilogue() const;
  int64_t step_work() const;
  void choose_sizes();
  void choose_map();
  void choose_by_number();
  const loop::Axis* row_axis() const;
  bool updates_by_rows(const std::string& rows) const;
  int64_t shared_rows() const;
  int64_t read_again(int64_t tile) const;
  int64_t free_chains(int64_t registers) const;
  int64_t fewest_vectors() const;
  bool may_share_window(const loop::Axis& taps) const;
  void share_window(const loop::Axis* taps);
  std::vector<loop::Axis> streaming_order() const;
  int64_t sums() const;
  void choose_window();
  bool is_unpacked(const Access& access) const;
  int64_t taken_at_once(const Access& access, bool with_vector, bool kept) const;
  std::vector<const Access*> unpackable() const;
  void choose_unpacking();
  void choose_lane_sizes();
  double math_calls() const;
  double lane_cycles(int64_t tile, int64_t columns, int64_t chains) const;
  double totals_cycles(int64_t tile, int64_t columns) const;
  bool makes_registers_of_rows() const;
  double far_operands() const;
  double outer_points() const;
  double reduce_points() const;
  double direct_cycles() const;
  double far_row_cycles() const;

  const loop::Definition& definition_;
  const loop::Kernel& kernel_;
  const TargetInfo& target_;
  const std::function<bool(const std::string&)>& is_constant_;
  TileLimits limits_;
  std::vector<Access> accesses_;
  std::vector<loop::Expr> outputs_;
  std::vector<loop::Expr> conditions_;
  std::set<loop::Scalar> scalars_;
  loop::Scalar scalar_ = loop::Scalar::f32;
  int32_t lanes_ = 1;
  bool general_ = false;
  bool is_reduction_ = false;
  double math_calls_ = 0;       // of every result, when lanes are chosen
  int64_t added_products_ = 0;  // in a step of the sum
  /// Products of integers that a step of a sum adds one after another, where there are several, and
  /// shifts that take factors of them out of an element.
  int64_t products_in_turn_ = 0, shifts_ = 0;
  int64_t conversions_ = 0;  // in a step of the sum, for all rows of a tile
  VectorMode mode_ = VectorMode::direct;
  NestSchedule schedule_;
  std::vector<const Access*> unpacked_;  // reads of words that a tile takes apart beforehand
  // Of the window along the tile whose taps are unrolled innermost: their number, and how many of
  // them neighbours are apart.
  int64_t window_taps_ = 1, window_step_ = 1;
  // What may_share_window found, by the tile's axis and the taps': every candidate size asks.
  mutable std::map<std::pair<std::string, std::string>, bool> shared_windows_;
  mutable std::map<std::string, std::pair<int64_t, int64_t>> interiors_;  // by the tile's axis
};

}  // namespace backcast
