// Running a single operator and comparing values.
#include "tests/ops/cases.h"

#include "ir/graph/evaluator.h"
#include "ir/graph/infer.h"

namespace backcast {
namespace {

bool close(double actual, double expected, double tolerance) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (actual == expected) return tolerance > 0 || std::signbit(actual) == std::signbit(expected);
  return std::fabs(actual - expected) <= tolerance * std::fabs(expected);
}

}  // namespace

OpCases all_cases() {
  OpCases all;
  for (OpCases (*family)() : {structure_cases, control_cases, unary_cases, binary_cases,
                              shape_cases, indexing_cases, contraction_cases, reduction_cases}) {
    for (OpCase& c : family()) all.push_back(std::move(c));
  }
  return all;
}

Type type_of(const Value& value) {
  if (!value.is_tuple) return value.tensor.type();
  std::vector<Type> elements;
  for (const Value& element : value.elements) elements.push_back(type_of(element));
  return Type::tuple(std::move(elements));
}

Type infer(const OpDef& op, const std::vector<Type>& operands, const Attrs& attrs,
           const Module& module) {
  return infer_type(module, op, operands, attrs.empty() ? op.default_attrs : attrs);
}

Value run(const OpDef& op, const std::vector<Value>& operands, const Attrs& attrs,
          const Module& module, const SymbolValues& symbols) {
  Node node;
  node.op = &op;
  node.attrs = attrs.empty() ? op.default_attrs : attrs;
  node.loc = {"n", "Test", Origin::imported};
  std::vector<Type> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    node.operands.push_back(ValueId(static_cast<int64_t>(i)));
    types.push_back(type_of(operands[i]));
  }
  node.type = infer(op, types, node.attrs, module);
  return evaluate_node(module, node, operands, symbols);
}

std::string difference(const Value& actual, const Value& expected, double tolerance) {
  if (!(type_of(actual) == type_of(expected))) {
    return type_of(actual).to_string() + " instead of " + type_of(expected).to_string();
  }
  for (size_t i = 0; i < expected.elements.size(); ++i) {
    const std::string inner = difference(actual.elements[i], expected.elements[i], tolerance);
    if (!inner.empty()) return fmt::format("element {}: {}", i, inner);
  }
  const Literal& a = actual.tensor;
  const Literal& b = expected.tensor;
  if (expected.is_tuple) return {};
  for (int64_t i = 0; i < b.element_count(); ++i) {
    const bool same = is_float(b.element()) ? close(a.as_double(i), b.as_double(i), tolerance)
                                            : a.as_int(i) == b.as_int(i);
    if (!same) return fmt::format("[{}] is {} instead of {}", i, a.as_double(i), b.as_double(i));
  }
  return {};
}

TensorType symbolic(const std::vector<std::string>& texts, ElementType element) {
  return {element, dims(texts)};
}

Dims dims(const std::vector<std::string>& texts) {
  Dims result;
  for (const std::string& text : texts) result.push_back(Dim::parse(text).value());
  return result;
}

std::string infer_error(const OpDef& op, const std::vector<Type>& operands, const Attrs& attrs,
                        const Module& module) {
  try {
    infer(op, operands, attrs, module);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace backcast
