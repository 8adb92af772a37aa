// Long reductions over a packed constant, block by block: a part of the constant small enough for
// the first cache serves all tiles before the next part is read, and the tiles' running totals wait
// in memory.
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
  int64_t totals = 0;  // elements of the buffer that running totals wait in
};

/// How to cut the reduction of `definition`, which `schedule` was chosen for; nothing where whole
/// panels of the constant stay in the first cache anyway, or too few tiles share one.
///   Ensures: the same sums in another order.
std::optional<ReductionBlocks> cut_reduction(const loop::Definition& definition,
                                             const NestSchedule& schedule,
                                             const TargetInfo& target);

/// Whether `schedule`, chosen for what cut_reduction() returned, can put its blocks right inside of
/// the vector axis. It does so then; running totals wait in buffer `totals`.
bool order_blocks(NestSchedule& schedule, const ReductionBlocks& cut, const std::string& totals);

}  // namespace backcast
