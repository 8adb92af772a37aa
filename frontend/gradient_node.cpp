#include "frontend/gradient_node.h"

#include <algorithm>
#include <map>

#include "ir/graph/error.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

/// The part of a graph that is differentiated.
struct Part {
  Function function;
  std::vector<ValueId> others;  // parameters of the graph that it needs too
};

/// Marks what `y` depends on, not looking behind `ends`.
std::vector<char> between(const Builder& builder, ValueId y, const std::vector<ValueId>& ends) {
  std::vector<char> wanted(static_cast<size_t>(y.index) + 1, 0);
  wanted[static_cast<size_t>(y.index)] = 1;
  for (int64_t i = y.index; i >= 0; --i) {
    const bool is_end = std::find(ends.begin(), ends.end(), ValueId(i)) != ends.end();
    if (!wanted[static_cast<size_t>(i)] || is_end) continue;
    for (ValueId operand : builder.node(ValueId(i)).operands) {
      wanted[static_cast<size_t>(operand.index)] = 1;
    }
  }
  return wanted;
}

Part cut_out(const Module& module, const Builder& from, const GradientNode& node,
             const std::string& name) {
  std::vector<ValueId> ends = node.xs;
  ends.insert(ends.end(), node.zs.begin(), node.zs.end());
  const std::vector<char> wanted = between(from, node.y, ends);
  Part part;
  Builder builder(module, name);
  std::map<ValueId, ValueId> now;
  const auto take = [&](ValueId value) {
    builder.set_loc(from.node(value).loc);
    const std::string param = fmt::format("x{}", now.size());
    now.emplace(value, builder.parameter(param, from.node(value).type));
  };
  for (ValueId end : ends) take(end);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ValueId value(static_cast<int64_t>(i));
    if (!wanted[i] || now.contains(value) || !is_parameter(from.node(value))) continue;
    take(value);
    part.others.push_back(value);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ValueId value(static_cast<int64_t>(i));
    if (!wanted[i] || now.contains(value)) continue;
    const Node& old = from.node(value);
    std::vector<ValueId> operands;
    for (ValueId operand : old.operands) operands.push_back(now.at(operand));
    builder.set_loc(old.loc);
    now.emplace(value, builder.emit(*old.op, operands, old.attrs));
  }
  part.function = builder.finish(now.at(node.y));
  return part;
}

void check(const Builder& builder, const GradientNode& node) {
  std::vector<ValueId> ends = node.xs;
  ends.insert(ends.end(), node.zs.begin(), node.zs.end());
  if (ends.size() != node.at.size()) {
    throw CompileError(builder.loc(),
                       fmt::format("has {} inputs and names {} values in \"xs\" and \"zs\"",
                                   node.at.size(), ends.size()));
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    if (builder.node(ends[i]).type == builder.node(node.at[i]).type) continue;
    throw CompileError(builder.loc(),
                       fmt::format("input {} is {}, and the value it stands for is {}", i,
                                   builder.node(node.at[i]).type.to_string(),
                                   builder.node(ends[i]).type.to_string()));
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    if (std::find(ends.begin(), ends.begin() + static_cast<int64_t>(i), ends[i]) !=
        ends.begin() + static_cast<int64_t>(i)) {
      throw CompileError(builder.loc(), "a value is named twice in \"xs\" and \"zs\"");
    }
  }
}

}  // namespace

std::vector<ValueId> import_gradient(Module& module, Builder& builder, const GradientNode& node,
                                     const Differentiator& differentiate) {
  check(builder, node);
  if (!differentiate) {
    throw CompileError(builder.loc(), "needs a differentiator (ImportOptions::differentiator)");
  }
  std::string name = "gradient";
  for (int i = 2; module.functions.contains(name) || module.functions.contains(name + "_vjp");
       ++i) {
    name = fmt::format("gradient_{}", i);
  }
  Part part = cut_out(module, builder, node, name);
  std::vector<std::string> by;
  for (size_t i = 0; i < node.xs.size(); ++i) {
    by.push_back(parameter_name(part.function.node(part.function.params[i])));
  }
  module.functions[name] = std::move(part.function);
  Module differentiated = differentiate(module, name, by);
  for (auto& [added, function] : differentiated.functions) {
    module.functions.try_emplace(added, std::move(function));
  }
  std::vector<ValueId> operands = node.at;
  operands.insert(operands.end(), part.others.begin(), part.others.end());
  const TensorType type = builder.node(node.y).type.tensor();
  ValueId one = builder.scalar(type.element, 1);
  if (type.rank() > 0) one = builder.emit(ops::broadcast, {one}, BroadcastAttrs{type.shape, {}});
  operands.push_back(one);
  const ValueId adjoints = builder.emit(ops::call, operands, CallAttrs{FunctionRef{name + "_vjp"}});
  std::vector<ValueId> results;
  for (size_t i = 0; i < node.xs.size(); ++i) {
    results.push_back(builder.emit(ops::get, {adjoints}, GetAttrs{static_cast<int64_t>(i)}));
  }
  return results;
}

}  // namespace backcast
