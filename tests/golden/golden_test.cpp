// Passes tested as text: golden_test [--update] FOLDER. Every FOLDER/<pass>/*.ir holds its command,
// the input and the full expected output (README.md); --update rewrites what is expected.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ir/graph/error.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "passes/pipeline.h"

namespace backcast {
namespace {

constexpr std::string_view kRun = "// RUN:";
constexpr std::string_view kSeparator = "// ----\n";
constexpr std::string_view kDefaultTarget = "x86-64-v3";

struct Case {
  std::string head, input, expected;  // head: the comments in front, with the command
  std::vector<std::string> passes;
  std::string target{kDefaultTarget};
};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// CompileError when the file has no command or no separator.
Case parse_case(const std::string& text) {
  Case c;
  std::istringstream lines(text);
  size_t at = 0;
  for (std::string line; std::getline(lines, line) && line.rfind("//", 0) == 0;) {
    c.head += line + "\n";
    at += line.size() + 1;
    if (line.rfind(kRun, 0) != 0) continue;
    std::istringstream words(line.substr(kRun.size()));
    for (std::string word; words >> word;) {
      if (word.rfind("target=", 0) == 0) {
        c.target = word.substr(7);
      } else {
        c.passes.push_back(word);
      }
    }
  }
  if (c.passes.empty()) throw CompileError("no line \"// RUN: pass…\" at the top");
  size_t split = text.find(kSeparator, at);
  c.input = text.substr(at, split == std::string::npos ? split : split - at);
  if (split != std::string::npos) c.expected = text.substr(split + kSeparator.size());
  return c;
}

/// What a case has reached: graph IR, from lowering on a program.
struct State : PipelineResult {
  /// Verifies and checks that the text parses to an equal thing; returns the text.
  std::string settle(const std::string& after) const {
    if (lowered) {
      loop::verify(program, after);
      std::string text = loop::print(program);
      BC_CHECK(loop::equal(loop::parse_program(text, loop::print_constants(program)), program),
               "after {}: the printed program parses to another one", after);
      return text;
    }
    verify(module, after);
    std::string text = print(module);
    BC_CHECK(equal(parse_module(text, print_constants(module)), module),
             "after {}: the printed module parses to another one", after);
    return text;
  }
};

/// The output of a case: text, or `error: …` when the input is at fault.
std::string run(const Case& c) {
  const TargetInfo* target = find_target(c.target);
  if (target == nullptr) throw CompileError("a golden test needs a target of the table");
  State state;
  state.lowered = c.input.rfind("program ", 0) == 0 || c.input.find("\nprogram ") != c.input.npos;
  std::string text;
  try {
    if (state.lowered) {
      state.program = loop::parse_program(c.input);
    } else {
      state.module = parse_module(c.input);
    }
    text = state.settle("parse");
    for (const std::string& pass : c.passes) {
      if (pass == "parse") continue;
      run_pass(state, pass, *target, "golden");
      text = state.settle(pass);
    }
  } catch (const CompileError& error) {
    return fmt::format("error: {}\n", error.what());
  }
  return text;
}

/// The first line that differs, with what is around it.
std::string difference(const std::string& expected, const std::string& actual) {
  std::istringstream a(expected), b(actual);
  std::string report, left, right;
  for (int line = 1;; ++line) {
    bool more_left = static_cast<bool>(std::getline(a, left));
    bool more_right = static_cast<bool>(std::getline(b, right));
    if (!more_left && !more_right) return "  they differ in line ends only\n";
    if (more_left && more_right && left == right) continue;
    report = fmt::format("  output line {}\n    expected: {}\n    actual:   {}\n", line,
                         more_left ? left : "(end)", more_right ? right : "(end)");
    return report + "  the whole output:\n" + actual;
  }
}

class Runner {
 public:
  explicit Runner(bool update) : update_(update) {}

  void check(const std::filesystem::path& file) {
    ++count_;
    std::string name = file.parent_path().filename() / file.filename();
    try {
      Case c = parse_case(read(file));
      std::string actual = run(c);
      bool fails = actual.rfind("error: ", 0) == 0;
      if (fails != (file.filename().string().rfind("fail_", 0) == 0)) {
        fail(name, fmt::format("  files named fail_*, and only they, end in an error\n{}", actual));
      } else if (actual != c.expected) {
        if (update_) {
          std::ofstream(file, std::ios::binary) << c.head << c.input << kSeparator << actual;
          std::cout << "rewritten: " << name << "\n";
        } else {
          fail(name, difference(c.expected, actual));
        }
      }
    } catch (const std::exception& error) {
      fail(name, fmt::format("  {}\n", error.what()));
    }
  }

  void fail(const std::string& name, const std::string& why) {
    ++failures_;
    std::cout << "FAILED: " << name << "\n" << why;
  }

  int finish() const {
    std::cout << count_ << " golden tests, " << failures_ << " failed\n";
    return failures_ == 0 && count_ > 0 ? 0 : 1;
  }

 private:
  bool update_;
  int count_ = 0, failures_ = 0;
};

/// Passes that have fewer than two cases; one that runs again has them under its first name.
std::vector<std::string> neglected(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  const auto ask = [&](const std::string& pass) {
    int64_t cases = 0;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder / pass, none)) {
      cases += entry.path().extension() == ".ir";
    }
    if (cases < 2) names.push_back(pass);
  };
  for (const std::string& pass : pass_names()) {
    if (!pass.ends_with("_again")) ask(pass);
  }
  return names;
}

int main(const std::vector<std::string>& arguments) {
  bool update = !arguments.empty() && arguments[0] == "--update";
  if (arguments.size() != (update ? 2u : 1u)) {
    std::cerr << "usage: golden_test [--update] FOLDER\n";
    return 1;
  }
  std::filesystem::path folder = arguments.back();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Runner runner(update);
  for (const std::filesystem::path& file : files) runner.check(file);
  for (const std::string& pass : neglected(folder)) {
    runner.fail(pass, "  a pass needs two cases: one that it changes and one that it must not\n");
  }
  return runner.finish();
}

}  // namespace
}  // namespace backcast

int main(int argc, char** argv) {
  try {
    return backcast::main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
