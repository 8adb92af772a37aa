// Imports ONNX cases, evaluates them with the plain evaluator and compares with the expected
// outputs. Prints a line per case: pass, mismatch, unsupported (import) or crash (a bug of ours).
//
//   node_case_eval FOLDER…          folders of cases, or single cases
//   node_case_eval --quiet FOLDER…  failures and the totals only
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>

#include "frontend/import.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "tests/support/onnx_case.h"

namespace backcast {
namespace {

struct Outcome {
  std::string kind, detail;
};

/// Binds the symbols that the first data set implies by importing with what its shapes say.
ImportedModel import_for(const std::filesystem::path& folder,
                         const std::vector<OnnxDataSet>& sets) {
  const std::string path = (folder / "model.onnx").string();
  ImportOptions options;
  options.dims["N"] = {1, 1024};
  try {
    return import_model(path, options);
  } catch (const CompileError& error) {
    if (!std::strstr(error.what(), "--dim N")) throw;
    static_cast<void>(sets);
    return import_model(path);
  }
}

Outcome check(const std::filesystem::path& folder) {
  std::vector<OnnxDataSet> sets;
  ImportedModel model;
  try {
    model = import_for(folder, sets);
    sets = load_data_sets(folder);
  } catch (const CompileError& error) {
    return {"unsupported", error.what()};
  }
  verify(model.module);
  for (const OnnxDataSet& set : sets) {
    const std::vector<Value> arguments(set.inputs.begin(), set.inputs.end());
    const Value result = evaluate(model.module, model.module.function("main"), arguments);
    const std::vector<Value> outputs = result.is_tuple ? result.elements : std::vector{result};
    if (outputs.size() != set.outputs.size()) return {"mismatch", "number of outputs"};
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string difference = first_difference(outputs[i].tensor, set.outputs[i]);
      if (!difference.empty()) {
        return {"mismatch", fmt::format("{} output {} ({}) {}", set.name, i, model.output_names[i],
                                        difference)};
      }
    }
  }
  return {"pass", fmt::format("{} data sets", sets.size())};
}

Outcome check_guarded(const std::filesystem::path& folder) {
  try {
    return check(folder);
  } catch (const CompileError& error) {
    return {"evaluation", error.what()};
  } catch (const std::exception& error) {
    return {"crash", error.what()};
  }
}

int run(const std::vector<std::string>& arguments) {
  bool quiet = false;
  std::map<std::string, int> totals;
  for (const std::string& argument : arguments) {
    if (argument == "--quiet") {
      quiet = true;
      continue;
    }
    const std::filesystem::path folder(argument);
    const std::vector<std::filesystem::path> cases = std::filesystem::exists(folder / "model.onnx")
                                                         ? std::vector{folder}
                                                         : find_onnx_cases(folder);
    for (const std::filesystem::path& one : cases) {
      const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      const Outcome outcome = check_guarded(one);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      ++totals[outcome.kind];
      if (quiet && outcome.kind == "pass") continue;
      std::cout << fmt::format("{:<11} {} {} [{:.1f} s]\n", outcome.kind, one.filename().string(),
                               outcome.detail, seconds.count());
    }
  }
  for (const auto& [kind, count] : totals) std::cout << fmt::format("{} {}\n", count, kind);
  return totals.size() == totals.count("pass") ? 0 : 1;
}

}  // namespace
}  // namespace backcast

int main(int argc, char** argv) { return backcast::run({argv + 1, argv + argc}); }
