// See model_options.h.
#include "driver/model_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "ir/graph/error.h"

namespace backcast {
namespace {

WinogradMode parse_winograd(const std::string& word) {
  static const std::map<std::string, WinogradMode> words{{"off", WinogradMode::off},
                                                         {"auto", WinogradMode::automatic},
                                                         {"on", WinogradMode::on},
                                                         {"f2", WinogradMode::f2},
                                                         {"f4", WinogradMode::f4}};
  const auto found = words.find(word);
  if (found != words.end()) return found->second;
  throw CompileError("--winograd " + word + ": choose one of off, auto, on, f2, f4");
}

std::string winograd_help() {
  return fmt::format(
      "3x3 convolutions and their gradients with fewer multiplications: off; auto: per layer, "
      "where a cost model finds it faster, on microcontrollers only where the arena does not grow; "
      "on: wherever possible; f2, f4: in that form. A layer's error stays below {} of its largest "
      "result; that of a quantised layer on a microcontroller is zero",
      kWinogradBound);
}

std::string threads_help() {
  return "threads that the caller's parallel_for will have; any number without this option. 1: no "
         "call is cut in pieces, so that results may lie partly over their operands: less memory. "
         "Nor need single examples of a batch be large to go one by one. Several: operands are "
         "rearranged whole instead of in parts, and layers that --winograd transforms are cut in "
         "as many parts as the threads share out evenly, each with memory of its own: more memory, "
         "more to share out. The results are the same for any number";
}

bool parse_auto(const std::string& option, const std::string& word) {
  if (word == "auto" || word == "off") return word == "auto";
  throw CompileError(option + " " + word + ": choose one of off, auto");
}

std::string bands_help() {
  return "chains of layers some rows, or one example, at a time, so that no tensor within them "
         "exists as a whole; auto: on hosts where that saves time, on microcontrollers where the "
         "RAM it saves is worth its code; off: nowhere. --ram makes what it needs in any case";
}

std::string skip_zeros_help() {
  return "products and convolutions behind a rectifier leave out what a zero is multiplied by: "
         "auto: where that is faster once half of the factors are zero; off: nowhere, so that a "
         "run's time does not depend on its input";
}

std::string input_range_help() {
  return fmt::format(
      "what the inputs are promised to lie within: LOW,HIGH or NAME=LOW,HIGH for one of them; "
      "channels that no such input changes are left out. The others' range is {:g},{:g}; without "
      "this option nothing is promised, and only quantised networks lose channels",
      -InputBounds::kDefault, InputBounds::kDefault);
}

}  // namespace

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("--winograd", winograd_, winograd_help())->capture_default_str();
  app.add_option("--threads", threads_, threads_help())->check(CLI::Range(1, 64));
  app.add_option("--skip-zeros", skip_zeros_, skip_zeros_help())->capture_default_str();
  app.add_option("--bands", bands_, bands_help())->capture_default_str();
  app.add_option("--input-range", ranges_, input_range_help())->allow_extra_args(false);
}

void ModelOptions::apply_to(CompileRequest& request) const {
  PipelineOptions& pipeline = request.pipeline;
  pipeline.passes.winograd.mode = parse_winograd(winograd_);
  pipeline.passes.winograd.threads = pipeline.passes.schedule.threads = threads_.value_or(1);
  request.one_thread = threads_ == 1;
  pipeline.passes.schedule.skip_zeros = parse_auto("--skip-zeros", skip_zeros_);
  pipeline.passes.bands = parse_auto("--bands", bands_);
  if (!ranges_.empty()) pipeline.passes.inputs = parse_input_bounds(ranges_);
}

}  // namespace backcast
