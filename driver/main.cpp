// backcast: the command line. Exit status 0: fine; 1: the user's input is at fault, one clear
// message says how; 2: a bug of Backcast.
#include <fmt/format.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "driver/commands.h"
#include "ir/graph/error.h"

int main(int argc, char** argv) {
  CLI::App app{"ONNX in, a small C library out that infers and learns on the device."};
  app.set_version_flag("--version", "backcast 0.1.0");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, backcast::Action>> commands;
  const auto add = [&](const char* name, const char* text, auto make) {
    CLI::App* command = app.add_subcommand(name, text);
    commands.emplace_back(command, make(*command));
  };
  add("compile", "Compile a model to a header and a library", backcast::add_compile);
  add("inspect", "Show a model's layers and memory, or what Backcast supports",
      backcast::add_inspect);
  add("run", "Run a model on this machine, compiled in process", backcast::add_run);
  add("verify", "Compare a compiled model with expected outputs, on any target",
      backcast::add_verify);
  add("gradcheck", "Hold the compiled gradient against given ones, or against differences",
      backcast::add_gradcheck);
  add("export", "Write trained weights back into an ONNX file", backcast::add_export);
  add("quantize", "Write an ONNX file that computes with 8-bit integers", backcast::add_quantize);
  add("opt", "Run passes on the text form of a module or program", backcast::add_opt);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int status = app.exit(error);
    return status == 0 ? 0 : 1;
  }
  try {
    for (const auto& [command, action] : commands) {
      if (command->parsed()) return action();
    }
    return 1;
  } catch (const backcast::CompileError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "backcast: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "backcast: internal error: {}\nThis is a bug of Backcast.\n", error.what());
    return 2;
  }
}
