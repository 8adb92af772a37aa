// What the importer does for training: random numbers, running statistics, the node Gradient.
#include <algorithm>

#include "frontend/gradient_node.h"
#include "frontend/graph_importer.h"
#include "frontend/graph_names.h"
#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Whether that is said of any node, also of functions and of graphs in attributes.
bool any_node(const OnnxModel& model, const std::function<bool(const OnnxNode&)>& says) {
  std::vector<const std::vector<OnnxNode>*> todo = {&model.graph.nodes};
  for (const OnnxFunction& function : model.functions) todo.push_back(&function.nodes);
  while (!todo.empty()) {
    const std::vector<OnnxNode>& nodes = *todo.back();
    todo.pop_back();
    for (const OnnxNode& node : nodes) {
      if (says(node)) return true;
      for (const OnnxAttribute& attribute : node.attributes) {
        if (attribute.g) todo.push_back(&attribute.g->nodes);
      }
    }
  }
  return false;
}

bool draws(const OnnxNode& node) {
  return node.domain.empty() && std::ranges::any_of(random_rules(), [&](const OperatorRule& rule) {
           return rule.name == node.op_type;
         });
}

/// Draws, and has no seed of its own. (A function's attribute may refer to one that is not given.)
bool asks_for_seed(const OnnxNode& node) {
  const OnnxAttribute* seed = find_attribute(node, "seed");
  return draws(node) && (seed == nullptr || !seed->ref_attr_name.empty());
}

}  // namespace

std::optional<OnnxValueInfo> GraphImporter::seed_input() const {
  if (!any_node(model_, asks_for_seed)) return std::nullopt;
  std::set<std::string> taken = defined_names(model_.graph);
  OnnxValueInfo seed;
  seed.name = free_name("seed", taken);
  seed.kind = OnnxValueInfo::Kind::tensor;
  seed.element_type = onnx_type::kUint32;
  seed.shape.emplace();
  return seed;
}

void GraphImporter::add_generator() {
  const auto needs = [](const OnnxNode& node) { return node.op_type == "Dropout" || draws(node); };
  if (training_.mode != ImportMode::training || !any_node(model_, needs)) return;
  std::set<std::string> taken = defined_names(model_.graph);
  result_.generator = free_name("generator", taken);
  result_.step = free_name("step", taken);
  builder_->set_loc({result_.generator, "input", Origin::made});
  training_.generator = builder_->parameter(result_.generator, TensorType{ElementType::u32, {2}});
  builder_->set_loc({result_.step, "input", Origin::made});
  training_.step = builder_->parameter(result_.step, TensorType{ElementType::i32, {}});
}

void GraphImporter::add_statistics(std::vector<ValueId>& results, std::vector<std::string>& names) {
  for (const std::string& name : result_.running_statistics) {
    const ValueId now = training_.statistics.at(name);
    if (!now.valid()) continue;
    result_.updated_statistics.push_back(name);
    results.push_back(now);
    names.push_back(name);
  }
}

void GraphImporter::list_parameters() {
  for (const OnnxTensor& tensor : model_.graph.initializers) {
    const std::optional<ElementType> element = element_type_of(tensor.data_type);
    if (!element || !is_float(*element) || training_.scales.count(tensor.name) > 0) continue;
    const bool statistic = training_.statistics.count(tensor.name) > 0;
    (statistic ? result_.running_statistics : result_.parameter_names).push_back(tensor.name);
  }
}

void GraphImporter::note_rounding() {
  const std::vector<std::string>& nodes = training_.rounding;
  if (nodes.empty()) return;
  result_.quantises = true;
  result_.notes.push_back(fmt::format(
      "{} node{} quantise{}, \"{}\" the first; nothing learns through a quantised value, "
      "so only what comes behind the last one is trained",
      nodes.size(), nodes.size() == 1 ? "" : "s", nodes.size() == 1 ? "s" : "", nodes[0]));
}

void GraphImporter::note_shared_parameters() {
  if (training_.mode != ImportMode::training) return;
  const std::map<std::string, std::set<size_t>> users = users_of(model_.graph);
  std::vector<std::string> shared;
  for (const std::string& name : result_.parameter_names) {
    const auto found = users.find(name);
    if (found != users.end() && found->second.size() > 1) shared.push_back(name);
  }
  if (shared.empty()) return;
  result_.notes.push_back(fmt::format(
      "{} used by several nodes, \"{}\"{}, and learn{} as one; if the model's layers have "
      "parameters of their own, its exporter merged equal values, as PyTorch's does before "
      "training unless told training=torch.onnx.TrainingMode.TRAINING",
      shared.size() == 1 ? "1 parameter is" : fmt::format("{} parameters are", shared.size()),
      shared[0], shared.size() == 1 ? "" : " the first", shared.size() == 1 ? "s" : ""));
}

std::vector<ValueId> GraphImporter::differentiate(const OnnxNode& node, const Loc& loc,
                                                  Scope& scope) {
  GradientNode gradient;
  const auto value = [&](const std::string& name) {
    if (!find(scope, name)) undefined(name, loc);
    return use(scope, name);
  };
  std::string y;
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.name == "y") y = attribute.s;
    std::vector<ValueId>* list = attribute.name == "xs"   ? &gradient.xs
                                 : attribute.name == "zs" ? &gradient.zs
                                                          : nullptr;
    if (!list) continue;
    for (const std::string& name : attribute.strings) list->push_back(value(name));
  }
  if (y.empty()) throw CompileError(loc, "attribute \"y\" is missing");
  gradient.y = value(y);
  gradient.at = node_inputs(node, loc, scope);
  builder_->set_loc(loc);
  return import_gradient(result_.module, *builder_, gradient, differentiator_);
}

}  // namespace backcast
