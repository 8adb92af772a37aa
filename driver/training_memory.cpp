// See training_memory.h. What is saved is asked of the graph before it is lowered, memory of the
// planned program, after fusion and recomputation.
#include "driver/training_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/library/report.h"
#include "passes/train/saved_values.h"

namespace backcast {
namespace {

std::string trained_text(const Module& module) {
  std::string text = "trained\n";
  int64_t elements = 0;
  for (const StateVariable& state : module.states) {
    if (state.role != StateRole::parameter) continue;
    elements += state.initial.element_count();
    const std::string part =
        state.slice_axis < 0
            ? ""
            : fmt::format(", from {} along axis {}", state.slice_start, state.slice_axis);
    text += fmt::format("  {} {}{}\n", state.name, to_string(state.initial.type()), part);
  }
  return text + fmt::format("  {} numbers in all\n", elements);
}

std::string state_text(const Report& report) {
  std::map<std::string, int64_t> bytes;
  int64_t sum = 0;
  for (const ReportState& state : report.state) {
    bytes[state.role] += state.bytes;
    sum += state.bytes;
  }
  std::string text = fmt::format("\nstate {} bytes\n", report.state_bytes);
  for (const auto& [role, count] : bytes) text += fmt::format("{:>12}  {}\n", count, role);
  return text + fmt::format("{:>12}  header and alignment\n", report.state_bytes - sum);
}

/// Layers in the order in which they compute.
std::string saved_text(const Module& module) {
  std::vector<std::pair<std::string, std::vector<SavedValue>>> layers;
  int64_t sum = 0;
  for (const SavedValue& value : saved_values(module)) {
    const std::string layer = value.layer.op_type.empty()
                                  ? value.layer.node
                                  : fmt::format("{} ({})", value.layer.node, value.layer.op_type);
    const auto found = std::find_if(layers.begin(), layers.end(),
                                    [&](const auto& each) { return each.first == layer; });
    (found == layers.end() ? layers.emplace_back(layer, std::vector<SavedValue>()) : *found)
        .second.push_back(value);
    sum += value.bytes;
  }
  std::string text = "\nsaved for the backward pass, before what is recomputed\n";
  for (const auto& [layer, values] : layers) {
    for (size_t i = 0; i < values.size(); ++i) {
      text += fmt::format("{:>12}  {} {}  {}\n", values[i].bytes, to_string(values[i].type),
                          values[i].op, i == 0 ? layer : "\"");
    }
  }
  return text + fmt::format("{:>12}  in all\n", sum);
}

std::string peak_text(const Report& report) {
  std::string text = fmt::format("\narena {} bytes, lower bound {} bytes\n", report.arena_bytes,
                                 report.arena_bound);
  if (!report.recomputation.empty()) text += report.recomputation + "\n";
  for (const ReportEntry& entry : report.entries) {
    if (!entry.name.ends_with("train_step") || entry.steps.empty()) continue;
    const ReportStep& peak = *std::max_element(
        entry.steps.begin(), entry.steps.end(),
        [](const ReportStep& a, const ReportStep& b) { return a.live_bytes < b.live_bytes; });
    std::string nodes;
    for (const std::string& node : peak.nodes) nodes += (nodes.empty() ? "" : ", ") + node;
    text += fmt::format("peak of train_step {} bytes, in step {} of {}: {}\n", peak.live_bytes,
                        peak.number - entry.steps[0].number, entry.steps.size(), nodes);
    std::vector<ReportBuffer> live = peak.live;
    std::stable_sort(live.begin(), live.end(), [](const ReportBuffer& a, const ReportBuffer& b) {
      return a.bytes > b.bytes;
    });
    for (const ReportBuffer& buffer : live) {
      text += fmt::format("{:>12}  {} {}\n", buffer.bytes, buffer.name, buffer.type);
    }
  }
  return text;
}

}  // namespace

std::string training_memory(const CompileRequest& request) {
  CompileRequest graph = request;
  graph.pipeline.stop_after = "keep_positions";
  const Module module = compile_model(graph).result.module;
  const CompiledModel compiled = compile_model(request);
  ReportOptions options;
  options.recomputation = compiled.result.notes.recomputation;
  const Report report = report_of(compiled.result.program, options);
  return trained_text(module) + state_text(report) + saved_text(module) + peak_text(report);
}

}  // namespace backcast
