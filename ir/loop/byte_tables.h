// Tables with an element for every byte, which lanes of vectors may look up.
#pragma once

#include "ir/loop/stmt.h"

namespace backcast::loop {

inline constexpr int64_t kBytes = 256;  // that there are

bool is_byte_table(const BufferParam& buffer);
/// Of a read at a place that a byte tells: the byte, u8, before it became an index. Null for
/// others.
Expr byte_place(const ExprNode& read);
/// Is that a read of a byte?
bool looks_up_byte(const ExprNode& read);

}  // namespace backcast::loop
