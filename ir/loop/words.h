// Integers that lie one behind another, read several at once: a view in words of 32 bits.
#pragma once

#include "ir/loop/program.h"

namespace backcast::loop {

/// Whether a constant is of integers that all fit in a narrower type.
bool fits(const Literal& value, Scalar narrow);
/// Whether words of `count` neighbours along the last dimension can be read where the buffer lies:
/// in the arena, at places that a word may have, with elements of 32 / `count` bits.
bool lies_in_words(const Program& program, const Buffer& buffer, int64_t count);
/// Adds a view of such a buffer as i32, its last dimension `count` times smaller. What it is a view
/// of is aligned to words from then on.
BufferId add_words(Program& program, BufferId id, int64_t count);
/// Makes the call hand over `words` for the kernel's parameter `name`, whose storage no result may
/// take over any more.
void hand_over_words(const Program& program, Kernel& kernel, Step& call, const std::string& name,
                     BufferId words);

/// The sum of all lanes of a dot4_signed?
bool sums_byte_products(const ExprNode& e);

}  // namespace backcast::loop
