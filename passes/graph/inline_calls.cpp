#include "passes/graph/inline_calls.h"

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

constexpr int kMaxDepth = 64;

/// Emits the nodes of `from` with its parameters bound to `arguments`; recursion follows the
/// nesting of calls, which is shallow.
ValueId inline_into(Builder& builder, const Module& module, const Function& from,
                    const std::vector<ValueId>& arguments, const Loc* call, int depth) {
  if (depth > kMaxDepth) throw CompileError("function " + from.name + " calls itself");
  std::vector<ValueId> now(from.nodes.size());
  for (int64_t i = 0; i < from.size(); ++i) {
    const Node& node = from.node(ValueId(i));
    ValueId& value = now[static_cast<size_t>(i)];
    if (node.op == &ops::parameter) {
      value = arguments[static_cast<size_t>(node.attrs.as<ParameterAttrs>().index)];
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands)
      operands.push_back(now[static_cast<size_t>(operand.index)]);
    const Loc& loc = call ? *call : node.loc;
    const CallAttrs* plain = node.attrs.get_if<CallAttrs>();
    const CompositeAttrs* composite = node.attrs.get_if<CompositeAttrs>();
    if (plain || composite) {
      const Function& callee =
          module.function(plain ? plain->function.name : composite->function.name);
      value = inline_into(builder, module, callee, operands, &loc, depth + 1);
      continue;
    }
    builder.set_loc(loc);
    value = builder.emit(*node.op, operands, node.attrs);
  }
  return now[static_cast<size_t>(from.result.index)];
}

}  // namespace

namespace {

Function inline_function(const Module& module, const Function& function) {
  Builder builder(module, function.name);
  const std::vector<ValueId> arguments = copy_parameters(builder, function);
  ValueId value = inline_into(builder, module, function, arguments, nullptr, 0);
  return builder.finish(value, function.result_names);
}

}  // namespace

Module inline_calls(const Module& module) {
  Module result = module;
  result.functions.clear();
  std::vector<std::string> wanted;
  for (const Entry& entry : entries_of(module)) wanted.push_back(entry.function);
  while (!wanted.empty()) {
    const std::string name = wanted.back();
    wanted.pop_back();
    if (result.functions.contains(name)) continue;
    Function function = inline_function(module, module.function(name));
    // What is named still are the bodies of loops and branches.
    for (const Node& node : function.nodes) {
      for (const std::string& body : called_functions(node)) wanted.push_back(body);
    }
    result.functions.emplace(name, std::move(function));
  }
  return result;
}

}  // namespace backcast
