// Runs ONNX's node cases in one mode and compares the failures with the expected list.
//
//   node_cases --mode evaluator|llvm|c|<target> [--expected FILE] [--every N] [--filter TEXT]
//              [--update] [FOLDER]
//
// The list holds "case reason" lines; a case may fail only if it is there, and a listed case that
// passes in every mode should be taken out (--update, with the evaluator, rewrites reasons).
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "backend/llvm/host.h"
#include "driver/compare.h"
#include "tests/onnx/case_runner.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string mode = "evaluator", expected, filter, folder;
  int every = 1;
  bool update = false, verbose = false;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--mode") {
      o.mode = value();
    } else if (word == "--expected") {
      o.expected = value();
    } else if (word == "--every") {
      o.every = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--filter") {
      o.filter = value();
    } else if (word == "--update") {
      o.update = true;
    } else if (word == "--verbose") {
      o.verbose = true;
    } else {
      o.folder = word;
    }
  }
  const char* folder = std::getenv("BACKCAST_ONNX_NODES");
  if (o.folder.empty() && folder) o.folder = folder;
  return o;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class Report {
 public:
  Report(const Options& options, std::map<std::string, std::string> expected)
      : options_(options), expected_(std::move(expected)) {}

  void add(const std::string& name, const std::string& error) {
    bool listed = expected_.count(name) > 0;
    if (error.empty()) {
      ++passed_;
      if (options_.verbose) fmt::print("pass {}\n", name);
      return;
    }
    failures_[name] = reason(error);
    if (listed) {
      ++listed_;
    } else {
      ++failed_;
      fmt::print("FAIL {}: {}\n", name, first_line(error));
    }
  }

  int finish() {
    if (options_.update) {
      std::ofstream out(options_.expected);
      out << "# ONNX node cases that Backcast does not pass, each with its reason.\n";
      for (const auto& [name, error] : failures_) out << name << " " << error << "\n";
    }
    fmt::print("{} cases failed as listed\n{} passed, {} failed\n", listed_, passed_, failed_);
    return failed_ == 0 && passed_ > 0 ? 0 : 1;
  }

 private:
  /// The first line, without the folder that the cases happen to lie in.
  std::string reason(const std::string& error) const {
    std::string text = first_line(error);
    for (size_t at; (at = text.find(options_.folder + "/")) != std::string::npos;) {
      text.erase(at, options_.folder.size() + 1);
    }
    return text;
  }

  const Options& options_;
  std::map<std::string, std::string> expected_, failures_;
  int passed_ = 0, listed_ = 0, failed_ = 0;
};

std::string judge(const NodeCase& c, const std::vector<CaseResult>& results) {
  if (c.sets.empty()) return "no data sets";
  for (size_t s = 0; s < results.size(); ++s) {
    if (!results[s].error.empty()) return results[s].error;
    const ComparedOutput comparison = compare(results[s].outputs, c.sets[s].outputs);
    if (!comparison.passed) return comparison.message;
  }
  return {};
}

using Batch = std::vector<const NodeCase*>;

std::vector<std::vector<CaseResult>> run_batch(const std::string& mode, const Batch& batch) {
  if (mode == "c") return run_c_batch(batch);
  return run_device_batch(batch);
}

/// A batch that fails as a whole is cut in two until the culprit is alone.
void judge_batch(const std::string& mode, const Batch& batch, Report& report) {
  try {
    std::vector<std::vector<CaseResult>> results = run_batch(mode, batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      report.add(batch[i]->name, judge(*batch[i], results[i]));
    }
  } catch (const std::exception& error) {
    if (batch.size() == 1) {
      report.add(batch[0]->name, error.what());
      return;
    }
    int64_t half = static_cast<int64_t>(batch.size() / 2);
    judge_batch(mode, Batch(batch.begin(), batch.begin() + half), report);
    judge_batch(mode, Batch(batch.begin() + half, batch.end()), report);
  }
}

int run(const Options& o) {
  if (o.folder.empty() || !fs::is_directory(o.folder)) {
    fmt::print("no folder of node cases: set BACKCAST_ONNX_NODES\n");
    return 77;
  }
  std::map<std::string, std::string> expected = read_case_list(o.expected);
  Report report(o, expected);
  bool evaluator = o.mode == "evaluator", llvm = o.mode == "llvm";
  TargetInfo target;
  if (!evaluator) target = llvm || o.mode == "c" ? host_target() : resolve_target(o.mode);
  size_t batch_size = o.mode == "c" ? 400 : 60;
  std::vector<std::unique_ptr<NodeCase>> pending;
  const auto flush = [&] {
    Batch batch;
    for (const auto& c : pending) batch.push_back(c.get());
    if (!batch.empty()) judge_batch(o.mode, batch, report);
    pending.clear();
  };
  int number = 0;
  for (const fs::path& folder : find_cases(o.folder)) {
    std::string name = folder.filename().string();
    if (!o.filter.empty() && name.find(o.filter) == std::string::npos) continue;
    // On devices only cases that should pass are worth an image.
    if (o.every > 1 && (expected.count(name) || number++ % o.every != 0)) continue;
    auto c = std::make_unique<NodeCase>(load_case(folder, evaluator ? nullptr : &target));
    if (!c->error.empty()) {
      report.add(name, c->error);
    } else if (evaluator || llvm) {
      std::vector<CaseResult> results;
      for (const DataSet& set : c->sets) {
        results.push_back(evaluator ? run_evaluator(*c, set) : run_llvm(*c, set));
      }
      report.add(name, judge(*c, results));
    } else {
      pending.push_back(std::move(c));
      if (pending.size() == batch_size) flush();
    }
  }
  flush();
  return report.finish();
}

}  // namespace
}  // namespace backcast

int main(int argc, char** argv) { return backcast::run(backcast::parse(argc, argv)); }
