// The algebraic rules of simplification as a readable table.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/graph/builder.h"

namespace backcast {

/// A rule looks at a node whose operands are already simplified values of `b` and returns the value
/// that replaces it, or nothing. Rules keep types and, for floats, every bit of the result unless
/// they say that they do not: those are not applied where a step follows (steps_behind.h).
struct AlgebraicRule {
  std::string_view name;
  const OpDef* op;  // the operator it applies to
  std::optional<ValueId> (*apply)(Builder& b, const Node& node);
  bool keeps_bits = true;
};

std::span<const AlgebraicRule> algebraic_rules();

/// The value of a constant; null for anything else.
const Literal* constant_of(const Builder& b, ValueId id);
/// The same, or that of the constant which a value is a broadcast of.
const Literal* spread_constant_of(const Builder& b, ValueId id);
/// Every element of the value is known to be `value`.
bool is_splat(const Builder& b, ValueId id, double value);

}  // namespace backcast
