// backcast run MODEL.onnx --input x.npy -o DIR: just-in-time on this machine.
#include <fmt/format.h>

#include <memory>

#include "driver/commands.h"
#include "driver/compiler.h"
#include "driver/import_flags.h"
#include "driver/input_files.h"
#include "driver/model_options.h"
#include "driver/npy.h"
#include "driver/running_model.h"
#include "driver/stream_flags.h"
#include "frontend/onnx_tensors.h"

namespace backcast {
namespace {

struct Options {
  CompileRequest request;
  ImportFlags import_flags;
  std::vector<std::string> inputs;
  std::string output;
  bool pb = false;
  ModelOptions model_options;
  StreamFlags stream_flags;
};

int run(Options& o) {
  ImportOptions& options = o.request.import_options = o.import_flags.options();
  o.model_options.apply_to(o.request);
  o.request.pipeline.passes.stream = o.stream_flags.options();
  const std::vector<std::string> names =
      with_file_named(o.request.model, [&] { return input_names(o.request.model, options); });
  std::vector<Literal> inputs = read_inputs("--input", o.inputs, names);
  for (size_t i = 0; i < names.size(); ++i) options.shapes[names[i]] = {inputs[i].shape()};
  const RunningModel model(o.request);
  const std::vector<Literal> outputs = model.run(inputs);
  Files files;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.output_names()[i];
    fmt::print("{}: {}", name, to_string(outputs[i].type()));
    for (int64_t k = 0; k < std::min<int64_t>(outputs[i].element_count(), 10); ++k) {
      fmt::print("{}{}", k ? " " : " = ", outputs[i].as_double(k));
    }
    fmt::print("{}\n", outputs[i].element_count() > 10 ? " …" : "");
    if (!o.pb) files[sanitize(name) + ".npy"] = npy_bytes(outputs[i]);
  }
  if (o.output.empty()) return 0;
  write_files(o.output, files);
  for (size_t i = 0; o.pb && i < outputs.size(); ++i) {
    const std::string& name = model.output_names()[i];
    write_tensor_pb(o.output + "/" + sanitize(name) + ".pb", name, outputs[i]);
  }
  return 0;
}

}  // namespace

Action add_run(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->request.model, "ONNX model")->required();
  app.add_option("--input", o->inputs, "FILE or NAME=FILE, .npy or .pb, in the model's order");
  app.add_option("-o,--output", o->output, "folder for the outputs");
  app.add_flag("--pb", o->pb, "write ONNX .pb tensors instead of .npy");
  o->model_options.add_to(app);
  o->stream_flags.add_to(app);
  o->import_flags.add_to(app);
  return [o] { return run(*o); };
}

}  // namespace backcast
