// Long sums of few rows over a matrix that the first cache does not hold, row after row of the
// matrix: the tiles' blocks of columns would each run through all of its rows, a few lines of
// each. Cut into blocks, the matrix is read once from its beginning to its end, which is what
// caches fetch ahead, and running totals wait in memory. The gradient of a dense layer's operand is
// such a sum, in every trip of a recurrent network.
#pragma once

#include <optional>

#include "passes/schedule/operand_blocks.h"

namespace backcast {

/// How to cut the reduction of `definition`, which `chosen` is the schedule of; nothing where it is
/// no such sum. The tiles stay.
///   Ensures: the same sums in the same order.
std::optional<OperandBlocks> cut_rows(const loop::Definition& definition,
                                      const loop::Kernel& kernel, const NestSchedule& chosen,
                                      const TargetInfo& target);

}  // namespace backcast
