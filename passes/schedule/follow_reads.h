// Writes an elementwise definition into a nest that reads each element of one of its operands once:
// what is stored follows the read, and the operand is read once for both.
#pragma once

#include "ir/loop/stmt.h"

namespace backcast {

/// `nest` with the stores of `update` behind each read of the operand that both read and `update`
/// may write over (BufferParam::over). Requires: `update` writes each element at the place of its
/// axes; `nest` reads every element of that operand exactly once. Null when a read's place in the
/// operand cannot be told.
loop::Stmt follow_reads(const loop::Stmt& nest, const loop::Definition& update,
                        const loop::Kernel& kernel);

}  // namespace backcast
