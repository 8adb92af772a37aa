// backcast export MODEL.onnx --checkpoint FILE -o OUT.onnx
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "driver/commands.h"
#include "driver/compiler.h"
#include "driver/export.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string model, checkpoint, output;
};

int run(const Options& o) {
  const std::string checkpoint = read_file(o.checkpoint);
  std::string bytes;
  try {
    bytes = export_model(o.model, checkpoint);
  } catch (const CompileError& error) {
    throw CompileError(fmt::format("{}: with checkpoint {}: {}",
                                   fs::path(o.model).filename().string(), o.checkpoint,
                                   error.what()));
  }
  const fs::path output = fs::absolute(o.output);
  write_files(output.parent_path().string(), {{output.filename().string(), std::move(bytes)}});
  fmt::print("{}\n", o.output);
  return 0;
}

}  // namespace

Action add_export(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->model, "ONNX model that a training library was compiled from")
      ->required();
  app.add_option("--checkpoint", o->checkpoint, "file of the bytes that the library's save wrote")
      ->required();
  app.add_option("-o,--output", o->output, "ONNX file to write")->required();
  return [o] { return run(*o); };
}

}  // namespace backcast
