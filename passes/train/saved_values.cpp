#include "passes/train/saved_values.h"

#include <set>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

/// What a value is made of that occupies memory of its own.
ValueId root_of(const Function& function, ValueId value) {
  while (true) {
    const Node& node = function.node(value);
    const bool is_view =
        node.op == &ops::reshape || node.op == &ops::broadcast || node.op == &ops::stop_gradient;
    if (!is_view) return value;
    value = node.operands[0];
  }
}

int64_t bytes_of(const Module& module, const TensorType& type) {
  SymbolValues most;
  for (const auto& [symbol, range] : module.symbols) most[symbol] = range.max;
  const int64_t count = type.element_count().evaluate(most);
  return count * byte_size(type.element);
}

}  // namespace

std::vector<SavedValue> saved_values(const Module& module, const std::string& name) {
  const Function& function = module.function(name);
  std::set<ValueId> saved;
  for (const Node& node : function.nodes) {
    if (node.loc.origin != Origin::adjoint_of) continue;
    for (ValueId operand : node.operands) {
      const ValueId root = root_of(function, operand);
      const Node& from = function.node(root);
      if (from.loc.origin == Origin::adjoint_of || from.operands.empty()) continue;
      saved.insert(root);
    }
  }
  std::vector<SavedValue> result;
  for (ValueId value : saved) {
    const Node& node = function.node(value);
    for (const TensorType& type : flatten(node.type)) {
      result.push_back({node.loc, std::string(node.op->name), type, bytes_of(module, type)});
    }
  }
  return result;
}

}  // namespace backcast
