#include "tests/onnx/case_runner.h"

#include <fmt/format.h>

#include <fstream>

#include "backend/llvm/jit.h"
#include "driver/device.h"
#include "passes/graph/differentiate.h"

namespace backcast {

namespace fs = std::filesystem;

NodeCase load_case(const fs::path& folder, const TargetInfo* target) {
  NodeCase result;
  result.name = folder.filename().string();
  result.folder = folder;
  try {
    result.sets = read_data_sets(folder);
    CompiledModel& model = result.model;
    model.model_file = "model.onnx";
    ImportOptions options;
    options.differentiator = add_vjp;
    model.imported = import_model((folder / "model.onnx").string(), options);
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

CaseResult run_evaluator(const NodeCase& node_case, const DataSet& set) {
  CaseResult result;
  try {
    result.outputs = evaluate_main(node_case.model.imported.module, set.inputs);
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

std::map<std::string, std::string> read_case_list(const std::string& path) {
  std::map<std::string, std::string> result;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t space = line.find(' ');
    result[line.substr(0, space)] = space == std::string::npos ? "" : line.substr(space + 1);
  }
  return result;
}

}  // namespace backcast
