// Ranges of whole values: what an integer type holds, and between which ends all elements of a
// value lie.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "ir/graph/module.h"
#include "ir/ops/interval.h"
#include "ir/target/target_info.h"

namespace backcast {

/// All numbers from low to high, both included; infinite where nothing is known.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  /// The largest absolute value in it.
  double reach() const;
  bool contains(const ValueRange& other) const { return low <= other.low && other.high <= high; }
};

/// The values of an integer type of at most 32 bits; none for others.
std::optional<ValueRange> range_of(ElementType type);

/// What factors of integer products within the range are kept in, for the target to multiply them
/// quickly: bytes or 16 bits; nothing where those are too few.
std::optional<ElementType> factor_type(const ValueRange& range, const TargetInfo& target);

/// Ranges of a function's values, its inputs being anything that their types hold. The bounds of
/// the whole function are computed when the first is asked for.
class ValueRanges {
 public:
  /// Both must outlive it.
  ValueRanges(const Module& module, const Function& function)
      : module_(module), function_(function) {}

  /// Of all elements of `id`, a tensor, and zero.
  ValueRange operator[](ValueId id) const;

 private:
  const Module& module_;
  const Function& function_;
  mutable std::optional<std::vector<Bounds>> bounds_;  // by value number
};

}  // namespace backcast
