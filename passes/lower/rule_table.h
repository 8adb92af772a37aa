// The table of lowering rules, one span per family.
#pragma once

#include <span>

#include "ir/ops/op_attrs.h"
#include "passes/lower/rule.h"

namespace backcast {

struct LowerRow {
  const OpDef* op;
  LowerRule rule;
};

/// The accumulator of a reduction, with its identity as the starting value.
loop::Accumulator reduction_accumulator(const std::string& name, Reduction kind, loop::Type type,
                                        loop::Expr value);

std::span<const LowerRow> elementwise_lowering();
bool is_elementwise(const OpDef& op);
/// What an element of an elementwise node takes (definition_cost.h).
int64_t elementwise_cost(const Function& function, const Node& node);
std::span<const LowerRow> shape_lowering();
std::span<const LowerRow> indexing_lowering();
std::span<const LowerRow> contraction_lowering();
std::span<const LowerRow> window_lowering();
std::span<const LowerRow> solve_lowering();
std::span<const LowerRow> reduction_lowering();

}  // namespace backcast
