// backcast verify MODEL.onnx --data DIR: expected outputs against compiled ones.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "driver/commands.h"
#include "driver/compare.h"
#include "driver/compiler.h"
#include "driver/device.h"
#include "driver/npy.h"
#include "ir/graph/evaluator.h"

namespace backcast {

namespace fs = std::filesystem;

namespace {

struct Options {
  CompileRequest request;
  std::vector<std::string> dims;
  std::string data, emit = "lib";
  bool evaluator = false;
  double rtol = 1e-3, atol = 1e-7;
};

struct DataSet {
  std::string name;
  std::vector<Literal> inputs, outputs;
};

std::vector<Literal> read_all(const fs::path& folder, const std::string& stem) {
  std::vector<Literal> tensors;
  for (int i = 0;; ++i) {
    fs::path path = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(path)) return tensors;
    tensors.push_back(read_tensor(path.string()));
  }
}

std::vector<DataSet> read_data(const std::string& folder) {
  std::vector<DataSet> sets;
  for (int k = 0;; ++k) {
    fs::path path = fs::path(folder) / fmt::format("test_data_set_{}", k);
    if (!fs::is_directory(path)) break;
    sets.push_back({path.filename().string(), read_all(path, "input"), read_all(path, "output")});
  }
  if (sets.empty())
    throw CompileError(folder + ": no test_data_set_0 with input_0.pb and output_0.pb");
  return sets;
}

std::vector<std::vector<Literal>> evaluate_all(const CompiledModel& model,
                                               const std::vector<DataSet>& sets) {
  std::vector<std::vector<Literal>> results;
  const Module& module = model.imported.module;
  for (const DataSet& set : sets) {
    std::vector<Value> arguments(set.inputs.begin(), set.inputs.end());
    Value value = evaluate(module, module.function("main"), arguments);
    std::vector<Literal> outputs;
    if (!value.is_tuple) outputs.push_back(value.tensor);
    for (const Value& element : value.elements) outputs.push_back(element.tensor);
    results.push_back(std::move(outputs));
  }
  return results;
}

std::vector<std::vector<Literal>> run_all(const CompiledModel& model, Emit emit,
                                          const std::vector<DataSet>& sets) {
  if (emit != Emit::lib && emit != Emit::c)
    throw CompileError("verify takes --emit lib or --emit c");
  DeviceImage image({&model}, emit);
  std::vector<DeviceCall> calls;
  for (const DataSet& set : sets) calls.push_back({0, set.inputs, 0xFF});
  std::vector<std::vector<Literal>> results;
  for (DeviceReply& reply : image.run(calls)) {
    if (reply.status != 0)
      throw CompileError(fmt::format("the library answered status {}", reply.status));
    if (!reply.findings.empty()) throw InternalError("the library " + reply.findings);
    results.push_back(std::move(reply.outputs));
  }
  return results;
}

int run(Options& o) {
  o.request.dims = parse_dims(o.dims);
  std::vector<DataSet> sets =
      read_data(o.data.empty() ? fs::path(o.request.model).parent_path().string() : o.data);
  CompiledModel model = compile_model(o.request);
  std::vector<std::vector<Literal>> results =
      o.evaluator ? evaluate_all(model, sets) : run_all(model, parse_emit(o.emit), sets);
  int failed = 0;
  double worst = 0;
  for (size_t s = 0; s < sets.size(); ++s) {
    for (size_t i = 0; i < sets[s].outputs.size(); ++i) {
      Comparison c = i < results[s].size()
                         ? compare(results[s][i], sets[s].outputs[i], o.rtol, o.atol)
                         : Comparison{false, 0, "is missing"};
      worst = std::max(worst, c.worst);
      if (c.passed) continue;
      ++failed;
      fmt::print("{}: output {} {}\n", sets[s].name, i, c.message);
    }
  }
  fmt::print("{}: {} ({}): {} of {} data sets; largest error {:.3g} of the tolerance\n",
             failed ? "FAILED" : "passed", model.model_file,
             o.evaluator ? "evaluator" : o.request.target + ", " + o.emit,
             sets.size() - size_t(std::min<int>(failed, int(sets.size()))), sets.size(), worst);
  return failed ? 1 : 0;
}

}  // namespace

Action add_verify(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->request.model, "ONNX model")->required();
  app.add_option("--data", o->data, "folder with test_data_set_K; default: the model's folder");
  app.add_option("--target", o->request.target, "where to run: native, or a target under QEMU")
      ->capture_default_str();
  app.add_option("--emit", o->emit, "lib or c")->capture_default_str();
  app.add_flag("--evaluator", o->evaluator, "evaluate the imported graph instead of compiling it");
  app.add_option("--rtol", o->rtol, "relative tolerance")->capture_default_str();
  app.add_option("--atol", o->atol, "absolute tolerance")->capture_default_str();
  app.add_option("--dim", o->dims, "size of a symbolic dimension: N=8, or a range: N=1..8");
  return [o] { return run(*o); };
}

}  // namespace backcast
