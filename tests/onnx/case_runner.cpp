#include "tests/onnx/case_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/llvm/jit.h"
#include "driver/compare.h"
#include "driver/device.h"
#include "driver/npy.h"
#include "ir/graph/evaluator.h"

namespace backcast {

namespace fs = std::filesystem;

std::vector<fs::path> find_cases(const fs::path& root) {
  std::vector<fs::path> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

namespace {

std::vector<Literal> read_all(const fs::path& folder, const std::string& stem) {
  std::vector<Literal> tensors;
  for (int i = 0;; ++i) {
    fs::path path = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(path)) return tensors;
    tensors.push_back(read_tensor(path.string()));
  }
}

}  // namespace

NodeCase load_case(const fs::path& folder, const TargetInfo* target) {
  NodeCase result;
  result.name = folder.filename().string();
  result.folder = folder;
  try {
    for (int k = 0; fs::exists(folder / fmt::format("test_data_set_{}", k)); ++k) {
      fs::path set = folder / fmt::format("test_data_set_{}", k);
      result.sets.push_back({read_all(set, "input"), read_all(set, "output")});
    }
    CompiledModel& model = result.model;
    model.model_file = "model.onnx";
    model.imported = import_model((folder / "model.onnx").string());
    if (target) {
      model.target = *target;
      PipelineOptions pipeline;
      pipeline.name = library_name("", result.name + ".onnx");
      model.result = run_pipeline(model.imported.module, *target, pipeline);
      model.abi = abi_of(model.result.program);
    }
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

std::string difference(const std::vector<Literal>& actual, const std::vector<Literal>& expected) {
  if (actual.size() != expected.size()) {
    return fmt::format("{} outputs, expected {}", actual.size(), expected.size());
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    Comparison c = compare(actual[i], expected[i], 1e-3, 1e-7);
    if (!c.passed) return fmt::format("output {}: {}", i, c.message);
  }
  return {};
}

CaseResult run_evaluator(const NodeCase& node_case, const DataSet& set) {
  CaseResult result;
  try {
    const Module& module = node_case.model.imported.module;
    std::vector<Value> arguments(set.inputs.begin(), set.inputs.end());
    Value value = evaluate(module, module.function("main"), arguments);
    if (!value.is_tuple) result.outputs.push_back(value.tensor);
    for (const Value& element : value.elements) result.outputs.push_back(element.tensor);
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

CaseResult run_llvm(const NodeCase& node_case, const DataSet& set) {
  CaseResult result;
  try {
    LlvmOptions options;
    options.level = 0;
    const CompiledModel& model = node_case.model;
    CompiledProgram program(model.result.program, model.target, options);
    result.outputs = program.run("run", set.inputs, sizes_for(model.result.program, set.inputs));
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

std::vector<std::vector<CaseResult>> run_device_batch(const std::vector<const NodeCase*>& cases) {
  std::vector<std::vector<CaseResult>> results;
  std::vector<const CompiledModel*> models;
  std::vector<DeviceCall> calls;
  for (size_t i = 0; i < cases.size(); ++i) {
    models.push_back(&cases[i]->model);
    for (const DataSet& set : cases[i]->sets) calls.push_back({i, set.inputs, 0xFF});
    results.emplace_back(cases[i]->sets.size());
  }
  std::vector<DeviceReply> replies = DeviceImage(models, Emit::lib).run(calls);
  size_t next = 0;
  for (std::vector<CaseResult>& of_case : results) {
    for (CaseResult& result : of_case) {
      DeviceReply& reply = replies[next++];
      result.outputs = std::move(reply.outputs);
      if (reply.status != 0) result.error = fmt::format("status {}", reply.status);
      if (!reply.findings.empty()) result.error = reply.findings;
    }
  }
  return results;
}

}  // namespace backcast
