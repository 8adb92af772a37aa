#include "passes/graph/promote_f64.h"

#include <set>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

Literal promoted(const Literal& literal) {
  if (!is_float(literal.element()) || literal.element() == ElementType::f64) return literal;
  return literal.converted_to(ElementType::f64);
}

// Types nest as deeply as the tuples of a model do, which is shallow.
Type promoted(const Type& type) {
  if (type.is_tensor()) {
    TensorType tensor = type.tensor();
    if (is_float(tensor.element)) tensor.element = ElementType::f64;
    return tensor;
  }
  std::vector<Type> elements;
  for (const Type& element : type.elements()) elements.push_back(promoted(element));
  return Type::tuple(elements);
}

Attrs promoted(const Attrs& attrs) {
  std::vector<AttrField> replaced;
  for (const AttrField& field : attrs.fields()) {
    const ElementType* element = std::get_if<ElementType>(&field.value);
    if (element && is_float(*element)) replaced.push_back({field.name, ElementType::f64});
    const Literal* literal = std::get_if<Literal>(&field.value);
    if (literal) replaced.push_back({field.name, promoted(*literal)});
  }
  return replaced.empty() ? attrs : attrs.with(replaced);
}

Function promoted(const Module& module, const Function& from) {
  Builder builder(module, from.name);
  std::vector<ValueId> now(from.nodes.size());
  for (int64_t i = 0; i < from.size(); ++i) {
    const Node& node = from.node(ValueId(i));
    ValueId& value = now[static_cast<size_t>(i)];
    builder.set_loc(node.loc);
    if (is_parameter(node)) {
      value = builder.parameter(parameter_name(node), promoted(node.type));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) {
      operands.push_back(now[static_cast<size_t>(operand.index)]);
    }
    const bool is_idle = node.op == &ops::cast && is_float(node.type.tensor().element) &&
                         builder.tensor_type(operands[0]).element == ElementType::f64;
    value = is_idle ? operands[0] : builder.emit(*node.op, operands, promoted(node.attrs));
  }
  return builder.finish(now[static_cast<size_t>(from.result.index)], from.result_names);
}

}  // namespace

Module promote_f64(const Module& module) {
  Module result = module;
  result.functions.clear();
  for (StateVariable& state : result.states) state.initial = promoted(state.initial);
  // Callees first: the type of a call is its function's.
  while (result.functions.size() < module.functions.size()) {
    const size_t before = result.functions.size();
    for (const auto& [name, function] : module.functions) {
      if (result.functions.contains(name)) continue;
      bool ready = true;
      for (const Node& node : function.nodes) {
        for (const std::string& callee : called_functions(node)) {
          ready &= result.functions.contains(callee);
        }
      }
      if (ready) result.functions.emplace(name, promoted(result, function));
    }
    BC_CHECK(result.functions.size() > before, "functions call each other in a circle");
  }
  return result;
}

}  // namespace backcast
