// backcast verify MODEL.onnx --data DIR: expected outputs against compiled ones.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "driver/commands.h"
#include "driver/compare.h"
#include "driver/compiler.h"
#include "driver/data_set.h"
#include "driver/device.h"
#include "driver/import_flags.h"
#include "driver/model_options.h"
#include "driver/stream_feed.h"
#include "driver/stream_flags.h"
#include "passes/graph/differentiate.h"

namespace backcast {

namespace fs = std::filesystem;

namespace {

struct Options {
  CompileRequest request;
  ImportFlags import_flags;
  std::string data, emit;
  bool evaluator = false;
  Tolerance tolerance;
  ModelOptions model_options;
  StreamFlags stream_flags;
};

using Results = std::vector<std::vector<Literal>>;  // per data set

Results evaluate_all(const Options& o, const std::vector<DataSet>& sets) {
  ImportOptions options = o.request.import_options;
  options.differentiator = add_vjp;
  return with_file_named(o.request.model, [&] {
    const ImportedModel model = import_model(o.request.model, options);
    Results results;
    for (const DataSet& set : sets) {
      results.push_back(evaluate_main(model.module, remaining_inputs(set, model)));
    }
    return results;
  });
}

/// Of the two forms that can be run.
Emit form_of(const Options& o) {
  const Emit emit = parse_emit(o.emit, resolve_target(o.request.target));
  if (emit != Emit::lib && emit != Emit::c)
    throw CompileError("verify takes --emit lib or --emit c");
  return emit;
}

/// The outputs of all calls, in order.
Results call_all(DeviceImage& image, const std::vector<DeviceCall>& calls) {
  Results results;
  for (DeviceReply& reply : image.run(calls)) {
    if (reply.status != 0)
      throw CompileError(fmt::format("the library answered status {}", reply.status));
    if (!reply.findings.empty()) throw InternalError("the library " + reply.findings);
    results.push_back(std::move(reply.outputs));
  }
  return results;
}

Results run_all(const CompiledModel& model, Emit emit, std::vector<DataSet>& sets) {
  DeviceImage image({&model}, emit);
  std::vector<DeviceCall> calls;
  for (const DataSet& set : sets) {
    calls.push_back({0, remaining_inputs(set, model.imported), 0xFF});
  }
  return call_all(image, calls);
}

/// Every set is a stream of its own; of what is expected stays what a stream gives.
Results stream_all(const CompiledModel& model, Emit emit, std::vector<DataSet>& sets) {
  DeviceImage image({&model}, emit);
  Results results;
  for (DataSet& set : sets) {
    const StreamFeed feed(model.result.notes.stream, remaining_inputs(set, model.imported));
    std::vector<DeviceCall> calls;
    const bool keeps = model.abi.state.bytes > 0;
    if (keeps) calls.push_back({0, {Literal::scalar(ElementType::u64, 0)}, 0xFF, "init"});
    for (int64_t i = 0; i < feed.calls(); ++i) calls.push_back({0, feed.inputs(i), 0xFF});
    Results outputs = call_all(image, calls);
    if (keeps) outputs.erase(outputs.begin());
    results.push_back(feed.joined(outputs));
    set.outputs = feed.given(set.outputs);
  }
  return results;
}

int run(Options& o) {
  o.request.import_options = o.import_flags.options();
  o.model_options.apply_to(o.request);
  o.request.pipeline.passes.stream = o.stream_flags.options();
  const fs::path model(o.request.model);
  const std::string folder = o.data.empty() ? model.parent_path().string() : o.data;
  std::vector<DataSet> sets = read_data_sets(folder);
  if (sets.empty())
    throw CompileError(folder + ": no test_data_set_0 with input_0.pb and output_0.pb");
  with_file_named(o.request.model,
                  [&] { add_shapes(sets, o.request.model, o.request.import_options); });
  std::string judged = "evaluator";
  Results results;
  if (o.evaluator) {
    results = evaluate_all(o, sets);
  } else {
    const Emit emit = form_of(o);
    judged = fmt::format("{}, {}", o.request.target, emit == Emit::c ? "c" : "lib");
    const CompiledModel compiled = compile_model(o.request);
    results = (o.request.pipeline.passes.stream ? stream_all : run_all)(compiled, emit, sets);
  }
  size_t passed = 0;
  double worst = 0;
  for (size_t s = 0; s < sets.size(); ++s) {
    const ComparedOutput c = compare(results[s], sets[s].outputs, o.tolerance);
    worst = std::max(worst, c.worst);
    passed += c.passed;
    if (!c.passed) fmt::print("{}: {}\n", sets[s].name, c.message);
  }
  fmt::print("{}: {} ({}): {} of {} data sets; largest error {:.3g} of the tolerance\n",
             passed == sets.size() ? "passed" : "FAILED", model.filename().string(), judged, passed,
             sets.size(), worst);
  return passed == sets.size() ? 0 : 1;
}

}  // namespace

Action add_verify(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->request.model, "ONNX model")->required();
  app.add_option("--data", o->data, "folder with test_data_set_K; default: the model's folder");
  app.add_option("--target", o->request.target, "where to run: native, or a target under QEMU")
      ->capture_default_str();
  app.add_option("--emit", o->emit, "lib or c; default: lib, or c for targets that have no other");
  app.add_flag("--evaluator", o->evaluator, "evaluate the imported graph instead of compiling it");
  app.add_option("--rtol", o->tolerance.relative, "relative tolerance")->capture_default_str();
  app.add_option("--atol", o->tolerance.absolute, "absolute tolerance")->capture_default_str();
  app.add_option(
         "--steps", o->tolerance.steps,
         "by how much integers of 8 bits may differ: how quantised results round depends on "
         "the order of what leads to them")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  o->model_options.add_to(app);
  o->stream_flags.add_to(app);
  app.get_option("--stream")->excludes(app.get_option("--evaluator"));
  o->import_flags.add_to(app);
  return [o] { return run(*o); };
}

}  // namespace backcast
