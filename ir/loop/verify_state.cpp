// See verify_state.h.
#include "ir/loop/verify_state.h"

#include <algorithm>

#include "ir/graph/error.h"
#include "ir/loop/step_access.h"
#include "ir/loop/verify_kernel.h"

namespace backcast::loop {
namespace {

bool is_scalar(const Buffer& b) {
  return std::all_of(b.shape.begin(), b.shape.end(), [](const Dim& d) { return d == Dim(1); });
}

class StateChecker {
 public:
  StateChecker(const Program& program, std::string_view after) : program_(program), after_(after) {}

  void run() const {
    const std::vector<BufferId> states = program_.states();
    for (const BufferId id : states) check_variable(program_.buffer(id));
    if (program_.state_bytes > 0) check_places(states);
    for (const EntryPoint& entry : program_.entries) {
      check_conditions(entry);
      check_guards(entry);
      check_optional(entry);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    verification_error(after_, "program " + program_.name, message);
  }

  void check_variable(const Buffer& b) const {
    const bool flat = b.role == StateRole::parameter || b.role == StateRole::statistic ||
                      b.role == StateRole::gradient;
    bool fits = true;
    if (b.role == StateRole::generator) {
      fits = b.element == ElementType::u32 && b.shape == Dims{Dim(2)};
    } else if (b.role == StateRole::step) {
      fits = (b.element == ElementType::i32 || b.element == ElementType::u32) && is_scalar(b);
    } else if (flat || b.role == StateRole::rate) {
      fits = b.element == ElementType::f32 || b.element == ElementType::f64;
      if (b.role == StateRole::rate) fits = fits && is_scalar(b);
    }
    if (!fits || !is_static(b.shape)) {
      fail(fmt::format("state {} of role {} has the type {}", b.name, enum_name(b.role),
                       to_string(TensorType{b.element, b.shape})));
    }
    std::vector<int32_t> sorted = b.order;
    std::sort(sorted.begin(), sorted.end());
    bool is_permutation = sorted.empty() || sorted.size() == b.shape.size();
    for (size_t i = 0; i < sorted.size(); ++i) {
      is_permutation = is_permutation && sorted[i] == static_cast<int32_t>(i);
    }
    if (!is_permutation) fail("the order of state " + b.name + " is no permutation of dimensions");
    const bool has_value = !b.value.bytes().empty();
    if (has_value && !(b.value.type() == TensorType{b.element, b.shape})) {
      fail("the initial value of state " + b.name + " has another type");
    }
  }

  void check_places(const std::vector<BufferId>& states) const {
    int64_t end = kStateHeaderBytes;
    std::vector<BufferId> by_offset = states;
    std::sort(by_offset.begin(), by_offset.end(), [&](BufferId a, BufferId b) {
      return program_.buffer(a).offset < program_.buffer(b).offset;
    });
    for (const BufferId id : by_offset) {
      const Buffer& b = program_.buffer(id);
      const int64_t alignment = std::max(b.alignment, byte_size(b.element));
      if (b.offset < end) fail("state " + b.name + " shares bytes with what comes before it");
      end = b.offset + program_.storage_bytes(id);
      if (b.offset % alignment != 0 || program_.state_alignment % alignment != 0) {
        fail("state " + b.name + " is not aligned");
      }
    }
    if (end > program_.state_bytes) fail("a variable lies outside of the state");
  }

  void check_conditions(const EntryPoint& entry) const {
    for (const auto& [id, range] : entry.ranges) {
      const bool listed =
          std::find(entry.inputs.begin(), entry.inputs.end(), id) != entry.inputs.end();
      if (!listed || !is_integer(program_.buffer(id).element) || range.min > range.max) {
        fail("entry " + entry.name + " has a range of something that is no input of integers");
      }
    }
    check_extents(entry);
    if (entry.required_count == -1) return;
    const Buffer& count = program_.buffer(entry.required_count);
    const bool is_count = count.element == ElementType::i32 || count.element == ElementType::u32;
    if (count.kind != BufferClass::state || count.view_of >= 0 || !is_count || !is_scalar(count)) {
      fail("entry " + entry.name + " requires " + count.name + ", which counts nothing");
    }
  }

  /// A step that writes an extent comes before all that depend on it, and is in no loop or branch.
  void check_extents(const EntryPoint& entry) const {
    std::set<BufferId> open;
    for (const auto& [id, symbol] : entry.extents) {
      const Buffer& b = program_.buffer(id);
      const bool listed =
          std::find(entry.outputs.begin(), entry.outputs.end(), id) != entry.outputs.end();
      const bool is_place = listed || b.kind == BufferClass::arena;
      if (!is_place || b.element != ElementType::i64 || !is_scalar(b)) {
        fail("extent " + b.name + " of " + entry.name + " is nothing that counts");
      }
      if (!program_.symbols.contains(symbol)) fail("extent " + b.name + " has no symbol");
      open.insert(id);
    }
    if (open.empty()) return;
    for (const Step& step : entry.steps) {
      for (const BufferId id : extent_buffers(program_, step)) {
        if (open.contains(id)) fail("a step needs " + program_.buffer(id).name + " too early");
      }
      for (const BufferId id : written_buffers(program_, step)) {
        if (entry.extents.contains(id) && !(step.body.empty() && step.otherwise.empty())) {
          fail("extent " + program_.buffer(id).name + " is written in a loop or a branch");
        }
        open.erase(id);
      }
    }
  }

  void check_guards(const EntryPoint& entry) const {
    bool has_written = false;
    for (const Step& step : entry.steps) {
      if (step.kind == StepKind::check_finite) {
        if (step.buffers.size() != 1) fail("a check_finite of " + entry.name + " needs one buffer");
        const Buffer& value = program_.buffer(step.buffers[0]);
        const bool is_real = value.element == ElementType::f32 || value.element == ElementType::f64;
        if (!is_real || !is_scalar(value)) {
          fail("check_finite of " + value.name + ", which is no scalar of f32 or f64");
        }
        if (has_written) fail("entry " + entry.name + " writes state before a check_finite");
      }
      for (const BufferId id : written_buffers(program_, step)) {
        has_written = has_written || program_.buffer(id).kind == BufferClass::state;
      }
    }
  }

  void check_optional(const EntryPoint& entry) const {
    for (const BufferId id : entry.optional_outputs) {
      if (std::find(entry.outputs.begin(), entry.outputs.end(), id) == entry.outputs.end()) {
        fail(program_.buffer(id).name + " is optional but no output of " + entry.name);
      }
    }
    if (entry.optional_outputs.empty()) return;
    for (const Step& step : entry.steps) {
      const std::set<BufferId> written = written_buffers(program_, step);
      for (const BufferId id : entry.optional_outputs) {
        const std::string& name = program_.buffer(id).name;
        if (read_buffers(program_, step).contains(id)) fail("optional output " + name + " is read");
        const bool is_simple = step.kind == StepKind::copy || step.kind == StepKind::call;
        if (written.contains(id) && (written.size() != 1 || !is_simple)) {
          fail("a step writes more than the optional output " + name);
        }
      }
    }
  }

  const Program& program_;
  std::string_view after_;
};

}  // namespace

void verify_state(const Program& program, std::string_view after) {
  StateChecker(program, after).run();
}

}  // namespace backcast::loop
