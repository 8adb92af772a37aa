// The report as a table and as JSON (report.h).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/library/report.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

using Json = nlohmann::ordered_json;

/// 1234567 as "1,234,567".
std::string grouped(int64_t value) {
  std::string digits = fmt::format("{}", value < 0 ? -value : value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return value < 0 ? "-" + digits : digits;
}

/// Rows of cells; numbers to the right, the last column as it is.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const {
    std::vector<size_t> widths(rows_[0].size());
    for (const std::vector<std::string>& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string result;
    for (const std::vector<std::string>& row : rows_) {
      for (size_t i = 0; i + 1 < row.size(); ++i) {
        result += fmt::format("{:>{}}  ", row[i], widths[i]);
      }
      result += row.back() + "\n";
    }
    return result;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string joined(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

std::string summary(const Report& report) {
  std::string text = report.name;
  if (!report.model_file.empty()) text += " from " + report.model_file;
  text += fmt::format(" for {}, Backcast {}\n\n", report.target, report.version);
  const auto line = [&](const char* what, int64_t bytes, const std::string& note) {
    text += fmt::format("{:<10}{:>14} bytes{}\n", what, grouped(bytes),
                        note.empty() ? "" : "  " + note);
  };
  line("RAM", report.arena_bytes,
       fmt::format("arena, aligned to {}; lower bound {}", report.arena_alignment,
                   grouped(report.arena_bound)));
  for (const std::string& note : {report.examples, report.bands, report.recomputation}) {
    if (!note.empty()) text += fmt::format("{:<10}{}\n", "", note);
  }
  if (report.state_bytes > 0) {
    line("state", report.state_bytes,
         fmt::format("kept by the caller, aligned to {}", report.state_alignment));
  }
  std::string parts = "constants; the compiler adds the code";
  if (report.code_bytes) {
    parts = fmt::format("{} constants, {} code", grouped(report.weight_bytes),
                        grouped(*report.code_bytes));
    if (report.table_bytes > 0) parts += fmt::format(", {} tables", grouped(report.table_bytes));
  }
  line("flash", report.weight_bytes + report.code_bytes.value_or(0) + report.table_bytes, parts);
  if (report.stack_bytes) line("stack", *report.stack_bytes, "");
  text += fmt::format("{:<10}{:>14}\n", "parameters", grouped(report.parameters));
  if (report.dropped_channels > 0) {
    text +=
        fmt::format("{:<10}{:>14} channels that no input changes, of {} multiply-accumulates{}{}\n",
                    "dropped", grouped(report.dropped_channels), grouped(report.macs_before),
                    report.promise.empty() ? "" : "; ", report.promise);
  }
  for (size_t i = 0; i < report.stream.size(); ++i) {
    text += fmt::format("{:<10}{}\n", i == 0 ? "stream" : "", report.stream[i]);
  }
  if (report.macs_whole > 0) {
    text += fmt::format("{:<10}takes {} multiply-accumulates, the whole model {}\n", "",
                        grouped(report.entries[0].macs), grouped(report.macs_whole));
  }
  if (!report.skips_zeros.empty()) {
    text += fmt::format(
        "{:<10}{:>14} products leave out factors of zero: the time depends on the input\n",
        "skipped", report.skips_zeros.size());
  }
  return text;
}

std::string entry_table(const Report& report, const ReportEntry& entry) {
  int64_t shared = 0;
  for (const ReportStep& step : entry.steps) shared += step.is_shared ? step.macs : 0;
  std::string text = fmt::format("\n{}_{}: {} multiply-accumulates in {} steps", report.name,
                                 entry.name, grouped(entry.macs), entry.steps.size());
  if (shared > 0) {
    text += fmt::format("; a parallel_for shares out {:.0f} % of them",
                        100 * static_cast<double>(shared) / static_cast<double>(entry.macs));
  }
  text += "\n\n";
  std::vector<std::string> head{"step", "MACs", "weights", "live RAM", "kernel: nodes"};
  if (report.code_bytes) head.insert(head.begin() + 3, "code");
  Table steps(head);
  for (const ReportStep& step : entry.steps) {
    std::vector<std::string> row{fmt::format("{}", step.number), grouped(step.macs),
                                 grouped(step.weight_bytes), grouped(step.live_bytes),
                                 step.kernel + ": " + joined(step.nodes)};
    const std::string code = step.code_bytes > 0 ? grouped(step.code_bytes) : "";
    if (report.code_bytes) row.insert(row.begin() + 3, code);
    steps.add(std::move(row));
  }
  text += steps.text();
  if (entry.lifetimes.empty()) return text;
  text += "\nMemory, in order of time\n\n";
  Table memory({"steps", "offset", "bytes", "buffer"});
  for (const ReportLifetime& life : entry.lifetimes) {
    memory.add({fmt::format("{}..{}", life.first, life.last), grouped(life.buffer.offset),
                grouped(life.buffer.bytes), life.buffer.name + " " + life.buffer.type});
  }
  return text + memory.text();
}

std::string winograd_table(const Report& report) {
  if (report.winograd.empty()) return "";
  Table rows({"form", "error", "direct error", "weights", "scratch", "3x3 convolution"});
  for (const ReportWinograd& layer : report.winograd) {
    const bool direct = layer.tile == 0, exact = layer.error == 0 && layer.direct_error == 0;
    rows.add({direct ? "direct" : fmt::format("F({0}x{0})", layer.tile),
              direct  ? ""
              : exact ? "exact"
                      : fmt::format("{:.1e}", layer.error),
              direct || exact ? "" : fmt::format("{:.1e}", layer.direct_error),
              direct ? "" : grouped(layer.weight_bytes), direct ? "" : grouped(layer.scratch_bytes),
              layer.node});
  }
  return "\nMinimal filtering (Winograd); errors relative to the largest result\n\n" + rows.text();
}

std::string state_table(const Report& report) {
  if (report.state.empty()) return "";
  Table rows({"offset", "bytes", "role", "state"});
  for (const ReportState& v : report.state) {
    rows.add({grouped(v.offset), grouped(v.bytes), v.role, v.name + " " + v.type});
  }
  return "\n" + rows.text();
}

Json buffer_json(const ReportBuffer& buffer) {
  Json json = {{"name", buffer.name},
               {"type", buffer.type},
               {"storage", buffer.storage},
               {"bytes", buffer.bytes}};
  if (!buffer.access.empty()) json["access"] = buffer.access;
  if (buffer.offset >= 0) json["offset"] = buffer.offset;
  return json;
}

Json buffers_json(const std::vector<ReportBuffer>& buffers) {
  Json json = Json::array();
  for (const ReportBuffer& buffer : buffers) json.push_back(buffer_json(buffer));
  return json;
}

Json entry_json(const ReportEntry& entry) {
  Json steps = Json::array(), memory = Json::array();
  for (const ReportStep& step : entry.steps) {
    steps.push_back({{"number", step.number},
                     {"name", step.name},
                     {"kernel", step.kernel},
                     {"nodes", step.nodes},
                     {"macs", step.macs},
                     {"weight_bytes", step.weight_bytes},
                     {"code_bytes", step.code_bytes},
                     {"live_bytes", step.live_bytes},
                     {"shared", step.is_shared},
                     {"operands", buffers_json(step.operands)},
                     {"live", buffers_json(step.live)}});
  }
  for (const ReportLifetime& life : entry.lifetimes) {
    Json buffer = buffer_json(life.buffer);
    buffer["first_step"] = life.first;
    buffer["last_step"] = life.last;
    memory.push_back(std::move(buffer));
  }
  return {{"name", entry.name}, {"macs", entry.macs}, {"steps", steps}, {"memory", memory}};
}

}  // namespace

std::string report_text(const Report& report) {
  std::string text = summary(report);
  text += state_table(report);
  text += winograd_table(report);
  for (const ReportEntry& entry : report.entries) text += entry_table(report, entry);
  return text;
}

std::string report_json(const Report& report) {
  Json json = {{"schema", kReportSchema},
               {"name", report.name},
               {"model", report.model_file},
               {"target", report.target},
               {"backcast", report.version},
               {"arena_bytes", report.arena_bytes},
               {"arena_bound", report.arena_bound},
               {"arena_alignment", report.arena_alignment},
               {"weight_bytes", report.weight_bytes},
               {"parameters", report.parameters}};
  if (report.state_bytes > 0) {
    json["state_bytes"] = report.state_bytes;
    json["state_alignment"] = report.state_alignment;
    for (const ReportState& v : report.state) {
      json["state"].push_back({{"name", v.name},
                               {"role", v.role},
                               {"type", v.type},
                               {"offset", v.offset},
                               {"bytes", v.bytes}});
    }
  }
  if (report.dropped_channels > 0) {
    json["dropped_channels"] = report.dropped_channels;
    json["macs_before"] = report.macs_before;
    json["promise"] = report.promise;
  }
  if (report.code_bytes) {
    json["code_bytes"] = *report.code_bytes;
    json["table_bytes"] = report.table_bytes;
  }
  if (report.stack_bytes) json["stack_bytes"] = *report.stack_bytes;
  for (const ReportWinograd& layer : report.winograd) {
    Json row = {{"node", layer.node}, {"tile", layer.tile}};
    if (layer.tile > 0) {
      row["error"] = layer.error;
      row["direct_error"] = layer.direct_error;
      row["weight_bytes"] = layer.weight_bytes;
      row["scratch_bytes"] = layer.scratch_bytes;
    }
    json["winograd"].push_back(std::move(row));
  }
  if (!report.skips_zeros.empty()) json["skips_zeros"] = report.skips_zeros;
  if (!report.examples.empty()) json["examples"] = report.examples;
  if (!report.bands.empty()) json["bands"] = report.bands;
  if (!report.stream.empty()) {
    json["stream"] = report.stream;
    if (report.macs_whole > 0) json["macs_whole"] = report.macs_whole;
  }
  if (!report.recomputation.empty()) json["recomputation"] = report.recomputation;
  Json entries = Json::array();
  for (const ReportEntry& entry : report.entries) entries.push_back(entry_json(entry));
  json["entries"] = entries;
  // Names come from the model: what is no UTF-8 is replaced instead of refused.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace backcast
