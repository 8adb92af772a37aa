// Compiles a program in loop IR text, here a kernel of one's own, to a header and a library:
// compile_kernel FILE.ir DIR [TARGET].
#include <fmt/format.h>

#include <iostream>

#include "driver/compiler.h"
#include "ir/loop/text.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    fmt::print(stderr, "usage: compile_kernel FILE.ir DIR [TARGET]\n");
    return 1;
  }
  try {
    backcast::CompiledModel model;
    model.model_file = argv[1];
    model.model_file.erase(0, model.model_file.rfind('/') + 1);
    model.target = backcast::resolve_target(argc == 4 ? argv[3] : "native");
    backcast::PipelineOptions options;
    options.print_after = {"schedule"};
    options.log = &std::cout;
    model.result = backcast::run_pipeline(
        backcast::loop::parse_program(backcast::read_file(argv[1])), model.target, options);
    model.abi = backcast::abi_of(model.result.program);
    backcast::write_files(argv[2], backcast::emit_files(model, backcast::Emit::lib));
  } catch (const backcast::CompileError& error) {
    fmt::print(stderr, "{}: {}\n", argv[1], error.what());
    return 1;
  }
  return 0;
}
