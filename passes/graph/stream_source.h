// Where what a stream reads again is kept smallest, and what is the same at all of its positions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/builder.h"

namespace backcast {

/// A value of few bytes of which `again`, operators that work on each element, make another one.
struct StreamSource {
  ValueId value;
  Literal initial;             // the element of which `again` make what is in front of a sequence
  std::vector<ValueId> again;  // in the order in which they are computed
};

/// For `value`, one or more pointwise nodes behind the source, all other operands of which are the
/// same at all positions: a quantised value's integers. `padding`: what lies in front of its first
/// position, if anybody asks. `in_pieces` says whether a value comes in pieces.
StreamSource smallest_source(const Module& module, const Function& function, ValueId value,
                             const std::optional<Literal>& padding,
                             const std::function<bool(ValueId)>& in_pieces);

/// What a node that is pointwise or has one operand makes of a value that is `element` everywhere;
/// nothing where its other operands are not constants, or the result not the same everywhere.
std::optional<Literal> made_of(const Module& module, const Function& function, ValueId node,
                               ValueId value, const Literal& element);

/// Whether the value is the same at all positions of the axis, as far as `same_along` can build it.
bool is_same_along(const Module& module, const Function& function, ValueId value, int64_t axis);

/// The value with another extent along such an axis; `now` gives values of `b`.
ValueId same_along(Builder& b, const Function& function, ValueId value, int64_t axis,
                   int64_t extent, const std::function<ValueId(ValueId)>& now);

}  // namespace backcast
