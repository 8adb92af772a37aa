// See report.h.
#include "backend/library/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/graph/error.h"
#include "ir/loop/liveness.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;

const char* name_of(BufferClass kind) {
  constexpr const char* kNames[] = {"constant", "state", "input", "output", "arena"};
  return kNames[static_cast<size_t>(kind)];
}

const char* name_of(loop::AccessMode mode) {
  constexpr const char* kNames[] = {"read", "write", "update"};
  return kNames[static_cast<size_t>(mode)];
}

/// A place as the report shows it: views have the offset of their own where it is constant.
ReportBuffer describe(const loop::Program& program, BufferId id) {
  const Buffer& buffer = program.buffer(id);
  const BufferId owner_id = program.owner(id);
  const Buffer& owner = program.buffer(owner_id);
  ReportBuffer result;
  result.name = buffer.name;
  result.type = to_string(TensorType{buffer.element, buffer.shape});
  result.storage = name_of(owner.kind);
  result.bytes = program.storage_bytes(id);
  if (owner.kind != BufferClass::arena) return result;
  result.offset = owner.offset;
  for (BufferId at = id; program.buffer(at).view_of >= 0; at = program.buffer(at).view_of) {
    const Buffer& view = program.buffer(at);
    if (view.view_offset.is_constant()) {
      result.offset += view.view_offset.constant() * byte_size(view.element);
    }
  }
  return result;
}

struct Interval {
  size_t first = 0, last = 0;
};

/// First and last step over which each arena buffer (with its views) lives.
std::map<BufferId, Interval> lifetimes(const loop::Program& program,
                                       const loop::EntryPoint& entry) {
  const std::vector<loop::LiveRange> ranges = loop::live_ranges(program, entry);
  std::map<BufferId, Interval> result;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (program.buffers[i].kind != BufferClass::arena || ranges[i].first > ranges[i].last) continue;
    result[static_cast<BufferId>(i)] = {static_cast<size_t>(ranges[i].first),
                                        static_cast<size_t>(ranges[i].last)};
  }
  return result;
}

/// Bytes of the union of places: what overlays another counts once.
int64_t covered_bytes(const std::vector<ReportBuffer>& by_offset) {
  int64_t bytes = 0, end = 0;
  for (const ReportBuffer& buffer : by_offset) {
    const int64_t stop = buffer.offset + buffer.bytes;
    bytes += std::max<int64_t>(0, stop - std::max(end, buffer.offset));
    end = std::max(end, stop);
  }
  return bytes;
}

/// The nodes among `locs` that a step is named after, each once: those of other steps that share
/// the kernel are left out.
std::vector<std::string> node_names(const std::vector<Loc>& locs, const std::string& step_name) {
  const std::string of_step = "+" + step_name + "+";
  std::vector<std::string> names;
  for (const Loc& loc : locs) {
    if (loc.empty() || of_step.find("+" + loc.node + "+") == std::string::npos) continue;
    std::string name =
        loc.op_type.empty() ? loc.node : fmt::format("{} ({})", loc.node, loc.op_type);
    if (loc.origin == Origin::adjoint_of) name += " adjoint";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

ReportStep step_report(const loop::Program& program, const loop::Step& step, const StepAbi& abi) {
  ReportStep result;
  result.number = abi.number;
  result.name = abi.name;
  const bool is_call = step.kind == loop::StepKind::call;
  const loop::Kernel* kernel = is_call ? &program.kernels.at(step.kernel) : nullptr;
  constexpr std::string_view kKinds[] = {"", "copy", "loop", "branch", "check_finite"};
  result.kernel = is_call ? step.kernel : kKinds[static_cast<size_t>(step.kind)];
  result.macs = is_call ? kernel->macs : 0;
  result.is_shared = is_call && step.grain > 0;
  result.nodes = node_names(is_call ? kernel->locs : std::vector<Loc>{step.loc}, abi.name);
  std::set<BufferId> weights;
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    if (step.buffers[i] < 0) continue;
    ReportBuffer operand = describe(program, step.buffers[i]);
    const bool is_written = step.kind == loop::StepKind::copy && i == 1;
    operand.access = is_call ? name_of(kernel->buffers.at(i).mode) : is_written ? "write" : "read";
    const BufferId owner = program.owner(step.buffers[i]);
    if (program.buffer(owner).kind == BufferClass::constant && weights.insert(owner).second) {
      result.weight_bytes += program.storage_bytes(owner);
    }
    result.operands.push_back(std::move(operand));
  }
  return result;
}

/// `code`: of the kernels that no step before calls.
ReportEntry entry_report(const loop::Program& program, const loop::EntryPoint& entry,
                         const EntryAbi& abi, std::map<std::string, int64_t>& code) {
  ReportEntry result;
  result.name = entry.name;
  const std::map<BufferId, Interval> intervals = lifetimes(program, entry);
  const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
  const std::vector<int64_t> runs = loop::runs_of_steps(program, entry);
  for (size_t i = 0; i < steps.size(); ++i) {
    ReportStep step = step_report(program, *steps[i], abi.steps[i]);
    step.macs *= runs[i];
    if (steps[i]->kind == loop::StepKind::call)
      step.code_bytes = std::exchange(code[step.kernel], 0);
    for (const auto& [id, interval] : intervals) {
      if (interval.first <= i && i <= interval.last) step.live.push_back(describe(program, id));
    }
    std::stable_sort(
        step.live.begin(), step.live.end(),
        [](const ReportBuffer& a, const ReportBuffer& b) { return a.offset < b.offset; });
    step.live_bytes = covered_bytes(step.live);
    result.macs += step.macs;
    result.steps.push_back(std::move(step));
  }
  for (const auto& [id, interval] : intervals) {
    result.lifetimes.push_back(
        {describe(program, id), abi.steps[interval.first].number, abi.steps[interval.last].number});
  }
  std::stable_sort(result.lifetimes.begin(), result.lifetimes.end(),
                   [](const ReportLifetime& a, const ReportLifetime& b) {
                     return std::pair(a.first, a.buffer.offset) <
                            std::pair(b.first, b.buffer.offset);
                   });
  return result;
}

}  // namespace

Report report_of(const loop::Program& program, const ReportOptions& options) {
  const Abi abi = abi_of(program);
  Report report;
  report.name = program.name;
  report.model_file = options.model_file;
  report.target = options.target;
  report.version = options.version;
  report.winograd = options.winograd;
  report.skips_zeros = options.skips_zeros;
  report.arena_bytes = program.arena_bytes;
  report.arena_bound = program.arena_bound;
  report.arena_alignment = abi.arena_alignment;
  report.weight_bytes = abi.weight_bytes;
  report.code_bytes = options.code_bytes;
  report.table_bytes = options.table_bytes;
  report.dropped_channels = options.dropped_channels;
  report.macs_before = options.macs_before;
  report.promise = options.promise;
  report.stream = options.stream;
  report.macs_whole = options.macs_whole;
  report.stack_bytes = options.stack_bytes;
  report.examples = options.examples;
  report.bands = options.bands;
  report.recomputation = options.recomputation;
  for (const loop::BufferId id : linked_constants(program)) {
    if (program.buffer(id).kind == BufferClass::state) continue;
    report.parameters += program.buffer(id).value.element_count();
  }
  report.parameters += abi.state.parameter_count;
  report.state_bytes = abi.state.bytes;
  report.state_alignment = abi.state.alignment;
  for (const StateVariableAbi& v : abi.state.variables) {
    const Buffer& buffer = program.buffer(v.buffer);
    report.state.push_back({buffer.name, std::string(enum_name(buffer.role)),
                            to_string(TensorType{buffer.element, loop::model_shape(buffer)}),
                            v.offset, v.bytes});
  }
  std::map<std::string, int64_t> code = options.kernel_bytes;
  for (size_t i = 0; i < program.entries.size(); ++i) {
    report.entries.push_back(entry_report(program, program.entries[i], abi.entries[i], code));
  }
  return report;
}

}  // namespace backcast
