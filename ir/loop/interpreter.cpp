// Programs run on the machine: symbols from the inputs' shapes, memory as planned, steps in order.
#include "ir/loop/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/graph/error.h"
#include "ir/loop/step_access.h"
#include "ir/loop/translate.h"

namespace backcast::loop {
namespace {

constexpr std::byte kGarbage{0xfb};

int64_t live_count(const Dims& shape, const SymbolValues& symbols) {
  int64_t count = 1;
  for (const Dim& extent : shape) count *= extent.evaluate(symbols);
  return count;
}

void run_kernel(const machine::Code& code, const Kernel& kernel,
                const std::vector<std::span<std::byte>>& buffers,
                const std::map<std::string, int64_t>& sizes) {
  BC_CHECK(buffers.size() == kernel.buffers.size(), "kernel {} takes {} buffers, not {}",
           kernel.name, kernel.buffers.size(), buffers.size());
  std::vector<machine::Array> arrays;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferParam& param = kernel.buffers[i];
    const int64_t count = live_count(param.shape, sizes);
    const int64_t bytes =
        count * (param.element == Scalar::index ? 8 : byte_size(element_of(param.element)));
    BC_CHECK(bytes <= static_cast<int64_t>(buffers[i].size()),
             "kernel {}: {} needs {} bytes and gets {}", kernel.name, param.name, bytes,
             buffers[i].size());
    arrays.push_back({buffers[i].data(), count});
  }
  std::vector<int64_t> values;
  for (const std::string& size : kernel.sizes) {
    const auto found = sizes.find(size);
    BC_CHECK(found != sizes.end(), "kernel {}: no value for size {}", kernel.name, size);
    values.push_back(found->second);
  }
  machine::run(code, arrays, values);
}

/// Solves a·N + b = extent for a dimension of one symbol.
bool solve(const Dim& dim, int64_t extent, SymbolValues& symbols) {
  if (dim.terms().size() != 1 || dim.terms()[0].atoms.size() != 1) return false;
  const Dim::Atom& atom = *dim.terms()[0].atoms[0];
  if (atom.kind != Dim::Atom::Kind::symbol) return false;
  symbols.emplace(atom.name, (extent - dim.constant_term()) / dim.terms()[0].coefficient);
  return true;
}

class Run {
 public:
  Run(const Program& program, const EntryPoint& entry, const std::vector<Literal>& inputs,
      const StateValues& state)
      : program_(program), entry_(entry), state_(state), storage_(program.buffers.size()) {
    bind_symbols(inputs);
    arena_.assign(static_cast<size_t>(program.arena_bytes), kGarbage);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::span<std::byte> to = memory(entry.inputs[i]);
      const std::span<const std::byte> from = inputs[i].bytes();
      BC_CHECK(from.size() <= to.size(), "input {} is too big", buffer(entry.inputs[i]).name);
      if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    }
  }

  RunStatus run(const std::vector<Literal>& inputs) {
    for (const auto& [id, range] : entry_.ranges) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (entry_.inputs[i] == id && !lies_inside(inputs[i], range)) return RunStatus::index;
      }
    }
    if (entry_.required_count >= 0) {
      const Literal count = value_of(entry_.required_count);
      if (count.as_int(0) == 0) return RunStatus::state;
    }
    return steps(entry_.steps) ? RunStatus::ok : RunStatus::nonfinite;
  }

  void update(StateValues& state) {
    for (const BufferId id : program_.states()) state[buffer(id).name] = value_of(id);
  }

  std::vector<Literal> outputs() {
    std::vector<Literal> results;
    for (const BufferId id : entry_.outputs) {
      if (!entry_.extents.contains(id)) results.push_back(value_of(id));
    }
    return results;
  }

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }

  static bool lies_inside(const Literal& values, const ValueRange& range) {
    for (int64_t i = 0; i < values.element_count(); ++i) {
      const int64_t value = values.as_int(i);
      if ((value < range.min || value > range.max) && value != range.ignore) return false;
    }
    return true;
  }

  /// Whether all steps ran.
  bool steps(const std::vector<Step>& list) {
    for (const Step& step : list) {
      switch (step.kind) {
        case StepKind::call:
          call(step);
          break;
        case StepKind::copy:
          copy(step.buffers.at(0), step.buffers.at(1));
          break;
        case StepKind::check_finite:
          if (!std::isfinite(value_of(step.buffers.at(0)).as_double(0))) return false;
          break;
        case StepKind::loop:
          if (!loop(step)) return false;
          break;
        case StepKind::branch:
          if (!steps(is_true(step.buffers.at(0)) ? step.body : step.otherwise)) return false;
          break;
      }
      if (!entry_.extents.empty()) measure(step);
    }
    return true;
  }

  /// The symbols whose values the step has written.
  void measure(const Step& step) {
    for (const BufferId id : written_buffers(program_, step)) {
      const auto extent = entry_.extents.find(id);
      if (extent == entry_.extents.end()) continue;
      const DimRange& range = program_.symbols.at(extent->second);
      symbols_[extent->second] = std::clamp(value_of(id).as_int(0), range.min, range.max);
    }
  }

  bool is_true(BufferId id) { return value_of(id).as_int(0) != 0; }

  bool loop(const Step& step) {
    int64_t trips = step.count.evaluate(symbols_);
    if (step.buffers.at(0) >= 0) trips = std::min(trips, value_of(step.buffers[0]).as_int(0));
    for (int64_t trip = 0; trip < trips; ++trip) {
      if (step.buffers.at(1) >= 0 && !is_true(step.buffers[1])) break;
      symbols_[step.symbol] = step.reverse ? trips - 1 - trip : trip;
      if (!steps(step.body)) return false;
    }
    return true;
  }

  Literal value_of(BufferId id) {
    const Buffer& b = buffer(id);
    std::vector<int64_t> shape;
    for (const Dim& extent : b.shape) shape.push_back(extent.evaluate(symbols_));
    const std::span<std::byte> bytes = memory(id).first(live_bytes(id));
    return Literal(b.element, shape, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }

  size_t live_bytes(BufferId id) const {
    return static_cast<size_t>(live_count(buffer(id).shape, symbols_) *
                               byte_size(buffer(id).element));
  }

  void bind_symbols(const std::vector<Literal>& inputs) {
    if (inputs.size() != entry_.inputs.size()) {
      throw CompileError(fmt::format("{} takes {} inputs, not {}", entry_.name,
                                     entry_.inputs.size(), inputs.size()));
    }
    for (const auto& [name, range] : program_.symbols) {
      if (range.min == range.max) symbols_.emplace(name, range.min);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Buffer& b = buffer(entry_.inputs[i]);
      const bool fits =
          inputs[i].element() == b.element && inputs[i].shape().size() == b.shape.size();
      if (!fits) throw CompileError("input " + b.name + " has another type or rank");
      for (size_t d = 0; d < b.shape.size(); ++d) solve(b.shape[d], inputs[i].shape()[d], symbols_);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Buffer& b = buffer(entry_.inputs[i]);
      for (size_t d = 0; d < b.shape.size(); ++d) {
        if (b.shape[d].evaluate(symbols_) == inputs[i].shape()[d]) continue;
        throw CompileError(fmt::format("input {} has extent {} in dimension {}, which is {}",
                                       b.name, inputs[i].shape()[d], d, b.shape[d].to_string()));
      }
    }
    for (const auto& [name, value] : symbols_) {
      const auto range = program_.symbols.find(name);
      if (range == program_.symbols.end()) continue;
      if (value < range->second.min || value > range->second.max) {
        throw CompileError(fmt::format("{} is {}, outside of its range", name, value));
      }
    }
  }

  /// From the buffer's first element to the end of its storage.
  std::span<std::byte> memory(BufferId id) {
    const Buffer& b = buffer(id);
    if (b.view_of >= 0) {
      const std::span<std::byte> whole = memory(b.view_of);
      const int64_t start = b.view_offset.evaluate(symbols_) * byte_size(b.element);
      BC_CHECK(start >= 0 && start <= static_cast<int64_t>(whole.size()),
               "view {} starts outside of its buffer", b.name);
      return whole.subspan(static_cast<size_t>(start));
    }
    const int64_t bytes = program_.storage_bytes(id);
    if (b.kind == BufferClass::arena && b.offset >= 0) {
      BC_CHECK(b.offset + bytes <= program_.arena_bytes, "buffer {} lies outside of the arena",
               b.name);
      return std::span(arena_).subspan(static_cast<size_t>(b.offset), static_cast<size_t>(bytes));
    }
    std::vector<std::byte>& own = storage_[static_cast<size_t>(id)];
    if (own.empty() && bytes > 0) {
      own.assign(static_cast<size_t>(bytes), kGarbage);
      if (b.kind == BufferClass::state) {
        BC_CHECK(state_.contains(b.name), "the state has no variable {}", b.name);
      }
      const Literal& literal = b.kind == BufferClass::state ? state_.at(b.name) : b.value;
      const std::span<const std::byte> value = literal.bytes();
      BC_CHECK(value.size() <= own.size(), "the value of {} is too big", b.name);
      if (!value.empty()) std::memcpy(own.data(), value.data(), value.size());
    }
    return own;
  }

  void copy(BufferId from, BufferId to) {
    const size_t bytes = live_bytes(from);
    BC_CHECK(bytes == live_bytes(to) && buffer(from).element == buffer(to).element,
             "a copy from {} to {}, which differ in size", buffer(from).name, buffer(to).name);
    const std::span<std::byte> source = memory(from);
    const std::span<std::byte> target = memory(to);
    BC_CHECK(bytes <= source.size() && bytes <= target.size(), "a copy from {} exceeds its storage",
             buffer(from).name);
    if (bytes > 0) std::memmove(target.data(), source.data(), bytes);
  }

  void call(const Step& step) {
    const auto found = program_.kernels.find(step.kernel);
    BC_CHECK(found != program_.kernels.end(), "no kernel {}", step.kernel);
    const Kernel& kernel = found->second;
    BC_CHECK(step.sizes.size() == kernel.sizes.size(), "kernel {} takes {} sizes, not {}",
             kernel.name, kernel.sizes.size(), step.sizes.size());
    std::vector<std::span<std::byte>> buffers;
    for (const BufferId id : step.buffers) buffers.push_back(memory(id));
    std::map<std::string, int64_t> sizes;
    for (size_t i = 0; i < step.sizes.size(); ++i) {
      sizes[kernel.sizes[i]] = step.sizes[i].evaluate(symbols_);
    }
    const auto [code, fresh] = codes_.try_emplace(step.kernel);
    if (fresh) code->second = machine::translate(kernel, program_.functions);
    run_kernel(code->second, kernel, buffers, sizes);
  }

  const Program& program_;
  const EntryPoint& entry_;
  const StateValues& state_;
  SymbolValues symbols_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte>> storage_;
  std::map<std::string, machine::Code> codes_;
};

}  // namespace

void interpret(const Kernel& kernel, const std::map<std::string, MathFunction>& functions,
               const std::vector<std::span<std::byte>>& buffers,
               const std::map<std::string, int64_t>& sizes) {
  run_kernel(machine::translate(kernel, functions), kernel, buffers, sizes);
}

StateValues initial_state(const Program& program, uint64_t seed) {
  StateValues state;
  for (const BufferId id : program.states()) {
    const Buffer& b = program.buffer(id);
    std::vector<int64_t> shape;
    for (const Dim& extent : b.shape) shape.push_back(extent.constant());
    std::vector<std::byte> bytes(static_cast<size_t>(program.storage_bytes(id)));
    if (b.role == StateRole::generator) {
      BC_CHECK(bytes.size() == sizeof seed, "generator {} is no key of 64 bits", b.name);
      std::memcpy(bytes.data(), &seed, sizeof seed);
    } else if (!b.value.bytes().empty()) {
      bytes.assign(b.value.bytes().begin(), b.value.bytes().end());
    }
    state.emplace(b.name, Literal(b.element, shape, std::move(bytes)));
  }
  return state;
}

RunResult interpret(const Program& program, const std::string& entry,
                    const std::vector<Literal>& inputs, StateValues& state) {
  for (const EntryPoint& point : program.entries) {
    if (point.name != entry) continue;
    Run run(program, point, inputs, state);
    RunResult result;
    result.status = run.run(inputs);
    result.outputs = run.outputs();
    if (result.status != RunStatus::ok) return result;
    StateValues updated;
    run.update(updated);
    state = std::move(updated);
    return result;
  }
  throw CompileError("program " + program.name + " has no entry point " + entry);
}

std::vector<Literal> interpret(const Program& program, const std::string& entry,
                               const std::vector<Literal>& inputs) {
  StateValues state = initial_state(program);
  RunResult result = interpret(program, entry, inputs, state);
  if (result.status != RunStatus::ok) {
    static constexpr std::string_view kReasons[] = {
        "", "an input is out of its range", "nothing was accumulated", "a value is not finite"};
    throw CompileError(entry + ": " + std::string(kReasons[static_cast<size_t>(result.status)]));
  }
  return std::move(result.outputs);
}

}  // namespace backcast::loop
