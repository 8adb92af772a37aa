// A schedule as data, and its expansion: one definition becomes a loop nest around a register tile.
//
// The tile spans `vectors` × `lanes` elements of the vector axis and `size` elements of the tile
// axis, with one accumulator register each; the reduction loops stand inside, the epilogue follows
// while the tile is in registers. Axes are cut into segments so that no remainder is masked and no
// padding test stays in an inner loop: a guard over a reduction axis becomes that loop's bounds, a
// guard over the tile axis is decided when the border tiles are unrolled.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// `count` blocks of `vectors` registers of `lanes` elements, from element `begin` on.
struct VectorSegment {
  int64_t begin = 0;
  int64_t count = 1;
  int64_t vectors = 1;
  int32_t lanes = 1;
  // Lanes of the last register beyond the axis' end: packed constants hold zeros there, and nothing
  // is stored. Of a single block only.
  int32_t spare = 0;
  // Lanes that each element has: a partial sum for as many neighbouring steps of the reduction
  // along NestSchedule::split_axis. Of a single register only.
  int32_t splits = 1;
  int64_t width() const { return vectors * lanes / splits; }
};

/// `count` tiles of `size` elements, from `begin` on. A border tile has a constant position: its
/// guards are decided tile by tile. Where run time tells the position of a border, its elements are
/// `clipped` one by one: guards become the bounds of the reduction's loops.
struct TileSegment {
  loop::Expr begin;
  loop::Expr count;
  int64_t size = 1;
  bool border = false;
  bool clipped = false;
};

/// An operand rearranged into the order in which the nest reads it: a constant at compile time,
/// another by a kernel that runs before, or block by block.
struct Packing {
  std::string parameter;  // under which the nest reads it: the operand's own or a new one
  bool at_run_time = false;
  bool in_panel = false;  // at run time by the nest itself, one block of the vector axis at a time
  std::vector<std::string> outer;  // serial axes it depends on, with their extents
  std::vector<int64_t> outer_extents;
  std::vector<std::string> reduce;  // reduction axes it depends on, the fastest one last
  std::vector<int64_t> reduce_extents;
  std::vector<bool> reversed;  // the axis runs backwards through memory: packed as it lies there
  bool is_shared = false;      // steps of the sum share elements, such as the scale of a block
  bool holds_nibbles = false;  // see nibbles.h
  int64_t outer_count() const;
  int64_t reduce_count() const;
  /// Whether the elements of such a segment lie two to a byte, and what a row of it takes.
  bool halves(const VectorSegment& segment) const {
    return holds_nibbles && segment.vectors % 2 == 0;
  }
  int64_t row(const VectorSegment& segment) const {
    return segment.width() / (halves(segment) ? 2 : 1);
  }
  /// What rows of all segments before `first` take; of all, where that is none of them.
  int64_t rows_before(const std::vector<VectorSegment>& segments, int64_t first) const;
};

/// Lines of a buffer that a tile's reduction asks for before somebody needs them.
struct Fetch {
  enum class Kind : uint8_t {
    step,   // what a later step of the innermost loop reads
    row,    // what the tile reads or writes when its sums are done, row by row
    strip,  // what the next block of the vector axis reads, evenly over this one's tiles
    turn,   // what a window reads in the next turn of a loop around the tiles
  };
  Kind kind = Kind::step;
  std::string buffer;
  loop::Expr index;       // into the buffer as it lies in memory
  std::string axis = {};  // step: of the innermost loop; turn: of the loop around the tiles
  int64_t steps = 0;      // step: how far ahead
};

/// Steps of a reduction that are taken where their factor is not zero (nonzero_steps.h). Bits say
/// so, a row of words for each row of the factor or, across these, for each result, in an array
/// that the loops inside of `depth` of `order` share.
struct StepMask {
  std::vector<std::string> axes;  // of the innermost loops, along a row of bits; empty: none
  std::string factor;             // its parameter
  loop::Scalar element = loop::Scalar::f32;
  int64_t count = 0;                      // of a row's bits
  loop::Scalar word = loop::Scalar::u32;  // unsigned
  int32_t lanes = 1;                      // elements that are compared at once
  int32_t gathered = 1;                   // elements of a row whose bits are gathered at once
  size_t depth = 0;
  loop::Expr first;  // of the rows in the array, which may lie outside of the factor's `rows`
  loop::Expr row;    // that a step needs, from `first` on, over all axes but those above
  int64_t span = 1;  // rows in the array
  int64_t rows = 0;  // 0: no row lies outside
  // Across the factor's rows: the axes of results inside of `depth` that bits differ along, with
  // the one along which the factor lies last. The array then has the first words of all rows first.
  std::vector<std::string> results;  // empty: along the factor's rows
  bool is_joint = true;              // the last of `axes` can count for all
  int64_t joined = 1;                // words of a row that are gone through as one
  // A packed constant of which each result asks for a part of what the next block reads; may be
  // empty.
  std::string fetched;

  int64_t bits() const { return 8 * byte_size(loop::element_of(word)); }
  int64_t words() const { return (count + bits() - 1) / bits(); }
};

/// Which totals of a tile whose lanes lie along a reduction axis end in one register.
enum class Totals : uint8_t {
  cells,    // none: each result by itself
  columns,  // those of a row
  rows,     // those of a column, a power of two of them at a time
};

struct NestSchedule {
  std::vector<std::string> order;  // every axis, outermost first
  std::string vector_axis;         // may be empty
  std::vector<VectorSegment> vector_segments;
  std::string tile_axis;  // may be empty
  std::vector<TileSegment> tile_segments;
  // A short axis whose elements all belong to each row of the tile: the taps of a convolution's
  // gradient. Where its guards with a reduction axis do not hold for all of them, that axis' loop
  // is unrolled.
  std::string jam_axis;        // may be empty
  std::string outer_jam_axis;  // a second one, the slower in the tile's rows; may be empty
  int64_t jam = 1;             // elements of both together
  /// Axes unrolled whole: of a reduction, or of an elementwise kernel.
  std::set<std::string> unrolled;
  // The innermost taps of a border tile that no guard takes from a row stay a loop, too: compilers
  // keep what several unrolled ones read, and there are no registers for that.
  bool border_loops = false;
  int64_t reduce_unroll = 1;  // steps of the innermost reduction loop per iteration
  // Of these, steps whose factors that registers are multiplied by are lanes of one load, where
  // they lie side by side; they divide `reduce_unroll`.
  int32_t joined_steps = 1;
  bool use_fma = false;
  bool widens_loads = false;  // small integers of a register are words as soon as they are loaded
  // A step of a tile goes by its columns: a vector of the operand along the vector axis serves all
  // rows before the next is loaded. By rows otherwise.
  bool by_columns = false;
  std::vector<std::string> reduce_order;  // reduction axes, outermost first; empty: as defined
  // The lanes of each accumulator along a reduction axis (its loop is the innermost): element k
  // goes to lane k % lanes of register k / lanes % chains, the rest to a scalar; the order in which
  // all are combined is fixed. The vector axis, of single lanes, gives the tile its columns.
  std::string lane_axis;  // may be empty
  int32_t lanes = 1;
  bool sums_lanes = false;  // accumulators are scalars, to which each step adds all its lanes
  // Without lanes: registers that the unrolled steps of a reduction take in turn.
  int64_t chains = 1;
  bool has_tail = false;
  Totals totals_together = Totals::cells;
  std::string split_axis;  // see VectorSegment::splits; empty: no segment splits its sums
  // What the results add to the sum is what it begins with; may be empty.
  loop::Expr addend;
  // A factor of every step of the reduction's loops from `factor_depth` inwards: it multiplies the
  // sum of these, of which `factored` is a step, in tiles of so many sums at most; none: 0.
  loop::Expr factor, factored;
  size_t factor_depth = 0;
  int64_t factored_sums = 0;
  // The rows of a tile leave its registers first and end in a loop: an epilogue that needs
  // registers of its own.
  bool rolled_epilogue = false;
  // Reduction axes whose loops stand right inside the vector axis' (they are in `order`): the tiles
  // all take a step of them before the next one begins, and their running totals wait in a buffer
  // that holds the vector axis' blocks one after another, or for the time being in one block's
  // array of so many elements.
  std::vector<std::string> block_axes;  // may be empty
  int64_t blocks = 1;                   // the product of their extents
  std::string totals;                   // the buffer's parameter
  int64_t local_totals = 0;
  // The axis of groups of columns, outside of the blocks: all blocks of the vector axis take a step
  // before any takes the next one. Empty: blocks stand inside of the vector axis.
  std::string columns_axis;
  int64_t totals_row = 0;               // elements, where the totals lie row by row; or else 0
  std::map<std::string, int64_t> most;  // extents of axes that run time tells, at most
  bool is_block_axis(const std::string& axis) const;
  /// Whether results, or the steps of their sums, lie in the lanes of vectors.
  bool has_vectors() const { return !vector_segments.empty() && vector_segments[0].lanes > 1; }
  StepMask taken;
  /// Whether behind all words of the steps that every jammed element takes lie those of the others.
  bool has_border() const { return !taken.axes.empty() && !jam_axis.empty(); }
  std::string fetched;  // a packed constant whose next panel is fetched ahead; may be empty
  std::vector<Fetch> fetches;
  // What products take out of the words of a tile's operand: for each row and step of the sum in an
  // array that all blocks of the vector axis, whose loop is inside of the tile's, read.
  std::vector<loop::Expr> unpacked;
  // What is contiguous along the tile axis, not along the vector axis, is turned in registers.
  std::string transposed_axis;  // the tile axis or empty
  // Results of the jammed axis lie between each other: registers along the vector axis, one for
  // each of its elements, are stored as one run.
  bool interleaved = false;
  std::map<std::string, Packing> packed;  // by buffer parameter

  /// Rows of the largest tile.
  int64_t largest_tile() const;
  /// Elements of the vector axis' registers, spare lanes included.
  int64_t columns() const;
  /// One line for reports: "vectorize f 16x2, tile y1 8, pack a1".
  std::string to_string() const;
};

/// The reduction axes in the order of their loops, outermost first.
std::vector<loop::Axis> reduction_loops(const loop::Definition& definition,
                                        const NestSchedule& schedule);

/// The loops of a definition under a schedule.
///   Requires: guards on the vector axis are decided already; static extents of tiled, unrolled and
///   vectorised axes.
///   Ensures: stores exactly what the definition says; reductions keep their order unless
///   reduce_order, lane_axis or chains say otherwise.
loop::Stmt expand(const loop::Definition& definition, const loop::Kernel& kernel,
                  const NestSchedule& schedule);

/// The statement that rearranges operand `name`, seen with one dimension, into buffer `packed` at
/// run time, as definitions.
loop::Stmt repack(const loop::Definition& definition, const loop::Kernel& kernel,
                  const NestSchedule& schedule, const std::string& name, const std::string& packed);
/// Elements of the rearranged operand.
int64_t packed_count(const NestSchedule& schedule, const std::string& name);
/// The name of the only operand that is rearranged and whose elements no steps share; empty when
/// there is none or are several.
std::string main_packing(const NestSchedule& schedule);

/// The packed form of constant `value` of buffer parameter `name`.
Literal pack(const loop::Definition& definition, const loop::Kernel& kernel,
             const NestSchedule& schedule, const std::string& name, const Literal& value);

}  // namespace backcast
