// Run-time rearrangement by blocks: a nest that reads an operand in another order, or writes sums
// in another order than it computes them, needs room for one block at a time instead of the whole.
#pragma once

#include <optional>

#include "passes/schedule/nest.h"
#include "passes/schedule/stage.h"

namespace backcast {

/// Of a panel of sums; of a packed operand, unless the operand is several times as large.
inline constexpr int64_t kSumPanelBytes = int64_t{40} << 10;
inline constexpr int64_t kPackedPanelBytes = int64_t{80} << 10;

/// Marks the operands that `schedule` rearranges at run time and can rearrange block by block of
/// its vector axis, right before each block is computed (Packing::in_panel).
void pack_in_panels(NestSchedule& schedule, const loop::Definition& definition);
/// Elements of the largest block.
int64_t panel_count(const NestSchedule& schedule, const std::string& name);

/// The definition that rearranges one block: `block` of `segment`, at `outer` for the axes outside.
loop::Stmt repack_block(const loop::Definition& definition, const loop::Kernel& kernel,
                        const NestSchedule& schedule, const std::string& name,
                        const VectorSegment& segment, const loop::Expr& block,
                        const std::map<std::string, loop::Expr>& outer);

/// Staged sums cut along one axis: for each of `count` blocks, `staged` once, with `variable` for
/// the block's number.
struct StagedBlocks {
  Staged staged;
  std::string variable;
  int64_t count = 1;
};
/// Nothing when all sums fit a panel or no axis other than `vector_axis` can be cut evenly.
///   Requires: static extents; `staged` as stage_sums() gives it for `buffer`.
std::optional<StagedBlocks> cut_sums(const Staged& staged, const std::string& vector_axis,
                                     const std::string& buffer, int64_t element_bytes);

/// Every access with one index into the buffer as it lies in memory.
loop::Definition flattened(const loop::Definition& definition, const loop::Kernel& kernel);

}  // namespace backcast
