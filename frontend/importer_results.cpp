// What an import ends with: the model's results, everything that was complained about, and notes.
#include <set>

#include "frontend/graph_importer.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Leaves out the nodes and functions that the result does not need.
void prune(Module& module) {
  Function main = Rewriter(module, module.function("main")).finish();
  std::set<std::string> called;
  std::vector<const Function*> todo = {&main};
  while (!todo.empty()) {
    const Function* function = todo.back();
    todo.pop_back();
    for (const Node& node : function->nodes) {
      for (const std::string& name : called_functions(node)) {
        if (called.insert(name).second) todo.push_back(&module.function(name));
      }
    }
  }
  std::erase_if(module.functions, [&](const auto& f) { return called.count(f.first) == 0; });
  module.functions["main"] = std::move(main);
}

}  // namespace

/// An output of the model, or one per element where it is a sequence.
void GraphImporter::add_result(const std::string& name, ValueId value,
                               std::vector<ValueId>& results) {
  if (builder_->type(value).is_tensor()) {
    results.push_back(value);
    result_.output_names.push_back(name);
    return;
  }
  const std::vector<ValueId> elements = Emitter(*builder_).elements(value);
  if (elements.empty()) {
    throw CompileError(fmt::format("output \"{}\" is a sequence without elements", name));
  }
  for (size_t k = 0; k < elements.size(); ++k) {
    add_result(fmt::format("{}_{}", name, k), elements[k], results);
  }
  result_.notes.push_back(fmt::format(
      "output \"{}\" is a sequence of {}, whose elements are the outputs \"{}_0\" and so on", name,
      elements.size(), name));
}

ImportedModel GraphImporter::finish(Scope& scope) {
  std::vector<ValueId> results;
  if (model_.graph.outputs.empty()) complain("the model has no outputs");
  for (const OnnxValueInfo& output : model_.graph.outputs) {
    try {
      if (!find(scope, output.name)) {
        throw CompileError(fmt::format("output \"{}\" is not computed by any node", output.name));
      }
      add_result(output.name, use(scope, output.name), results);
    } catch (const CompileError& error) {
      complain(error.what());
    } catch (const Poisoned&) {
      // Its node has been complained about.
    }
  }
  if (!complaints_.empty()) {
    std::string all;
    for (const std::vector<std::string>& lines : {complaints_, hints_, symbols_.notes()}) {
      for (const std::string& line : lines) all += (all.empty() ? "" : "\n") + line;
    }
    throw CompileError(all);
  }
  builder_->set_loc({"outputs", "", Origin::made});
  list_parameters();
  std::vector<std::string> names = result_.output_names;
  add_statistics(results, names);
  const ValueId result = results.size() == 1 ? results[0] : builder_->emit(ops::tuple, results);
  result_.module.functions["main"] = builder_->finish(result, names);
  prune(result_.module);
  result_.name = model_.graph.name;
  const std::vector<std::string>& notes = symbols_.notes();
  result_.notes.insert(result_.notes.begin(), notes.begin(), notes.end());
  result_.endless = symbols_.is_endless();
  note_rounding();
  note_shared_parameters();
  return std::move(result_);
}

}  // namespace backcast
