// What an operator is: its name, documentation, shape inference, plain evaluation and gradient, all
// in one file of ir/ops. No field has a default, so that a forgotten one does not compile.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph/attributes.h"
#include "ir/graph/gradient.h"
#include "ir/graph/literal.h"
#include "ir/graph/type.h"

namespace backcast {

struct Module;
struct Node;

/// A run-time value of the evaluator: a tensor or a tuple of values.
struct Value {
  Literal tensor;
  std::vector<Value> elements;
  bool is_tuple = false;

  Value() = default;
  Value(Literal t) : tensor(std::move(t)) {}  // NOLINT
  static Value make_tuple(std::vector<Value> elements);
};

/// What shape inference sees. A rule throws CompileError (without location: the caller adds it)
/// when operands and attributes do not fit.
struct InferContext {
  const Module& module;
  std::span<const Type> operands;
  const Attrs& attrs;

  /// CompileError when there is no operand i or it is a tuple.
  const TensorType& tensor(size_t i) const;
};

/// What evaluation sees: operand values, the inferred type with symbols bound, and the module.
struct EvalContext {
  const Module& module;
  const SymbolValues& symbols;
  const Node& node;
  std::span<const Value> operands;

  const Literal& tensor(size_t i) const { return operands[i].tensor; }
  /// Shape of the node's (tensor) type under the current symbol values.
  std::vector<int64_t> result_shape() const;
  std::vector<int64_t> evaluate(const Dims& dims) const;
};

struct OpDef {
  std::string_view name;
  std::string_view documentation;
  int min_operands;
  int max_operands;  // -1: variadic
  Attrs default_attrs;
  Type (*infer)(const InferContext&);
  Value (*evaluate)(const EvalContext&);
  Gradient gradient;  // built from core operators (ir/graph/gradient.h)
};

/// Null when there is no such core operator.
const OpDef* find_op(std::string_view name);
/// Every core operator, in the order of ops.def.
std::span<const OpDef* const> all_ops();

}  // namespace backcast
