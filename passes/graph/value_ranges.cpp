// See value_ranges.h.
#include "passes/graph/value_ranges.h"

#include <algorithm>
#include <cmath>

#include "passes/graph/intervals.h"

namespace backcast {

double ValueRange::reach() const { return std::max(std::abs(low), std::abs(high)); }

std::optional<ValueRange> range_of(ElementType type) {
  if (!is_integer(type) || byte_size(type) > 4) return std::nullopt;
  return ValueRange{lowest_value(type), largest_value(type)};
}

std::optional<ElementType> factor_type(const ValueRange& range, const TargetInfo& target) {
  for (const ElementType type : {ElementType::u8, ElementType::i8, ElementType::i16}) {
    if (byte_size(type) == 1 && !target.keeps_bytes(is_signed(type))) continue;
    if (range_of(type)->contains(range)) return type;
  }
  return std::nullopt;
}

ValueRange ValueRanges::operator[](ValueId id) const {
  if (!bounds_) bounds_ = bounds_of_values(module_, function_, InputBounds{.known = false});
  const Bounds& bounds = (*bounds_)[static_cast<size_t>(id.index)];
  ValueRange range{0, 0};
  for (const double low : bounds.planes[Bounds::low]) range.low = std::min(range.low, low);
  for (const double high : bounds.planes[Bounds::high]) range.high = std::max(range.high, high);
  return range;
}

}  // namespace backcast
