#include "passes/train/copy_nodes.h"

#include <algorithm>

#include "ir/graph/error.h"
#include "ir/ops/ops.h"

namespace backcast {

std::vector<ValueId> copy_nodes(Builder& builder, const Function& from,
                                const std::vector<ValueId>& arguments,
                                const std::vector<ValueId>& needed) {
  const std::vector<char> wanted = needed_nodes(from, needed);
  std::vector<ValueId> now(from.nodes.size());
  for (int64_t i = 0; i < from.size(); ++i) {
    const Node& node = from.node(ValueId(i));
    ValueId& value = now[static_cast<size_t>(i)];
    if (is_parameter(node)) {
      value = arguments[static_cast<size_t>(i)];
      BC_CHECK(value.valid() || !wanted[static_cast<size_t>(i)], "@{}: parameter \"{}\" is missing",
               from.name, parameter_name(node));
      continue;
    }
    if (!wanted[static_cast<size_t>(i)]) continue;
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) {
      operands.push_back(now[static_cast<size_t>(operand.index)]);
    }
    builder.set_loc(node.loc);
    value = builder.emit(*node.op, std::move(operands), node.attrs);
  }
  return now;
}

std::vector<ValueId> results_of(Builder& builder, const Function& from,
                                const std::vector<ValueId>& now) {
  const ValueId result = now[static_cast<size_t>(from.result.index)];
  if (from.result_type().is_tensor()) return {result};
  const Node& node = from.node(from.result);
  std::vector<ValueId> results;
  const size_t count = from.result_type().elements().size();
  for (size_t i = 0; i < count; ++i) {
    if (node.op == &ops::tuple) {
      results.push_back(now[static_cast<size_t>(node.operands[i].index)]);
    } else {
      results.push_back(builder.emit(ops::get, {result}, GetAttrs{static_cast<int64_t>(i)}));
    }
  }
  return results;
}

std::vector<std::string> output_names(const Function& function) {
  std::vector<std::string> names = function.result_names;
  const size_t count = flatten(function.result_type()).size();
  for (size_t i = names.size(); i < count; ++i) names.push_back(fmt::format("output{}", i));
  return names;
}

std::string fresh_name(std::vector<std::string>& taken, const std::string& wish) {
  std::string name = wish;
  for (int i = 2; std::find(taken.begin(), taken.end(), name) != taken.end(); ++i) {
    name = fmt::format("{}_{}", wish, i);
  }
  taken.push_back(name);
  return name;
}

}  // namespace backcast
