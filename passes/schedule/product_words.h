// Small integers in words of 32 bits, as products of several at once take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/loop/stmt.h"

namespace backcast {

/// Where neighbours lie in a word: in halves; as bytes whose even ones are the first pair and whose
/// odd ones the second, beside two words of halves; as bytes in their order; as numbers of 4 bits,
/// of which a pair lies at the top of the halves and the next ones below it, beside two words of
/// bytes.
enum class Places { halves, pairs_of_bytes, bytes, nibbles };

int64_t per_word(Places places);

/// What holds the other factor's neighbours.
Places beside(Places form);

// Numbers of 4 bits are multiplied where a mask leaves them, at the top of a half: their sum is
// this power of two too large.
inline constexpr int64_t kNibbleShift = 12;

/// A constant as words of neighbours along a dimension.
Literal as_words(const Literal& value, size_t dimension, Places places);

/// A constant [.., f, .., k, ..] of bytes as words of two results f by two of four neighbours k:
/// the halves are 256 times the weight of the first result, plus that of the second. Results come
/// first, neighbours 0 and 2, then 1 and 3 last, as bytes are taken out of words of the operand.
Literal as_shared_words(const Literal& value, size_t result, size_t dimension);

/// Two registers of words of bytes that 4 bits hold, in one: those of the first at the top of its
/// bytes. The last dimension is a register's words, the one before it counts the two, and goes.
Literal as_half_words(const Literal& words);

/// Neighbours along a dimension as bytes of two, the second one at the top.
Literal as_half_bytes(const Literal& value, size_t dimension);

/// Whether 4 bits with a sign hold all elements of a constant of integers.
bool fits_signed_nibbles(const Literal& value);

/// Whether they hold all bytes of words.
bool are_nibbles(const Literal& words);

/// The largest sum of the elements' absolute values over the dimensions that `is_summed` tells.
int64_t largest_sum(const Literal& value, const std::vector<bool>& is_summed);

/// The first sum of a definition is 2^`places` times as large from now on: it is shifted where it
/// is read.
void shift_sum(loop::Definition& definition, int64_t places);

}  // namespace backcast
