// backcast opt FILE.ir --passes=a,b: text in, text out.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "driver/commands.h"
#include "driver/compiler.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "passes/asked_passes.h"

namespace backcast {
namespace {

struct Options {
  std::string file, passes, target = "native", print_after;
};

/// The side file named in the first line (`constants "file"`), if any.
std::string side_file(const std::string& path, const std::string& text) {
  std::string first = text.substr(0, text.find('\n'));
  size_t begin = first.find("constants \"");
  if (begin == std::string::npos) {
    std::filesystem::path beside = std::filesystem::path(path).replace_extension(".constants");
    return std::filesystem::exists(beside) ? read_file(beside.string()) : std::string();
  }
  begin += 11;
  std::string name = first.substr(begin, first.find('"', begin) - begin);
  return read_file((std::filesystem::path(path).parent_path() / name).string());
}

/// A module or a program, whichever the passes have reached.
struct State : PipelineResult {
  std::string text() const { return lowered ? loop::print(program) : print(module); }
  void check(const std::string& after) const {
    if (lowered) {
      loop::verify(program, after);
    } else {
      verify(module, after);
    }
  }
};

int run(Options& o) {
  std::string text = read_file(o.file);
  State state;
  // Graph text has functions, loop text a program.
  state.lowered = text.rfind("program ", 0) == 0 || text.find("\nprogram ") != std::string::npos;
  try {
    if (state.lowered) {
      state.program = loop::parse_program(text, side_file(o.file, text));
    } else {
      state.module = parse_module(text, side_file(o.file, text));
    }
    state.check("parse");
  } catch (const InternalError& error) {
    // What the user wrote does not verify: their fault, not ours.
    throw CompileError(o.file + ": " + error.what());
  } catch (const CompileError& error) {
    throw CompileError(o.file + ":" + error.what());
  }
  TargetInfo target = resolve_target(o.target);
  for (const std::string& pass : split_passes(o.passes)) {
    run_pass(state, pass, target, library_name("", o.file));
    state.check(pass);
    if (o.print_after == pass || o.print_after == "all") {
      fmt::print("// after {}\n{}", pass, state.text());
    }
  }
  fmt::print("{}", state.text());
  return 0;
}

}  // namespace

Action add_opt(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("file", o->file, "graph or loop IR text")->required();
  app.add_option("--passes", o->passes, "names of passes, separated by commas");
  app.add_option("--target", o->target, "for scheduling and legalisation")->capture_default_str();
  app.add_option("--print-after", o->print_after, "also print after this pass (or all)");
  return [o] { return run(*o); };
}

}  // namespace backcast
