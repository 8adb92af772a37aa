// A module rewritten in f64, function by function, called ones first.

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "tests/onnx/node_gradients.h"

namespace backcast {
namespace {

ElementType widened(ElementType element) { return is_float(element) ? ElementType::f64 : element; }

Type widened(const Type& type) {
  if (type.is_tensor()) return TensorType{widened(type.tensor().element), type.tensor().shape};
  std::vector<Type> elements;
  for (const Type& element : type.elements()) elements.push_back(widened(element));
  return Type::tuple(std::move(elements));
}

Literal widened(const Literal& value) {
  if (!is_float(value.element())) return value;
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.element_count(); ++i) numbers.push_back(value.as_double(i));
  return Literal::from_doubles(ElementType::f64, value.shape(), numbers);
}

Attrs widened(const Attrs& attrs) {
  std::vector<AttrField> fields;
  for (AttrField field : attrs.fields()) {
    if (const ElementType* element = std::get_if<ElementType>(&field.value)) {
      field.value = widened(*element);
    } else if (const Literal* literal = std::get_if<Literal>(&field.value)) {
      field.value = widened(*literal);
    } else {
      continue;
    }
    fields.push_back(std::move(field));
  }
  return fields.empty() ? attrs : attrs.with(fields);
}

/// Whether every function that `function` mentions is in `module`.
bool ready(const Function& function, const Module& module) {
  for (const Node& node : function.nodes) {
    for (const AttrField& field : node.attrs.fields()) {
      const FunctionRef* reference = std::get_if<FunctionRef>(&field.value);
      if (reference == nullptr || reference->name.empty()) continue;
      if (!module.functions.contains(reference->name)) return false;
    }
  }
  return true;
}

Function widened(const Function& function, const Module& module) {
  Builder builder(module, function.name);
  std::vector<ValueId> now(function.nodes.size());
  const auto at = [](ValueId id) { return static_cast<size_t>(id.index); };
  for (int64_t i = 0; i < function.size(); ++i) {
    const Node& node = function.node(ValueId(i));
    builder.set_loc(node.loc);
    if (node.op == &ops::parameter) {
      now[at(ValueId(i))] =
          builder.parameter(node.attrs.as<ParameterAttrs>().name, widened(node.type));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(now[at(operand)]);
    now[at(ValueId(i))] = builder.emit(*node.op, std::move(operands), widened(node.attrs));
  }
  return builder.finish(now[at(function.result)], function.result_names);
}

}  // namespace

Module in_double(const Module& module) {
  Module result;
  result.symbols = module.symbols;
  while (result.functions.size() < module.functions.size()) {
    const size_t before = result.functions.size();
    for (const auto& [name, function] : module.functions) {
      if (result.functions.contains(name) || !ready(function, result)) continue;
      Function wide = widened(function, result);
      result.functions.emplace(name, std::move(wide));
    }
    BC_CHECK(result.functions.size() > before, "functions that call each other");
  }
  return result;
}

}  // namespace backcast
