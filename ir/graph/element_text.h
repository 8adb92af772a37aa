// Numbers of the text form: the shortest text that reads back to the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/literal.h"

namespace backcast {

/// `1.5`, `-0`, `inf`, `nan` (the usual one) or `nan(0x…)` with the bits.
std::string double_text(double value);
/// Whether `text` is such a number.
bool double_from_text(std::string_view text, double& value);

/// Element i of a literal.
std::string element_text(const Literal& literal, int64_t i);
/// Writes one element to `to`, which has byte_size(element) bytes; false when `text` is no number
/// of the type.
bool element_from_text(ElementType element, std::string_view text, std::span<std::byte> to);

}  // namespace backcast
