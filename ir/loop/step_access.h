// Which storage a step touches.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Where a buffer begins in its owner's storage, in bytes, all views between them added up.
Dim byte_offset(const Program& program, BufferId id);
/// What a step itself does with operand `i` of its buffers: loops and branches read theirs.
AccessMode operand_mode(const Program& program, const Step& step, size_t i);
/// Whether the step is a loop of a constant number of trips, all of which run.
bool runs_in_full(const Step& step);
/// The owners of what a step writes (or updates), its body included. Kernels must exist.
std::set<BufferId> written_buffers(const Program& program, const Step& step);
/// The outputs that the extents a step depends on are read from (EntryPoint::extents), its body
/// included.
std::set<BufferId> extent_buffers(const Program& program, const Step& step);
/// The symbols that steps give their values: they have none on entry and are no fields of the
/// interface.
std::set<std::string> measured_symbols(const Program& program);
/// The owners of what a step reads (or updates), its extents and its body included.
std::set<BufferId> read_buffers(const Program& program, const Step& step);
/// Whether one of them is in both.
bool share_buffers(const std::set<BufferId>& a, const std::set<BufferId>& b);
/// Calls f(id) for every buffer that a step names, those of nested steps included. The step is
/// const or not, and so are the ids.
template <class AnyStep, class F>
void for_each_buffer(AnyStep& step, const F& f) {
  for (auto& id : step.buffers) {
    if (id >= 0) f(id);
  }
  for (auto& inner : step.body) for_each_buffer(inner, f);
  for (auto& inner : step.otherwise) for_each_buffer(inner, f);
}
/// Steps and outputs of entry points name others in place of these buffers.
void replace_buffers(Program& program, const std::map<BufferId, BufferId>& by);
/// Calls f(step) for every step that calls a kernel, those within steps before those around them.
template <class Steps, class F>
void for_each_call(Steps& steps, const F& f) {
  for (auto& step : steps) {
    for_each_call(step.body, f);
    for_each_call(step.otherwise, f);
    if (step.kind == StepKind::call) f(step);
  }
}
/// The positions of the parameters whose storage parameter `written` may take over
/// (BufferParam::over), in that order.
std::vector<size_t> taken_over_by(const Kernel& kernel, size_t written);
/// Takes the parameters that the kernel neither reads nor writes from it and its call.
void drop_unread(Kernel& kernel, Step& call);
/// How many steps call each kernel.
std::map<std::string, int64_t> count_calls(const Program& program);
/// Removes the kernels that no step calls.
void drop_uncalled(Program& program);
/// Whether the entry point writes a state buffer.
bool writes_state(const Program& program, const EntryPoint& entry);
/// Whether one of them does: the program trains.
bool writes_state(const Program& program);
/// The buffer that a call hands to the kernel's parameter of this name; -1 where there is none.
BufferId buffer_of(const Kernel& kernel, const Step& call, std::string_view param);
/// Whether that is a constant, and not a view of one.
bool passes_constant(const Program& program, const Kernel& kernel, const Step& call,
                     std::string_view param);
/// Bytes of all constants.
int64_t constant_bytes(const Program& program);

}  // namespace backcast::loop
