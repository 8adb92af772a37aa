// Symbolic evaluation of small tensors. Operators that only move elements are evaluated by the
// ordinary evaluator on element numbers, so that one mechanism serves all of them.
#include "frontend/index_values.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

constexpr int64_t kMaxElements = 4096;

bool is_small(const Type& type) {
  if (!type.is_tensor()) return false;
  int64_t count = 1;
  for (const Dim& extent : type.tensor().shape) {
    if (!extent.is_constant()) return false;
    if (extent.constant() > kMaxElements) return false;
    count *= extent.constant();
    if (count > kMaxElements) return false;
  }
  return true;
}

bool is_constant(const Node& node) { return node.op == &ops::constant; }

std::optional<Dims> dims_of(const Literal& literal) {
  if (literal.element_count() > kMaxElements) return std::nullopt;
  Dims result;
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    if (is_float(literal.element())) {
      // A shape on its way through floating-point arithmetic stays exact.
      const double value = literal.as_double(i);
      if (!(std::abs(value) < 9e15) || value != std::floor(value)) return std::nullopt;
    }
    result.push_back(Dim(literal.as_int(i)));
  }
  return result;
}

std::optional<Literal> literal_of(const Dims& dims, const TensorType& type) {
  std::vector<double> values;
  std::vector<int64_t> ints;
  for (const Dim& d : dims) {
    if (!d.is_constant()) return std::nullopt;
    ints.push_back(d.constant());
    values.push_back(static_cast<double>(d.constant()));
  }
  if (type.element == ElementType::i64) return Literal::from_ints(static_shape(type.shape), ints);
  return Literal::from_doubles(type.element, static_shape(type.shape), values);
}

/// How many of the first operands hold elements that the operator only moves; 0: not such an
/// operator. -1: all of them.
int moved_operands(const OpDef* op) {
  if (op == &ops::concat) return -1;
  if (op == &ops::pad) return 2;
  if (op == &ops::reshape || op == &ops::transpose || op == &ops::slice || op == &ops::broadcast ||
      op == &ops::reverse || op == &ops::gather) {
    return 1;
  }
  return 0;
}

}  // namespace

std::optional<Dims> IndexValues::dims(ValueId id) {
  const Known& known = find(id);
  if (known.dims) return known.dims;
  return known.literal ? dims_of(*known.literal) : std::nullopt;
}

std::optional<Literal> IndexValues::literal(ValueId id) { return find(id).literal; }

const IndexValues::Known& IndexValues::find(ValueId id) {
  const std::unordered_map<int32_t, Known>::iterator before = known_.find(id.index);
  if (before != known_.end()) return before->second;
  // The values it depends on come before it; they are computed in that order.
  std::vector<int32_t> needed = {id.index};
  std::unordered_set<int32_t> seen = {id.index};
  for (size_t i = 0; i < needed.size(); ++i) {
    const Node& node = builder_.node(ValueId(needed[i]));
    const bool leaf = is_constant(node) || is_parameter(node);
    if (leaf || !is_small(node.type)) continue;
    for (const ValueId operand : node.operands) {
      if (known_.count(operand.index) > 0) continue;
      if (seen.insert(operand.index).second) needed.push_back(operand.index);
    }
  }
  std::sort(needed.begin(), needed.end());
  for (const int32_t index : needed) {
    known_[index] = compute(builder_.node(ValueId(index)));
  }
  return known_[id.index];
}

IndexValues::Known IndexValues::compute(const Node& node) const {
  if (is_constant(node)) return {node.attrs.as<ConstantAttrs>().value, std::nullopt};
  if (is_parameter(node) || !is_small(node.type)) return {};
  if (node.op == &ops::dimension) {
    return {std::nullopt, Dims{node.attrs.as<DimensionAttrs>().value}};
  }
  bool all_literal = true;
  for (const ValueId operand : node.operands) {
    if (!of(operand).known()) return {};
    all_literal = all_literal && of(operand).literal;
  }
  try {
    Known result = all_literal                    ? fold(node)
                   : moved_operands(node.op) != 0 ? move_elements(node)
                                                  : arithmetic(node);
    if (result.dims && !result.literal) {
      result.literal = literal_of(*result.dims, node.type.tensor());
    }
    return result;
  } catch (const CompileError&) {
    return {};
  }
}

IndexValues::Known IndexValues::fold(const Node& node) const {
  std::vector<Value> operands;
  for (const ValueId operand : node.operands) operands.push_back(*of(operand).literal);
  return {evaluate_node(builder_.module(), node, operands).tensor, std::nullopt};
}

IndexValues::Known IndexValues::move_elements(const Node& node) const {
  const int moved = moved_operands(node.op);
  Dims pool;
  std::vector<Value> operands;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Known& known = of(node.operands[i]);
    if (moved >= 0 && static_cast<int>(i) >= moved) {
      if (!known.literal) return {};
      operands.push_back(*known.literal);
      continue;
    }
    const std::optional<Dims> elements = known.dims ? known.dims : dims_of(*known.literal);
    if (!elements) return {};
    std::vector<int64_t> numbers;
    for (const Dim& element : *elements) {
      numbers.push_back(static_cast<int64_t>(pool.size()));
      pool.push_back(element);
    }
    const TensorType& type = builder_.tensor_type(node.operands[i]);
    operands.push_back(Literal::from_ints(static_shape(type.shape), numbers));
  }
  Node numbered = node;
  numbered.type = TensorType{ElementType::i64, node.type.tensor().shape};
  const Literal moved_numbers = evaluate_node(builder_.module(), numbered, operands).tensor;
  Dims result;
  for (const int64_t number : moved_numbers.as_ints()) {
    if (number < 0 || number >= static_cast<int64_t>(pool.size())) return {};
    result.push_back(pool[static_cast<size_t>(number)]);
  }
  return {std::nullopt, result};
}

std::optional<Dim> IndexValues::combine(const Node& node, const Dim& a, const Dim& b) const {
  const SymbolRanges& ranges = builder_.module().symbols;
  const std::string_view op = node.op->name;
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "min") return Dim::min(a, b);
  if (op == "max") return Dim::max(a, b);
  if (op == "compare") {
    // Decided where the range of the difference leaves no doubt.
    const DimRange difference = (a - b).range(ranges);
    switch (node.attrs.as<CompareAttrs>().direction) {
      case Comparison::eq:
      case Comparison::ne: {
        const bool is_ne = node.attrs.as<CompareAttrs>().direction == Comparison::ne;
        if (a == b) return Dim(is_ne ? 0 : 1);
        if (difference.min > 0 || difference.max < 0) return Dim(is_ne ? 1 : 0);
        return std::nullopt;
      }
      case Comparison::lt:
        if (difference.max < 0) return Dim(1);
        return difference.min >= 0 ? std::optional<Dim>(0) : std::nullopt;
      case Comparison::le:
        if (difference.max <= 0) return Dim(1);
        return difference.min > 0 ? std::optional<Dim>(0) : std::nullopt;
      case Comparison::gt:
        if (difference.min > 0) return Dim(1);
        return difference.max <= 0 ? std::optional<Dim>(0) : std::nullopt;
      case Comparison::ge:
        if (difference.min >= 0) return Dim(1);
        return difference.max < 0 ? std::optional<Dim>(0) : std::nullopt;
    }
  }
  const bool divides = op == "div" || op == "mod" || op == "rem";
  if (!divides || b == Dim(0)) return std::nullopt;
  if (is_float(node.type.tensor().element)) {
    return op == "div" && Dim::mod(a, b) == Dim(0) ? std::optional(Dim::floor_div(a, b))
                                                   : std::nullopt;
  }
  // Truncation and flooring agree where nothing is negative.
  if (a.range(ranges).min < 0 || b.range(ranges).min <= 0) return std::nullopt;
  return op == "div" ? Dim::floor_div(a, b) : Dim::mod(a, b);
}

IndexValues::Known IndexValues::arithmetic(const Node& node) const {
  std::vector<Dims> operands;
  for (const ValueId operand : node.operands) {
    const Known& known = of(operand);
    std::optional<Dims> elements = known.dims ? known.dims : dims_of(*known.literal);
    if (!elements) return {};
    operands.push_back(std::move(*elements));
  }
  const std::string_view op = node.op->name;
  if (op == "cast") {
    if (node.type.tensor().element == ElementType::boolean) return {};
    return {std::nullopt, operands[0]};
  }
  if ((op == "floor" || op == "ceil" || op == "round_even")) return {std::nullopt, operands[0]};
  Dims result;
  if (op == "neg") {
    for (const Dim& d : operands[0]) result.push_back(Dim(0) - d);
    return {std::nullopt, result};
  }
  if (op == "select") {
    for (size_t i = 0; i < operands[0].size(); ++i) {
      if (!operands[0][i].is_constant()) return {};
      result.push_back(operands[operands[0][i].constant() != 0 ? 1 : 2][i]);
    }
    return {std::nullopt, result};
  }
  if (op == "reduce") {
    // Only whole tensors: shapes have one dimension.
    if (node.type.tensor().rank() != 0 || operands[0].empty()) return {};
    const Reduction kind = node.attrs.as<ReduceAttrs>().kind;
    Dim total = operands[0][0];
    for (size_t i = 1; i < operands[0].size(); ++i) {
      const Dim& next = operands[0][i];
      if (kind == Reduction::sum) total = total + next;
      if (kind == Reduction::prod) total = total * next;
      if (kind == Reduction::max) total = Dim::max(total, next);
      if (kind == Reduction::min) total = Dim::min(total, next);
    }
    if (kind == Reduction::bit_and || kind == Reduction::bit_or) return {};
    return {std::nullopt, Dims{total}};
  }
  if (operands.size() != 2 || operands[0].size() != operands[1].size()) return {};
  for (size_t i = 0; i < operands[0].size(); ++i) {
    const std::optional<Dim> value = combine(node, operands[0][i], operands[1][i]);
    if (!value) return {};
    result.push_back(*value);
  }
  return {std::nullopt, result};
}

}  // namespace backcast
