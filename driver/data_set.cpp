#include "driver/data_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/npy.h"
#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"

namespace backcast {

namespace fs = std::filesystem;

namespace {

std::vector<Literal> read_all(const fs::path& folder, const char* stem) {
  std::vector<Literal> tensors;
  while (true) {
    const fs::path path = folder / fmt::format("{}_{}.pb", stem, tensors.size());
    if (!fs::exists(path)) return tensors;
    tensors.push_back(read_tensor(path.string()));
  }
}

}  // namespace

std::vector<DataSet> read_data_sets(const fs::path& folder) {
  std::vector<DataSet> sets;
  while (true) {
    const std::string name = fmt::format("test_data_set_{}", sets.size());
    if (!fs::is_directory(folder / name)) return sets;
    sets.push_back({name, read_all(folder / name, "input"), read_all(folder / name, "output")});
  }
}

void add_shapes(const std::vector<DataSet>& sets, const std::string& model,
                ImportOptions& options) {
  const std::vector<std::string> all = input_names(model);
  std::vector<std::string> asked = all;
  std::erase_if(asked, [&](const std::string& name) { return options.constants.contains(name); });
  for (const DataSet& set : sets) {
    const std::vector<std::string>& names = set.inputs.size() > asked.size() ? all : asked;
    for (size_t i = 0; i < std::min(names.size(), set.inputs.size()); ++i) {
      options.shapes[names[i]].push_back(set.inputs[i].shape());
    }
  }
}

std::vector<Literal> remaining_inputs(const DataSet& set, const ImportedModel& model) {
  std::vector<Literal> inputs = set.inputs;
  if (inputs.size() == model.input_names.size()) return inputs;
  for (size_t i = model.constant_inputs.size(); i-- > 0;) {
    const ConstantInput& constant = model.constant_inputs[i];
    if (constant.position >= inputs.size()) continue;
    if (!(inputs[constant.position] == constant.value)) {
      throw CompileError(fmt::format("{}: input \"{}\" is not what --constant made of it", set.name,
                                     constant.name));
    }
    inputs.erase(inputs.begin() + static_cast<int64_t>(constant.position));
  }
  return inputs;
}

std::vector<fs::path> find_cases(const fs::path& root) {
  std::vector<fs::path> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::vector<Literal> evaluate_main(const Module& module, const std::vector<Literal>& inputs) {
  const std::vector<Value> arguments(inputs.begin(), inputs.end());
  const Value value = evaluate(module, module.function("main"), arguments);
  if (!value.is_tuple) return {value.tensor};
  std::vector<Literal> outputs;
  for (const Value& element : value.elements) outputs.push_back(element.tensor);
  return outputs;
}

}  // namespace backcast
