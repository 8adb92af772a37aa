// Graphs inside of nodes. Such a graph becomes a function; what it takes from around it becomes
// operands, found before the function is begun. Or it is inlined, where it sees the names.
#include <algorithm>
#include <utility>

#include "frontend/graph_importer.h"
#include "frontend/graph_names.h"
#include "frontend/loop_states.h"
#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Captured values that are known are copied into bodies up to this many elements.
constexpr int64_t kMaxCopied = 4096;

}  // namespace

bool is_control_flow(const OnnxNode& node) {
  return node.domain.empty() && (node.op_type == "If" || node.op_type == "Loop" ||
                                 node.op_type == "Scan" || node.op_type == "SequenceMap");
}

const OnnxGraph& graph_of(const OnnxNode& node, const std::string& attribute, const Loc& loc) {
  const OnnxAttribute* found = find_attribute(node, attribute);
  if (!found || !found->g) {
    throw CompileError(loc, fmt::format("attribute \"{}\" holds no graph", attribute));
  }
  return *found->g;
}

ValueId as_scalar(Emitter& e, ValueId x, ElementType element, const char* what, const Loc& loc) {
  const Type& type = e.builder().type(x);
  const bool is_one = type.is_tensor() && type.tensor().element == element &&
                      type.tensor().element_count() == Dim(1);
  if (!is_one) {
    throw CompileError(loc, fmt::format("the {} has to be one {} and is {}", what, name_of(element),
                                        type.to_string()));
  }
  return e.rank(x) == 0 ? x : e.reshape(x, {});
}

std::vector<ValueId> GraphImporter::import_control(const OnnxNode& node, const Loc& loc,
                                                   Scope& scope) {
  int64_t opset = 0;
  rule_of(node, loc, scope, opset);
  if (scope.depth >= kMaxGraphDepth) throw CompileError(loc, "graphs are nested too deeply");
  builder_->set_loc(loc);
  if (node.op_type == "If") return import_if(node, loc, scope);
  if (node.op_type == "SequenceMap") return import_map(node, loc, scope);
  if (node.op_type == "Scan" && opset < 9) return import_batched_scan(node, loc, scope);
  const std::optional<LoopWithoutUnchanged> loop = without_unchanged_states(node);
  if (!loop) return import_changing(node, loc, scope);
  const std::vector<ValueId> values = import_changing(loop->node, loc, scope);
  std::vector<ValueId> outputs;
  size_t next = 0;
  for (const std::optional<std::string>& unchanged : loop->outputs) {
    outputs.push_back(unchanged ? use(scope, *unchanged) : values[next++]);
  }
  return outputs;
}

std::vector<ValueId> GraphImporter::import_changing(const OnnxNode& node, const Loc& loc,
                                                    Scope& scope) {
  return node.op_type == "Loop" ? import_loop(node, loc, scope) : import_scan(node, loc, scope);
}

/// What has to be handed to a body: weights, which may be trained, and what run time computes.
bool GraphImporter::is_operand(const Entry& entry) {
  const auto is_copied = [](const Literal& literal) {
    return literal.element_count() <= (is_float(literal.element()) ? 1 : kMaxCopied);
  };
  if (!entry.id.valid()) return !is_copied(*entry.literal);
  if (!builder_->type(entry.id).is_tensor()) return true;
  const std::optional<Literal> literal = known_->literal(entry.id);
  if (literal) return !is_copied(*literal);
  const std::optional<Dims> dims = known_->dims(entry.id);
  return !dims || builder_->tensor_type(entry.id).rank() > 1;
}

GraphImporter::Body GraphImporter::body_of(const OnnxNode& node, const std::string& attribute,
                                           const Loc& loc, Scope& scope) {
  Body body;
  body.graph = &graph_of(node, attribute, loc);
  std::optional<std::vector<std::string>> names = free_names(*body.graph);
  if (!names) throw CompileError(loc, "graphs are nested too deeply");
  body.free = std::move(*names);
  for (const std::string& name : body.free) {
    const Entry* entry = find(scope, name);
    if (!entry) undefined(name, loc);
    if (entry->failed) throw Poisoned();
    if (!entry->error.empty()) throw CompileError(entry->error);
    if (is_operand(*entry)) body.captures.push_back(name);
  }
  return body;
}

std::vector<ValueId> GraphImporter::operands_of(const std::vector<std::string>& captures,
                                                Scope& scope) {
  std::vector<ValueId> operands;
  for (const std::string& name : captures) {
    const ValueId id = use(scope, name);
    if (builder_->type(id).is_tensor()) {
      operands.push_back(id);
      continue;
    }
    for (const ValueId element : Emitter(*builder_).elements(id)) operands.push_back(element);
  }
  return operands;
}

FunctionRef GraphImporter::build_function(const std::string& wish,
                                          const std::function<ValueId()>& fill) {
  Builder inner(result_.module, wish);
  IndexValues inner_known(inner);
  Builder* const outer = std::exchange(builder_, &inner);
  IndexValues* const outer_known = std::exchange(known_, &inner_known);
  const auto restore = [&] {
    builder_ = outer;
    known_ = outer_known;
  };
  ValueId result;
  try {
    result = fill();
  } catch (...) {
    restore();
    throw;
  }
  restore();
  Function function = inner.finish(result);
  for (int i = 2; result_.module.functions.contains(function.name) || function.name == "main";
       ++i) {
    function.name = fmt::format("{}_{}", wish, i);
  }
  const std::string name = function.name;
  result_.module.functions.emplace(name, std::move(function));
  return {name};
}

FunctionRef GraphImporter::import_body(const Body& body, const std::vector<Type>& params,
                                       const std::vector<std::string>& captures, const Loc& loc,
                                       Scope& scope, const Wrap& wrap) {
  const OnnxGraph& graph = *body.graph;
  if (graph.inputs.size() != params.size()) {
    throw CompileError(loc, fmt::format("graph \"{}\" has {} inputs and is given {}", graph.name,
                                        graph.inputs.size(), params.size()));
  }
  std::vector<Type> types;
  for (const std::string& name : captures) types.push_back(builder_->type(use(scope, name)));
  // What is known outside is looked up before the builder changes.
  std::map<std::string, Entry> copied;
  std::map<std::string, std::pair<Dims, TensorType>> indices;
  for (const std::string& name : body.free) {
    const Entry& entry = *find(scope, name);
    if (is_operand(entry)) continue;
    Entry copy;
    copy.literal = entry.literal;
    if (entry.id.valid()) copy.literal = known_->literal(entry.id);
    if (copy.literal) {
      copied[name] = copy;
    } else {
      indices[name] = {*known_->dims(entry.id), builder_->tensor_type(entry.id)};
    }
  }
  return build_function(loc.node + "/" + graph.name, [&] {
    Scope inner;
    inner.opsets = scope.opsets;
    inner.prefix = loc.node + "/";
    inner.depth = scope.depth + 1;
    std::vector<ValueId> values;
    for (size_t i = 0; i < params.size(); ++i) {
      const std::string& name = graph.inputs[i].name;
      builder_->set_loc({name, "input", Origin::imported});
      Entry entry;
      entry.id = builder_->parameter(name, params[i]);
      values.push_back(entry.id);
      define(inner, name, std::move(entry), loc.describe());
    }
    std::map<std::string, std::vector<ValueId>> elements;  // of captured sequences
    for (size_t i = 0; i < captures.size(); ++i) {
      builder_->set_loc({captures[i], "input", Origin::imported});
      Entry entry;
      if (types[i].is_tensor()) {
        entry.id = builder_->parameter(captures[i], types[i]);
      } else {
        for (size_t k = 0; k < types[i].elements().size(); ++k) {
          const std::string name = fmt::format("{}_{}", captures[i], k);
          elements[captures[i]].push_back(builder_->parameter(name, types[i].elements()[k]));
        }
      }
      inner.values.emplace(captures[i], std::move(entry));
    }
    builder_->set_loc(loc);
    for (const auto& [name, ids] : elements)
      inner.values[name].id = builder_->emit(ops::tuple, ids);
    for (const auto& [name, entry] : copied) inner.values.emplace(name, entry);
    Emitter e(*builder_);
    for (const auto& [name, index] : indices) {
      Entry entry;
      entry.id =
          index.second.rank() == 0 ? e.dimension(index.first[0]) : e.index_vector(index.first);
      entry.id = e.cast(entry.id, index.second.element);
      inner.values.emplace(name, std::move(entry));
    }
    add_initializers(graph, inner);
    declare_types(graph, inner);
    const size_t complaints = complaints_.size();
    import_nodes(graph.nodes, inner);
    if (complaints_.size() > complaints) throw Poisoned();
    std::vector<ValueId> outputs;
    for (const OnnxValueInfo& output : graph.outputs) {
      if (!find(inner, output.name)) undefined(output.name, loc);
      outputs.push_back(use(inner, output.name));
    }
    builder_->set_loc(loc);
    return wrap(values, outputs);
  });
}

void GraphImporter::require_tensor(ValueId id, const Loc& loc) const {
  if (builder_->type(id).is_tensor()) return;
  throw CompileError(loc, "is given a sequence where it takes a tensor");
}

/// What is visible in a graph that is inlined, beside its inputs and results of nodes.
GraphImporter::Scope GraphImporter::scope_around(const OnnxGraph& graph, const Loc& loc,
                                                 Scope& scope) {
  Scope around;
  around.parent = &scope;
  around.opsets = scope.opsets;
  around.prefix = loc.node + "/";
  around.depth = scope.depth + 1;
  add_initializers(graph, around);
  declare_types(graph, around);
  return around;
}

std::vector<ValueId> GraphImporter::inline_graph(const OnnxGraph& graph,
                                                 const std::vector<ValueId>& inputs,
                                                 size_t output_count, const Loc& loc,
                                                 Scope& around) {
  if (graph.inputs.size() != inputs.size()) {
    throw CompileError(loc, fmt::format("graph \"{}\" has {} inputs and is given {}", graph.name,
                                        graph.inputs.size(), inputs.size()));
  }
  Scope inner;
  inner.parent = &around;
  inner.opsets = around.opsets;
  inner.declared = around.declared;
  inner.prefix = around.prefix;
  inner.depth = around.depth;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Entry entry;
    entry.id = inputs[i];
    define(inner, graph.inputs[i].name, std::move(entry), loc.describe());
  }
  const size_t complaints = complaints_.size();
  import_nodes(graph.nodes, inner);
  if (complaints_.size() > complaints) throw Poisoned();
  builder_->set_loc(loc);
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < output_count; ++k) {
    const std::string& output = graph.outputs[k].name;
    if (!find(inner, output)) undefined(output, loc);
    outputs.push_back(use(inner, output));
  }
  return outputs;
}

}  // namespace backcast
