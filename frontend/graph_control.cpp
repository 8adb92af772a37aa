// If and Loop. The graphs they hold become functions; what a graph takes from around it
// becomes operands of these, found before the function is begun.
#include <algorithm>
#include <utility>

#include "frontend/graph_importer.h"
#include "frontend/graph_names.h"
#include "frontend/loop_states.h"
#include "frontend/loop_trips.h"
#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Captured values that are known are copied into bodies up to this many elements.
constexpr int64_t kMaxCopied = 4096;
/// The bound of a loop that stacks nothing, so that nothing depends on it.
constexpr int64_t kEndless = INT32_MAX;

ValueId as_scalar(Emitter& e, ValueId x, ElementType element, const char* what, const Loc& loc) {
  if (e.element(x) != element || !(product(e.shape(x), 0, e.rank(x)) == Dim(1))) {
    throw CompileError(loc, fmt::format("the {} has to be one {} and is {}", what, name_of(element),
                                        to_string(e.type(x))));
  }
  return e.rank(x) == 0 ? x : e.reshape(x, {});
}

/// Number of trips and condition come before a Loop's states, their rows behind a Scan's.
std::optional<LoopWithoutUnchanged> changing_states(const OnnxNode& node) {
  const size_t inputs = node.inputs.size();
  if (node.op_type == "Loop") {
    return inputs > 2 ? without_unchanged_states(node, inputs - 2, 2, 1) : std::nullopt;
  }
  const OnnxAttribute* rows = find_attribute(node, "num_scan_inputs");
  if (!rows || rows->i < 1 || rows->i >= static_cast<int64_t>(inputs)) return std::nullopt;
  return without_unchanged_states(node, inputs - static_cast<size_t>(rows->i), 0, 0);
}

/// Number of the trip and condition change places between a Loop's body and a scan.
size_t swapped_first(size_t i) { return i == 0 ? 1 : i == 1 ? 0 : i; }

}  // namespace

const OnnxAttribute* find_attribute(const OnnxNode& node, std::string_view name) {
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

bool is_control_flow(const OnnxNode& node) {
  return node.domain.empty() &&
         (node.op_type == "If" || node.op_type == "Loop" || node.op_type == "Scan");
}

std::vector<ValueId> GraphImporter::import_control(const OnnxNode& node, const Loc& loc,
                                                   Scope& scope) {
  int64_t opset = 0;
  rule_of(node, loc, scope, opset);
  if (scope.depth >= kMaxGraphDepth) throw CompileError(loc, "graphs are nested too deeply");
  builder_->set_loc(loc);
  if (node.op_type == "If") return import_if(node, loc, scope);
  if (node.op_type == "Scan" && opset < 9) return import_batched_scan(node, loc, scope);
  const std::optional<LoopWithoutUnchanged> loop = changing_states(node);
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
  const OnnxAttribute* found = find_attribute(node, attribute);
  if (!found || !found->g) {
    throw CompileError(loc, fmt::format("attribute \"{}\" holds no graph", attribute));
  }
  Body body;
  body.graph = found->g.get();
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
  for (const std::string& name : captures) operands.push_back(use(scope, name));
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
  for (const ValueId id : operands_of(captures, scope)) types.push_back(builder_->type(id));
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
    for (size_t i = 0; i < captures.size(); ++i) {
      builder_->set_loc({captures[i], "input", Origin::imported});
      Entry entry;
      entry.id = builder_->parameter(captures[i], types[i]);
      inner.values.emplace(captures[i], std::move(entry));
    }
    builder_->set_loc(loc);
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

// ---- If
// ------------------------------------------------------------------------------------------

std::vector<ValueId> GraphImporter::inline_branch(const OnnxNode& node, const OnnxGraph& branch,
                                                  const Loc& loc, Scope& scope) {
  Scope inner;
  inner.parent = &scope;
  inner.opsets = scope.opsets;
  inner.prefix = loc.node + "/";
  inner.depth = scope.depth + 1;
  add_initializers(branch, inner);
  declare_types(branch, inner);
  const size_t complaints = complaints_.size();
  import_nodes(branch.nodes, inner);
  if (complaints_.size() > complaints) throw Poisoned();
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string& output = branch.outputs[k].name;
    if (!find(inner, output)) undefined(output, loc);
    outputs.push_back(use(inner, output));
  }
  return outputs;
}

std::vector<ValueId> GraphImporter::import_if(const OnnxNode& node, const Loc& loc, Scope& scope) {
  const std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  if (inputs.size() != 1) throw CompileError(loc, "takes one input, the condition");
  for (const char* name : {"then_branch", "else_branch"}) {
    const OnnxAttribute* branch = find_attribute(node, name);
    if (!branch || !branch->g) {
      throw CompileError(loc, fmt::format("attribute \"{}\" holds no graph", name));
    }
    if (branch->g->outputs.size() < node.outputs.size()) {
      throw CompileError(loc, fmt::format("attribute \"{}\" has {} outputs and needs {}", name,
                                          branch->g->outputs.size(), node.outputs.size()));
    }
  }
  const std::optional<Literal> known = known_->literal(inputs[0]);
  if (known && known->element_count() == 1) {
    const char* name = known->as_int(0) != 0 ? "then_branch" : "else_branch";
    return inline_branch(node, *find_attribute(node, name)->g, loc, scope);
  }
  const Body then = body_of(node, "then_branch", loc, scope);
  const Body otherwise = body_of(node, "else_branch", loc, scope);
  std::vector<std::string> captures = then.captures;
  for (const std::string& name : otherwise.captures) {
    if (std::find(captures.begin(), captures.end(), name) == captures.end()) {
      captures.push_back(name);
    }
  }
  const auto wrap = [&](const std::vector<ValueId>&, const std::vector<ValueId>& outputs) {
    return builder_->emit(
        ops::tuple, {outputs.begin(), outputs.begin() + static_cast<int64_t>(node.outputs.size())});
  };
  IfElseAttrs attrs;
  try {
    attrs.then = import_body(then, {}, captures, loc, scope, wrap);
    attrs.otherwise = import_body(otherwise, {}, captures, loc, scope, wrap);
  } catch (const Poisoned&) {
    if (scope.depth == 0) {
      hints_.push_back(
          loc.describe() +
          ": only run time knows which branch it takes, so that both have to be valid; "
          "--constant NAME=VALUE makes an input constant that decides");
    }
    throw;
  }
  Emitter e(*builder_);
  builder_->set_loc(loc);
  std::vector<ValueId> operands{as_scalar(e, inputs[0], ElementType::boolean, "condition", loc)};
  for (const ValueId id : operands_of(captures, scope)) operands.push_back(id);
  const ValueId chosen = builder_->emit(ops::if_else, operands, attrs);
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    outputs.push_back(e.get(chosen, static_cast<int64_t>(k)));
  }
  return outputs;
}

// ---- Loop
// ----------------------------------------------------------------------------------------

/// How many trips a Loop makes at most, when the file gives that as a constant or a shape.
std::optional<Dim> GraphImporter::given_trips(ValueId trips) {
  if (!trips.valid()) return std::nullopt;
  const std::optional<Dims> known = known_->dims(trips);
  if (!known || known->size() != 1) return std::nullopt;
  const Dim count = (*known)[0];
  if (!count.is_constant()) return count;
  if (count.constant() > kEndless) return std::nullopt;
  return Dim(std::max<int64_t>(count.constant(), 0));
}

/// A bound for a Loop whose trips are neither given nor counted.
Dim GraphImporter::trip_bound(const OnnxNode& node, const Loc& loc, Scope& scope,
                              size_t first_row) {
  if (max_trips_) return Dim(*max_trips_);
  if (first_row >= node.outputs.size()) return Dim(kEndless);
  for (size_t k = first_row; k < node.outputs.size(); ++k) {
    const std::optional<Shape> shape = declared_shape(scope, node.outputs[k]);
    if (shape && !shape->empty()) return (*shape)[0];
  }
  throw CompileError(loc, fmt::format("stacks \"{}\" over a number of trips that only run time "
                                      "knows; give it a bound with --max-trips",
                                      node.outputs[first_row]));
}

/// The trips that the condition alone makes, when nothing that it depends on is data. `operands`:
/// of the body.
std::optional<int64_t> GraphImporter::counted_trips(const Function& body, size_t carries,
                                                    const std::vector<ValueId>& operands,
                                                    const std::optional<Dim>& given) {
  std::optional<int64_t> limit;
  if (given) {
    if (!given->is_constant()) return std::nullopt;
    limit = given->constant();
  }
  KnownLoop loop;
  loop.condition = 1;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool is_tensor = builder_->type(operands[i]).is_tensor();
    loop.start.push_back(is_tensor ? known_->literal(operands[i]) : std::nullopt);
    loop.next.push_back(i < carries ? std::optional(swapped_first(i)) : std::nullopt);
  }
  return count_trips(result_.module, body, loop, limit);
}

std::vector<ValueId> GraphImporter::import_loop(const OnnxNode& node, const Loc& loc,
                                                Scope& scope) {
  Emitter e(*builder_);
  std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  inputs.resize(std::max<size_t>({inputs.size(), node.inputs.size(), 2}));
  const Body body = body_of(node, "body", loc, scope);
  const size_t states = inputs.size() - 2;
  if (body.graph->outputs.size() < states + 1 ||
      node.outputs.size() > body.graph->outputs.size() - 1) {
    throw CompileError(loc, fmt::format("carries {} values and gives {}; the body gives {}", states,
                                        node.outputs.size(), body.graph->outputs.size()));
  }
  builder_->set_loc(loc);
  // In the body's order: number of the trip, condition, values.
  std::vector<ValueId> operands{
      e.integer(0), inputs[1].valid()
                        ? as_scalar(e, inputs[1], ElementType::boolean, "condition", loc)
                        : e.scalar(ElementType::boolean, 1)};
  std::vector<Type> params{TensorType{ElementType::i64, {}}, TensorType{ElementType::boolean, {}}};
  for (size_t k = 2; k < inputs.size(); ++k) {
    if (!inputs[k].valid()) throw CompileError(loc, fmt::format("input {} is missing", k));
    operands.push_back(inputs[k]);
    params.push_back(builder_->type(inputs[k]));
  }
  const std::optional<Literal> start = known_->literal(operands[1]);
  bool always = false;
  ScanAttrs attrs;
  attrs.carries = static_cast<int64_t>(params.size());
  attrs.body = import_body(
      body, params, body.captures, loc, scope,
      [&](const std::vector<ValueId>& given, const std::vector<ValueId>& outputs) {
        Emitter inner(*builder_);
        const std::optional<Literal> known = known_->literal(outputs[0]);
        always = outputs[0] == given[1] || (known && known->as_int(0) != 0);
        std::vector<ValueId> results = outputs;
        results[0] = as_scalar(inner, outputs[0], ElementType::boolean, "condition", loc);
        results.insert(results.begin() + 1, inner.add(given[0], inner.integer(1)));
        // The carries come first in the scan: condition, number of the trip, values.
        return builder_->emit(ops::tuple, results);
      });
  attrs.conditional = !(always && start && start->as_int(0) != 0);
  for (const ValueId id : operands_of(body.captures, scope)) operands.push_back(id);

  const std::optional<Dim> given = given_trips(inputs[0]);
  std::optional<int64_t> counted;
  if (attrs.conditional) {
    const Function& function = result_.module.function(attrs.body.name);
    counted = counted_trips(function, params.size(), operands, given);
  }
  builder_->set_loc(loc);
  attrs.length = counted ? Dim(*counted) : given ? *given : trip_bound(node, loc, scope, states);
  const bool runtime_trips = inputs[0].valid() && !known_->dims(inputs[0]);
  if (counted && !runtime_trips) attrs.conditional = false;
  const ValueId trips = runtime_trips
                            ? as_scalar(e, inputs[0], ElementType::i64, "number of trips", loc)
                            : e.dimension(attrs.length);

  // A scan wants the condition first.
  attrs.body = build_function(attrs.body.name + "/trip", [&] {
    const Function& callee = result_.module.function(attrs.body.name);
    std::vector<ValueId> values;
    for (size_t i = 0; i < callee.params.size(); ++i) {
      const Node& param = callee.node(callee.params[swapped_first(i)]);
      builder_->set_loc(param.loc);
      values.push_back(builder_->parameter(parameter_name(param), param.type));
    }
    std::swap(values[0], values[1]);
    builder_->set_loc(loc);
    return builder_->emit(ops::call, values, CallAttrs{attrs.body});
  });
  std::swap(operands[0], operands[1]);
  operands.insert(operands.begin(), trips);
  const ValueId result = builder_->emit(ops::scan, operands, attrs);
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    outputs.push_back(e.get(result, static_cast<int64_t>(k) + 2));
  }
  return outputs;
}

// ---- Scan
// ----------------------------------------------------------------------------------------

}  // namespace backcast
