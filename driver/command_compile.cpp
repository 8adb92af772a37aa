// backcast compile MODEL.onnx -o DIR
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "driver/commands.h"
#include "driver/compiler.h"
#include "driver/import_flags.h"
#include "driver/memory_size.h"
#include "driver/model_options.h"
#include "driver/progress_line.h"
#include "driver/stream_flags.h"

namespace backcast {
namespace {

struct Options {
  CompileRequest request;
  ImportFlags import_flags;
  std::vector<std::string> print_after;
  TrainingOptions training;
  std::string output = ".", emit, names = "auto", ram;
  ModelOptions model_options;
  StreamFlags stream_flags;
};

std::optional<bool> parse_names(const std::string& word) {
  if (word == "auto") return std::nullopt;
  if (word == "on" || word == "off") return word == "on";
  throw CompileError("--names " + word + ": choose one of auto, on, off");
}

CompiledModel compile_with_progress(CompileRequest request) {
  ProgressLine line(stderr);
  request.pipeline.passes.progress = [&](std::string_view text) { line.show(text); };
  return compile_model(request);
}

int run(Options& o) {
  Emit emit = parse_emit(o.emit, resolve_target(o.request.target));
  o.request.import_options = o.import_flags.options();
  o.model_options.apply_to(o.request);
  o.request.training = o.training.request();
  o.request.pipeline.passes.stream = o.stream_flags.options();
  o.request.pipeline.passes.ram = parse_ram(o.ram);
  o.request.pipeline.print_after.insert(o.print_after.begin(), o.print_after.end());
  o.request.pipeline.log = &std::cerr;
  const CompiledModel model = compile_with_progress(o.request);
  for (const std::string& note : model.imported.notes) {
    fmt::print(stderr, "{}: note: {}\n", model.model_file, note);
  }
  if (!o.request.pipeline.stop_after.empty() && emit != Emit::ir) {
    throw CompileError("--stop-after needs --emit ir: what is there is no library yet");
  }
  Files files = emit_files(model, emit, {.names = parse_names(o.names)});
  write_files(o.output, files);
  auto report = files.find(model.abi.prefix + ".report.txt");
  if (report != files.end()) fmt::print("{}", report->second);
  for (const auto& [name, bytes] : files) fmt::print("{}/{}\n", o.output, name);
  return 0;
}

}  // namespace

Action add_compile(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->request.model, "ONNX model")->required();
  app.add_option("-o,--output", o->output, "folder for the files")->capture_default_str();
  app.add_option("--name", o->request.name,
                 "prefix of every symbol; default: the model's file name");
  app.add_option("--target", o->request.target, "see `inspect --targets`")->capture_default_str();
  app.add_option("--emit", o->emit,
                 "lib, c, obj, llvm or ir; default: lib, or c for targets that have no other");
  app.add_option(
         "--names", o->names,
         "what the hooks of bc_context are told of a step beside its number in the report: "
         "on: the model's nodes, for some flash; off: nothing; auto: off on microcontrollers")
      ->capture_default_str();
  o->import_flags.add_to(app);
  o->model_options.add_to(app);
  CLI::Option* derivative =
      app.add_option("--derivative", o->request.derivatives.kinds,
                     "entry points beside run: vjp, jvp or hvp, separated by commas")
          ->delimiter(',');
  app.add_option("--wrt", o->request.derivatives.wrt,
                 "the inputs that --derivative is by, separated by commas; default: all")
      ->delimiter(',')
      ->needs(derivative);
  app.add_option("--print-after", o->print_after, "print the IR after these passes (or all)");
  app.add_option("--stop-after", o->request.pipeline.stop_after, "end after this pass (--emit ir)");
  app.add_flag("--timings", o->request.pipeline.timings, "print what each pass took");
  add_ram_option(app, o->ram);
  o->training.add(app);
  o->stream_flags.add_to(app);
  app.get_option("--train")->excludes(derivative);
  app.get_option("--stream")->excludes(derivative)->excludes(app.get_option("--train"));
  return [o] { return run(*o); };
}

}  // namespace backcast
