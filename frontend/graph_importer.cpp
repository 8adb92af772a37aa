// The walk over the nodes. A failed node poisons its outputs, so that one fault gives one message.
#include "frontend/graph_importer.h"

#include <algorithm>

#include "frontend/graph_names.h"
#include "frontend/onnx_tensors.h"
#include "frontend/operators.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr std::string_view kTrainingDomain = "ai.onnx.preview.training";
constexpr int kMaxDepth = 32;           // of functions within functions
constexpr int64_t kMaxNodes = 1000000;  // after inlining
constexpr size_t kMaxComplaints = 100;

/// The node with references to the calling node's attributes replaced.
OnnxNode with_attributes(const OnnxNode& node, const OnnxNode& caller) {
  OnnxNode result = node;
  result.attributes.clear();
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.ref_attr_name.empty()) {
      result.attributes.push_back(attribute);
      continue;
    }
    for (const OnnxAttribute& given : caller.attributes) {
      if (given.name != attribute.ref_attr_name) continue;
      result.attributes.push_back(given);
      result.attributes.back().name = attribute.name;
    }
  }
  return result;
}

}  // namespace

GraphImporter::GraphImporter(const OnnxModel& model, std::filesystem::path model_dir,
                             const ImportOptions& options)
    : model_(model),
      model_dir_(std::move(model_dir)),
      symbols_(model.graph.inputs, options),
      max_trips_(options.max_trips),
      constants_(options.constants),
      main_builder_(result_.module, "main"),
      main_known_(main_builder_),
      builder_(&main_builder_),
      known_(&main_known_) {
  training_.mode = options.mode;
  training_.builder = &main_builder_;
  differentiator_ = options.differentiator;
}

void GraphImporter::complain(const std::string& message) {
  if (complaints_.size() < kMaxComplaints) complaints_.push_back(message);
}

void GraphImporter::check_opsets() {
  const std::map<std::string, int64_t>::const_iterator found = model_.opsets.find("");
  const bool absent = found == model_.opsets.end();
  // Files of IR versions before 3 state no opset and mean the first.
  const int64_t opset = absent ? 1 : found->second;
  bool needed = !absent;
  for (const OnnxNode& node : model_.graph.nodes) needed |= node.domain.empty();
  if (needed && (opset < kOldestOpset || opset > kNewestOpset)) {
    throw CompileError(
        fmt::format("the model uses opset {}, and opsets {} to {} are supported; convert it with "
                    "onnx.version_converter",
                    opset, kOldestOpset, kNewestOpset));
  }
  result_.opset = opset;
}

GraphImporter::Entry* GraphImporter::find(Scope& scope, const std::string& name) {
  for (Scope* s = &scope; s != nullptr; s = s->parent) {
    const std::unordered_map<std::string, Entry>::iterator it = s->values.find(name);
    if (it != s->values.end()) return &it->second;
  }
  return nullptr;
}

void GraphImporter::define(Scope& scope, const std::string& name, Entry entry,
                           const std::string& where) {
  if (!scope.values.emplace(name, std::move(entry)).second) {
    complain(fmt::format(
        "{}: the name \"{}\" is defined twice; every value needs a name of its own", where, name));
  }
}

ValueId GraphImporter::use(Scope& scope, const std::string& name, bool narrow) {
  Entry* entry = find(scope, name);
  BC_CHECK(entry != nullptr, "\"{}\" is not defined", name);
  if (entry->failed) throw Poisoned();
  if (!entry->error.empty() && !(narrow && entry->literal)) throw CompileError(entry->error);
  if (!entry->id.valid()) {
    const Loc before = builder_->loc();
    builder_->set_loc({name, "initializer", Origin::imported});
    entry->id = builder_->constant(*entry->literal);
    builder_->set_loc(before);
  }
  return entry->id;
}

/// What `constants_` says of an input.
Literal GraphImporter::constant_input(const std::string& name, const TensorType& type) const {
  const std::vector<double>& given = constants_.at(name);
  const int64_t count = type.is_static() ? type.element_count().constant() : -1;
  if (count < 0 || (given.size() != 1 && static_cast<int64_t>(given.size()) != count)) {
    throw CompileError(
        fmt::format("--constant {}: the input is {}, and {} values are given; give one, or one for "
                    "each element",
                    name, to_string(type), given.size()));
  }
  std::vector<double> values = given;
  values.resize(static_cast<size_t>(count), given[0]);
  Literal literal = Literal::from_doubles(type.element, static_shape(type.shape), values);
  for (size_t i = 0; i < values.size() && !is_float(type.element); ++i) {
    if (literal.as_double(static_cast<int64_t>(i)) == values[i]) continue;
    throw CompileError(
        fmt::format("--constant {}: {} is no {}", name, values[i], name_of(type.element)));
  }
  return literal;
}

std::vector<OnnxValueInfo> GraphImporter::inputs() const {
  std::set<std::string> initialized;
  for (const OnnxTensor& tensor : model_.graph.initializers) initialized.insert(tensor.name);
  std::vector<OnnxValueInfo> inputs = model_.graph.inputs;
  std::erase_if(inputs, [&](const OnnxValueInfo& i) { return initialized.count(i.name) > 0; });
  const std::optional<OnnxValueInfo> seed = seed_input();
  if (seed && training_.mode != ImportMode::training) inputs.push_back(*seed);
  return inputs;
}

void GraphImporter::add_inputs(Scope& scope) {
  std::set<std::string> unused;
  for (const auto& [name, values] : constants_) unused.insert(name);
  const std::optional<OnnxValueInfo> seed = seed_input();
  const bool takes_seed = seed && training_.mode != ImportMode::training;
  if (seed && !takes_seed) unused.erase(seed->name);
  size_t position = 0;
  for (const OnnxValueInfo& input : inputs()) {
    Entry entry;
    const std::string where = fmt::format("input \"{}\"", input.name);
    try {
      if (input.name.empty()) throw CompileError("an input of the model has no name");
      if (input.kind != OnnxValueInfo::Kind::tensor) {
        throw CompileError(fmt::format(
            "{} is {}; only tensors are supported", where,
            input.kind_name.empty() ? "of no declared type" : "of type " + input.kind_name));
      }
      const std::optional<ElementType> element = element_type_of(input.element_type);
      if (!element) {
        throw CompileError(fmt::format("{} has the element type {}, which is not supported", where,
                                       onnx_type_name(input.element_type)));
      }
      if (!input.shape) {
        throw CompileError(where + " has no shape; its rank has to be fixed in the model");
      }
      TensorType type{*element, {}};
      for (size_t axis = 0; axis < input.shape->size(); ++axis) {
        type.shape.push_back(symbols_.input_dim((*input.shape)[axis], input.name, axis));
      }
      if (unused.erase(input.name) > 0) {
        entry.literal = constant_input(input.name, type);
        result_.constant_inputs.push_back({input.name, position, *entry.literal});
      } else {
        builder_->set_loc({input.name, "input", Origin::imported});
        entry.id = builder_->parameter(input.name, type);
        result_.input_names.push_back(input.name);
      }
    } catch (const CompileError& error) {
      complain(error.what());
      entry.failed = true;
    }
    define(scope, input.name, std::move(entry), where);
    ++position;
  }
  if (takes_seed && complaints_.empty()) {
    training_.seed = use(scope, seed->name);
    result_.notes.push_back(fmt::format(
        "draws random numbers, and \"{}\" is an input more: equal ones give equal numbers",
        seed->name));
  }
  for (const std::string& name : unused) {
    complain(fmt::format("--constant {}: the model has no such input", name));
  }
  symbols_.check_options();
  result_.module.symbols = symbols_.ranges();
}

void GraphImporter::add_initializers(const OnnxGraph& graph, Scope& scope) {
  for (const OnnxTensor& tensor : graph.initializers) {
    Entry entry;
    try {
      entry.literal = to_literal(tensor, model_dir_);
    } catch (const CompileError& error) {
      // An unused tensor of an unsupported type does no harm.
      entry.error = error.what();
      entry.failed = element_type_of(tensor.data_type).has_value();
      if (entry.failed) complain(error.what());
    }
    try {
      if (!entry.error.empty() && !entry.failed) entry.literal = widened(tensor, model_dir_);
    } catch (const CompileError& error) {
      entry.error = error.what();
    }
    define(scope, tensor.name, std::move(entry), "initializer");
  }
  for (const std::string& name : graph.sparse_initializers) {
    Entry entry;
    entry.error = fmt::format(
        "initializer \"{}\" is sparse, which is not supported; store it "
        "as a dense tensor",
        name);
    define(scope, name, std::move(entry), "sparse initializer");
  }
}

void GraphImporter::declare_types(const OnnxGraph& graph, Scope& scope) {
  for (const OnnxValueInfo& info : graph.value_info) scope.declared[info.name] = &info;
  for (const OnnxValueInfo& info : graph.outputs) scope.declared[info.name] = &info;
  // An operator that works on each element tells its input's shape from its output's.
  static const std::set<std::string> kElementwise = {
      "Abs", "Cast", "CastLike", "Exp", "Floor", "Identity", "Log", "Neg", "Relu", "Sqrt"};
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const OnnxNode& node = graph.nodes[i];
    if (!node.domain.empty() || kElementwise.count(node.op_type) == 0) continue;
    if (node.inputs.empty() || node.outputs.empty()) continue;
    const std::map<std::string, const OnnxValueInfo*>::const_iterator found =
        scope.declared.find(node.outputs[0]);
    if (found != scope.declared.end()) scope.declared.try_emplace(node.inputs[0], found->second);
  }
}

std::optional<Shape> GraphImporter::declared_shape(const Scope& scope,
                                                   const std::string& name) const {
  const std::map<std::string, const OnnxValueInfo*>::const_iterator found =
      scope.declared.find(name);
  if (found == scope.declared.end() || !found->second->shape) return std::nullopt;
  Shape result;
  for (const OnnxDim& dim : *found->second->shape) {
    const std::optional<Dim> known = symbols_.declared_dim(dim);
    if (!known) return std::nullopt;
    result.push_back(*known);
  }
  return result;
}

const OnnxFunction* GraphImporter::find_function(const OnnxNode& node) const {
  for (const OnnxFunction& function : model_.functions) {
    if (function.name == node.op_type && function.domain == node.domain) return &function;
  }
  return nullptr;
}

void GraphImporter::undefined(const std::string& name, const Loc& loc) const {
  for (const OnnxNode& node : model_.graph.nodes) {
    if (std::find(node.outputs.begin(), node.outputs.end(), name) == node.outputs.end()) continue;
    throw CompileError(
        loc,
        fmt::format("input \"{}\" is computed by node \"{}\" ({}), which needs this one first: "
                    "the nodes form a cycle",
                    name, node.name, node.op_type));
  }
  throw CompileError(loc, fmt::format("input \"{}\" is not defined by any node, initializer or "
                                      "input of the model",
                                      name));
}

std::vector<ValueId> GraphImporter::node_inputs(const OnnxNode& node, const Loc& loc, Scope& scope,
                                                bool narrow) {
  for (const std::string& name : node.inputs) {
    if (!name.empty() && !find(scope, name)) undefined(name, loc);
  }
  std::vector<ValueId> result;
  for (const std::string& name : node.inputs) {
    result.push_back(name.empty() ? ValueId() : use(scope, name, narrow));
  }
  while (!result.empty() && !result.back().valid()) result.pop_back();
  return result;
}

const OperatorRule& GraphImporter::rule_of(const OnnxNode& node, const Loc& loc, const Scope& scope,
                                           int64_t& version) const {
  const std::map<std::string, int64_t>::const_iterator opset = scope.opsets.find(node.domain);
  const std::string domain =
      node.domain.empty() ? "" : fmt::format(" of domain \"{}\"", node.domain);
  // ONNX Runtime's own are there for it, and tools that write them (NNCF) rely on that.
  const bool is_runtimes = node.domain == "com.microsoft";
  if (opset == scope.opsets.end() && !is_runtimes) {
    throw CompileError(loc, fmt::format("the model imports no opset for the operator{}", domain));
  }
  version = opset == scope.opsets.end() ? 1 : opset->second;
  const OperatorRule* rule = find_rule(node.domain, node.op_type, version);
  if (!rule) {
    const std::string_view advice = advice_for(node.domain, node.op_type);
    throw CompileError(loc, fmt::format("operator {}{} is not supported at opset {}; {}",
                                        node.op_type, domain, version,
                                        !advice.empty() ? advice
                                        : is_known_operator(node.domain, node.op_type)
                                            ? "other opsets of it are"
                                            : "`backcast inspect --operators` lists what is"));
  }
  check_attributes(*rule, node, loc);
  return *rule;
}

std::vector<ValueId> GraphImporter::checked_inputs(const OperatorRule& rule, const OnnxNode& node,
                                                   const Loc& loc, Scope& scope) {
  const std::vector<ValueId> inputs = node_inputs(node, loc, scope, rule.narrow_constants);
  const int64_t count = static_cast<int64_t>(inputs.size());
  if (count < rule.min_inputs || (rule.max_inputs >= 0 && count > rule.max_inputs)) {
    throw CompileError(loc, fmt::format("has {} inputs and takes {}{}", count, rule.min_inputs,
                                        rule.max_inputs < 0 ? " or more"
                                        : rule.max_inputs > rule.min_inputs
                                            ? fmt::format(" to {}", rule.max_inputs)
                                            : ""));
  }
  for (size_t i = 0; i < inputs.size() && !rule.sequences; ++i) {
    if (!inputs[i].valid() || builder_->type(inputs[i]).is_tensor()) continue;
    throw CompileError(loc, fmt::format("input {} (\"{}\") is a sequence and has to be a tensor", i,
                                        node.inputs[i]));
  }
  return inputs;
}

std::vector<ValueId> GraphImporter::apply_rule(const OnnxNode& node, const Loc& loc, Scope& scope) {
  int64_t opset = 0;
  const OperatorRule& rule = rule_of(node, loc, scope, opset);
  const std::vector<ValueId> inputs = checked_inputs(rule, node, loc, scope);
  ImportServices services{result_.module,
                          *builder_,
                          *known_,
                          [&](const std::string& name) { return declared_shape(scope, name); },
                          [&](const std::string& name) {
                            const Entry* entry = find(scope, name);
                            return entry && entry->literal && !entry->error.empty();
                          },
                          [&](const std::string& name) { return used_names_.contains(name); },
                          [&](const OnnxTensor& tensor) { return to_literal(tensor, model_dir_); },
                          composites_,
                          training_,
                          result_.notes};
  NodeContext context(services, node, loc, opset, inputs);
  builder_->set_loc(loc);
  rule.import(context);
  return context.outputs();
}

std::vector<ValueId> GraphImporter::inline_function(const OnnxFunction& function,
                                                    const OnnxNode& node, const Loc& loc,
                                                    Scope& scope) {
  if (scope.depth >= kMaxDepth) {
    throw CompileError(loc, "functions are nested too deeply; do they call themselves?");
  }
  if (node.inputs.size() > function.inputs.size() ||
      node.outputs.size() > function.outputs.size()) {
    throw CompileError(loc, fmt::format("the function takes {} inputs and gives {} outputs",
                                        function.inputs.size(), function.outputs.size()));
  }
  Scope inner;
  inner.opsets = function.opsets.empty() ? scope.opsets : function.opsets;
  inner.prefix = loc.node + "/";
  inner.depth = scope.depth + 1;
  const std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  std::map<std::string, std::string> absent;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) continue;
    Entry entry;
    entry.id = inputs[i];
    inner.values.emplace(function.inputs[i], entry);
  }
  std::vector<OnnxNode> nodes;
  for (const OnnxNode& n : function.nodes) {
    nodes.push_back(with_attributes(n, node));
    // A parameter without an argument is an absent input of the nodes that use it.
    for (std::string& name : nodes.back().inputs) {
      const bool is_parameter =
          std::find(function.inputs.begin(), function.inputs.end(), name) != function.inputs.end();
      if (is_parameter && inner.values.count(name) == 0) name.clear();
    }
  }
  const size_t complaints = complaints_.size();
  import_nodes(nodes, inner);
  if (complaints_.size() > complaints) throw Poisoned();
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string& name = function.outputs[k];
    if (!inner.values.count(name)) {
      throw CompileError(loc, fmt::format("the function does not compute its output \"{}\"", name));
    }
    outputs.push_back(use(inner, name));
  }
  return outputs;
}

void GraphImporter::import_node(const OnnxNode& node, const Loc& loc, Scope& scope) {
  if (++imported_nodes_ > kMaxNodes) throw CompileError(loc, "the model has too many nodes");
  const OnnxFunction* function = find_function(node);
  std::vector<ValueId> outputs;
  try {
    outputs = function ? inline_function(*function, node, loc, scope)
              : node.op_type == "Gradient" && node.domain == kTrainingDomain
                  ? differentiate(node, loc, scope)
              : is_control_flow(node) ? import_control(node, loc, scope)
                                      : apply_rule(node, loc, scope);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (!used_names_.contains(node.outputs[k]) || outputs[k].valid()) continue;
      throw CompileError(loc,
                         fmt::format("output {} (\"{}\") is not supported", k, node.outputs[k]));
    }
  } catch (const CompileError& error) {
    const std::string message = error.what();
    complain(message.starts_with("node \"") ? message : loc.describe() + ": " + message);
    outputs.clear();
  } catch (const Poisoned&) {
    outputs.clear();
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.outputs[k].empty()) continue;
    Entry entry;
    entry.failed = outputs.empty() || !outputs[k].valid();  // which nothing reads
    if (!entry.failed) entry.id = outputs[k];
    define(scope, node.outputs[k], std::move(entry), loc.describe());
  }
}

void GraphImporter::import_nodes(const std::vector<OnnxNode>& nodes, Scope& scope) {
  for (const size_t i : topological_order(nodes)) {
    const OnnxNode& node = nodes[i];
    Loc loc;
    loc.node =
        scope.prefix + (node.name.empty() ? fmt::format("{}_{}", node.op_type, i) : node.name);
    loc.op_type = node.op_type;
    import_node(node, loc, scope);
  }
}

ImportedModel GraphImporter::run() {
  check_opsets();
  used_names_ = used_names(model_);
  Scope scope;
  scope.opsets = model_.opsets;
  scope.opsets.try_emplace("", 1);
  add_inputs(scope);
  add_generator();
  add_initializers(model_.graph, scope);
  declare_types(model_.graph, scope);
  import_nodes(model_.graph.nodes, scope);
  return finish(scope);
}

}  // namespace backcast
