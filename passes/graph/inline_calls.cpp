#include "passes/graph/inline_calls.h"

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "passes/graph/algebra.h"

namespace backcast {
namespace {

constexpr int kMaxDepth = 64;

/// A scan whose body is executed once, whatever the operands are.
bool runs_once(const Builder& b, const Node& node, ValueId trips) {
  const ScanAttrs* scan = node.attrs.get_if<ScanAttrs>();
  if (!scan || scan->conditional || !(scan->length == Dim(1))) return false;
  const Literal* count = constant_of(b, trips);
  return count && count->as_int(0) >= 1;
}

ValueId reshaped(Builder& b, ValueId x, Shape shape) {
  return b.emit(ops::reshape, {x}, ReshapeAttrs{std::move(shape)});
}

ValueId stacked(Builder& b, ValueId x) {
  Shape shape = b.tensor_type(x).shape;
  shape.insert(shape.begin(), Dim(1));
  return reshaped(b, x, std::move(shape));
}

/// What the body of such a scan is given.
std::vector<ValueId> arguments_of(Builder& b, const Node& scan,
                                  const std::vector<ValueId>& operands) {
  const ScanAttrs& attrs = scan.attrs.as<ScanAttrs>();
  std::vector<ValueId> arguments(operands.begin() + 1, operands.end());
  for (int64_t i = attrs.carries; i < attrs.carries + attrs.xs; ++i) {
    ValueId& row = arguments[static_cast<size_t>(i)];
    Shape shape = b.tensor_type(row).shape;
    shape.erase(shape.begin());
    row = reshaped(b, row, std::move(shape));
  }
  return arguments;
}

/// The scan's results, of what its body gives.
ValueId results_of_trip(Builder& b, const Node& scan, const std::vector<ValueId>& operands,
                        ValueId given) {
  const ops::ScanLayout layout = ops::scan_layout(scan);
  std::vector<ValueId> results;
  for (int64_t i = 0; i < layout.carries + layout.ys; ++i) {
    const ValueId result = b.emit(ops::get, {given}, GetAttrs{i});
    results.push_back(i < layout.carries ? result : stacked(b, result));
  }
  for (int64_t i = 0; layout.trajectory && i < layout.carries; ++i) {
    results.push_back(stacked(b, operands[static_cast<size_t>(i + 1)]));
  }
  if (layout.trajectory) results.push_back(b.scalar(ElementType::i64, 1));
  return b.emit(ops::tuple, results);
}

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
    if (runs_once(builder, node, operands.empty() ? ValueId() : operands[0])) {
      const Function& body = module.function(node.attrs.as<ScanAttrs>().body.name);
      const std::vector<ValueId> given = arguments_of(builder, node, operands);
      const ValueId results = inline_into(builder, module, body, given, call, depth + 1);
      builder.set_loc(loc);
      value = results_of_trip(builder, node, operands, results);
      continue;
    }
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
