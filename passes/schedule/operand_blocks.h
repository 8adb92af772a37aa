// Long sums over operands that the first cache does not hold, block by block: a part of both
// operands serves all tiles before the next part is read, and the tiles' running totals wait in
// memory. Gradients of weights are such sums, of few results over a whole batch.
#pragma once

#include <functional>
#include <optional>

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

struct OperandBlocks {
  loop::Definition definition;  // with the blocks' axes as its first reduction axes
  NestSchedule schedule;        // its `totals` is still without a name
  int64_t totals = 0;           // elements of the buffer that running totals wait in
};

/// How to cut the reduction of `definition`, which `chosen` is the schedule of; nothing where tiles
/// wait for arithmetic, not for caches, or where totals would cost more than they save.
/// `choose`: the schedule of a block.
///   Ensures: the same sums in another order.
std::optional<OperandBlocks> cut_operands(
    const loop::Definition& definition, const loop::Kernel& kernel, const NestSchedule& chosen,
    const TargetInfo& target, const std::function<NestSchedule(const loop::Definition&)>& choose);

}  // namespace backcast
