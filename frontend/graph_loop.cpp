// Loop: as a scan, or trip by trip where a body has to know which trip it is. SequenceMap.
#include <algorithm>
#include <exception>
#include <utility>

#include "frontend/graph_importer.h"
#include "frontend/loop_trips.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// The bound of a loop that stacks nothing, so that nothing depends on it.
constexpr int64_t kEndless = INT32_MAX;
/// How many trips are imported one by one.
constexpr int64_t kMaxUnrolled = 1024;

/// Number of the trip and condition change places between a Loop's body and a scan.
size_t swapped_first(size_t i) { return i == 0 ? 1 : i == 1 ? 0 : i; }

}  // namespace

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

std::vector<ValueId> GraphImporter::rolled_loop(const OnnxNode& node, const Loc& loc,
                                                const std::vector<ValueId>& inputs, Scope& scope) {
  Emitter e(*builder_);
  const Body body = body_of(node, "body", loc, scope);
  const size_t states = inputs.size() - 2;
  builder_->set_loc(loc);
  // In the body's order: number of the trip, condition, values.
  std::vector<ValueId> operands{
      e.integer(0), inputs[1].valid()
                        ? as_scalar(e, inputs[1], ElementType::boolean, "condition", loc)
                        : e.scalar(ElementType::boolean, 1)};
  std::vector<Type> params{TensorType{ElementType::i64, {}}, TensorType{ElementType::boolean, {}}};
  for (size_t k = 2; k < inputs.size(); ++k) {
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

/// A Loop's trips one behind the other. Sequences that are carried become longer, tensors larger,
/// and a slice of the body ends where the number of the trip says.
std::vector<ValueId> GraphImporter::unrolled_loop(const OnnxNode& node, const Loc& loc,
                                                  const std::vector<ValueId>& inputs,
                                                  Scope& scope) {
  Emitter e(*builder_);
  const auto unknown = [&](const std::string& what) {
    return CompileError(
        loc, fmt::format("only run time knows {}, and what it carries or computes makes import "
                         "follow it trip by trip; make it a constant",
                         what));
  };
  const std::optional<Dim> given = given_trips(inputs[0]);
  if (inputs[0].valid() && !(given && given->is_constant())) {
    throw unknown("the number of trips");
  }
  const OnnxGraph& graph = graph_of(node, "body", loc);
  Scope around = scope_around(graph, loc, scope);
  ValueId condition = inputs[1].valid()
                          ? as_scalar(e, inputs[1], ElementType::boolean, "condition", loc)
                          : e.scalar(ElementType::boolean, 1);
  std::vector<ValueId> results(inputs.begin() + 2, inputs.end());
  const size_t states = results.size();
  std::vector<std::vector<ValueId>> rows(graph.outputs.size() - 1 - states);
  for (int64_t trip = 0; !given || trip < given->constant(); ++trip) {
    const std::optional<Literal> goes_on = known_->literal(condition);
    if (!goes_on) throw unknown("the condition");
    if (goes_on->as_int(0) == 0) break;
    if (trip == kMaxUnrolled) {
      throw CompileError(loc, fmt::format("makes more than {} trips that import has to follow one "
                                          "by one",
                                          kMaxUnrolled));
    }
    std::vector<ValueId> values{e.integer(trip), condition};
    values.insert(values.end(), results.begin(), results.end());
    const std::vector<ValueId> outputs =
        inline_graph(graph, values, graph.outputs.size(), loc, around);
    condition = as_scalar(e, outputs[0], ElementType::boolean, "condition", loc);
    for (size_t k = 0; k < states; ++k) results[k] = outputs[k + 1];
    for (size_t k = 0; k < rows.size(); ++k) {
      rows[k].push_back(e.unsqueeze(outputs[states + 1 + k], 0));
    }
  }
  for (size_t k = 0; states + k < node.outputs.size(); ++k) {
    if (rows[k].empty()) throw CompileError(loc, "makes no trip, and what it stacks has no shape");
    results.push_back(e.concat(rows[k], 0));
  }
  results.resize(node.outputs.size());
  return results;
}

std::vector<ValueId> GraphImporter::import_loop(const OnnxNode& node, const Loc& loc,
                                                Scope& scope) {
  std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  inputs.resize(std::max<size_t>({inputs.size(), node.inputs.size(), 2}));
  const OnnxGraph& graph = graph_of(node, "body", loc);
  const size_t states = inputs.size() - 2;
  if (graph.outputs.size() < states + 1 || node.outputs.size() > graph.outputs.size() - 1) {
    throw CompileError(loc, fmt::format("carries {} values and gives {}; the body gives {}", states,
                                        node.outputs.size(), graph.outputs.size()));
  }
  if (inputs[0].valid()) require_tensor(inputs[0], loc);
  for (size_t k = 2; k < inputs.size(); ++k) {
    if (!inputs[k].valid()) throw CompileError(loc, fmt::format("input {} is missing", k));
  }
  const bool carries_sequence = std::any_of(
      inputs.begin() + 2, inputs.end(), [&](ValueId id) { return builder_->type(id).is_tuple(); });
  if (carries_sequence) return unrolled_loop(node, loc, inputs, scope);
  const size_t before = complaints_.size();
  std::exception_ptr fault;
  try {
    return rolled_loop(node, loc, inputs, scope);
  } catch (const CompileError&) {
    fault = std::current_exception();
  } catch (const Poisoned&) {
    fault = std::current_exception();
  }
  // A body that is wrong in any trip is complained about once.
  const std::vector<std::string> complaints(complaints_.begin() + static_cast<int64_t>(before),
                                            complaints_.end());
  complaints_.resize(before);
  const int64_t nodes = imported_nodes_;
  try {
    return unrolled_loop(node, loc, inputs, scope);
  } catch (const CompileError&) {
  } catch (const Poisoned&) {
  }
  imported_nodes_ = nodes;
  complaints_.resize(before);
  complaints_.insert(complaints_.end(), complaints.begin(), complaints.end());
  std::rethrow_exception(fault);
}

std::vector<ValueId> GraphImporter::import_map(const OnnxNode& node, const Loc& loc, Scope& scope) {
  Emitter e(*builder_);
  const std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  if (inputs.empty() || !builder_->type(inputs[0]).is_tuple()) {
    throw CompileError(loc, "input 0 has to be a sequence");
  }
  const OnnxGraph& graph = graph_of(node, "body", loc);
  if (graph.outputs.size() < node.outputs.size()) {
    throw CompileError(loc, "the body gives too few outputs");
  }
  Scope around = scope_around(graph, loc, scope);
  const size_t count = builder_->type(inputs[0]).elements().size();
  std::vector<std::vector<ValueId>> given, results(node.outputs.size());
  for (const ValueId input : inputs) {
    const bool is_sequence = builder_->type(input).is_tuple();
    given.push_back(is_sequence ? e.elements(input) : std::vector<ValueId>(count, input));
    if (given.back().size() != count) {
      throw CompileError(loc, "the sequences have different lengths");
    }
  }
  for (size_t i = 0; i < count; ++i) {
    std::vector<ValueId> values;
    for (const std::vector<ValueId>& elements : given) values.push_back(elements[i]);
    const std::vector<ValueId> outputs = inline_graph(graph, values, results.size(), loc, around);
    for (size_t k = 0; k < results.size(); ++k) results[k].push_back(outputs[k]);
  }
  std::vector<ValueId> outputs;
  for (const std::vector<ValueId>& elements : results) outputs.push_back(e.tuple(elements));
  return outputs;
}

}  // namespace backcast
