// What the importer does for training: random numbers, running statistics, the node Gradient.
#include "frontend/gradient_node.h"
#include "frontend/graph_importer.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Whether any node, also of functions and of graphs in attributes, is a Dropout.
bool uses_dropout(const OnnxModel& model) {
  std::vector<const std::vector<OnnxNode>*> todo = {&model.graph.nodes};
  for (const OnnxFunction& function : model.functions) todo.push_back(&function.nodes);
  while (!todo.empty()) {
    const std::vector<OnnxNode>& nodes = *todo.back();
    todo.pop_back();
    for (const OnnxNode& node : nodes) {
      if (node.op_type == "Dropout") return true;
      for (const OnnxAttribute& attribute : node.attributes) {
        if (attribute.g) todo.push_back(&attribute.g->nodes);
      }
    }
  }
  return false;
}

}  // namespace

void GraphImporter::add_generator() {
  if (training_.mode != ImportMode::training || !uses_dropout(model_)) return;
  std::set<std::string> taken;
  for (const OnnxValueInfo& input : model_.graph.inputs) taken.insert(input.name);
  for (const OnnxTensor& tensor : model_.graph.initializers) taken.insert(tensor.name);
  for (const OnnxNode& node : model_.graph.nodes) {
    taken.insert(node.outputs.begin(), node.outputs.end());
  }
  const auto fresh = [&](std::string name) {
    while (!taken.insert(name).second) name += "_";
    return name;
  };
  result_.generator = fresh("generator");
  result_.step = fresh("step");
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

void GraphImporter::note_rounding() {
  const std::vector<std::string>& nodes = training_.rounding;
  if (nodes.empty()) return;
  result_.notes.push_back(fmt::format(
      "{} node{} quantise{}, \"{}\" the first; nothing learns through a quantised value, "
      "so only what comes behind the last one is trained",
      nodes.size(), nodes.size() == 1 ? "" : "s", nodes.size() == 1 ? "s" : "", nodes[0]));
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
