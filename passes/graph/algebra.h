// The algebraic rules of simplification as a readable table.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"

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
/// Those of them that are about windows: convolutions and pooling (algebra_windows.cpp).
std::span<const AlgebraicRule> window_rules();
/// And about products with one-hot rows (algebra_one_hot.cpp).
std::span<const AlgebraicRule> one_hot_rules();
/// And about what is moved (algebra_movements.cpp).
std::span<const AlgebraicRule> movement_rules();

// The three below take a Builder or a Function.

/// The value of a constant; null for anything else.
template <class Graph>
const Literal* constant_of(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  return node.op == &ops::constant ? &node.attrs.template as<ConstantAttrs>().value : nullptr;
}

/// The same, or that of the constant which a value is a broadcast of.
template <class Graph>
const Literal* spread_constant_of(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  return constant_of(graph, node.op == &ops::broadcast ? node.operands[0] : id);
}

/// The only value in a constant, also through a broadcast.
template <class Graph>
std::optional<double> splat_of(const Graph& graph, ValueId id) {
  const Literal* constant = spread_constant_of(graph, id);
  if (!constant || constant->element_count() < 1) return std::nullopt;
  const double value = constant->as_double(0);
  return constant->is_splat(value) ? std::optional(value) : std::nullopt;
}

/// Every element of the value is known to be `value`.
bool is_splat(const Builder& b, ValueId id, double value);

/// Whether a cast gives floats that are exactly its integers: those of at most 16 bits are numbers
/// of every float type that is computed in.
bool is_exact_float(const Builder& b, const Node& cast);

/// A tensor of which every element is `value`. The type is a copy: those of the builder's own
/// values move when it emits.
ValueId filled(Builder& b, TensorType type, double value);

/// x in another element type, if it is of another one.
ValueId converted(Builder& b, ValueId x, ElementType to);

}  // namespace backcast
