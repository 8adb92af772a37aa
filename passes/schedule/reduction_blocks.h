// Long reductions over a packed constant, block by block: a part of the constant small enough for
// the first cache serves all tiles before the next part is read, and the tiles' running totals wait
// in memory. Where the second cache does not hold the other operand, a block of that serves a group
// of columns before the next one (K. Goto, R. van de Geijn, "Anatomy of high-performance matrix
// multiplication", ACM TOMS 34(3), 2008).
#pragma once

#include <optional>
#include <string>

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// The definition with `axis`, of results or of the reduction, in blocks of `size`, which divides
/// it: axis `block`, now the first one of its kind, counts them.
loop::Definition cut_axis(const loop::Definition& definition, const std::string& axis, int64_t size,
                          const std::string& block);
/// A name after `base` that no axis has.
std::string fresh_axis(const loop::Definition& definition, const std::string& base);

struct ReductionBlocks {
  loop::Definition definition;  // with the new axis as its first reduction axis
  std::string axis;             // the blocks' number
  int64_t blocks = 1;
  int64_t totals = 0;                   // elements of the buffer that running totals wait in
  std::string columns;                  // the axis of groups of columns; may be empty
  int64_t totals_row = 0;               // elements, where totals lie row by row; or else 0
  std::map<std::string, int64_t> most;  // see NestSchedule
};

/// How to cut the reduction of `definition`, which `schedule` was chosen for, at the symbols'
/// maxima; nothing where whole panels of the constant stay in the first cache anyway, or too few
/// tiles share one.
///   Ensures: the same sums in another order.
std::optional<ReductionBlocks> cut_reduction(const loop::Definition& definition,
                                             const loop::Kernel& kernel,
                                             const NestSchedule& schedule,
                                             const SymbolRanges& symbols, const TargetInfo& target);

/// Whether `schedule`, chosen for what cut_reduction() returned, can put its blocks right inside of
/// the vector axis, or that of groups of columns. It does so then; running totals wait in buffer
/// `totals`.
bool order_blocks(NestSchedule& schedule, const ReductionBlocks& cut, const std::string& totals);

}  // namespace backcast
