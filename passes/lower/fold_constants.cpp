#include "passes/lower/fold_constants.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/loop/add.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/math_library.h"
#include "ir/loop/step_access.h"

namespace backcast {
namespace {

// Constants may grow by a factor of two, or by this much.
constexpr int64_t kMaxGrowthBytes = 4096;

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;

class ConstantFolding {
 public:
  explicit ConstantFolding(const Program& program) : result_(program) {
    for (const loop::EntryPoint& entry : program.entries) {
      for (const Step& step : entry.steps) {
        for (BufferId id : loop::written_buffers(program, step)) ++writers_[id];
      }
      for (BufferId id : entry.outputs) ++writers_[program.owner(id)];  // the caller has it
    }
  }

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) {
      std::vector<Step> kept;
      for (Step& step : entry.steps) {
        if (!fold(step)) kept.push_back(std::move(step));
      }
      entry.steps = std::move(kept);
    }
    for (Buffer& buffer : result_.buffers) {
      if (const auto found = folded_.find(buffer.view_of); found != folded_.end()) {
        buffer.view_of = found->second;
      }
    }
    result_.update_view_classes();
    loop::replace_buffers(result_, folded_);
    loop::drop_uncalled(result_);
    return std::move(result_);
  }

 private:
  bool fold(const Step& step) {
    if (step.kind != loop::StepKind::call || step.grain > 0) return false;
    const Kernel& kernel = result_.kernels.at(step.kernel);
    const loop::Definition* definition = loop::only_definition(kernel);
    if (definition == nullptr || !definition->accumulators.empty()) return false;
    BufferId from = -1, to = -1;
    int64_t bytes = 0;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferId id = step.buffers[i];
      if (kernel.buffers[i].mode == AccessMode::read) {
        const std::string& name = kernel.buffers[i].name;
        if (!loop::passes_constant(result_, kernel, step, name)) return false;
        from = id;
        bytes += result_.storage_bytes(id);
      } else {
        if (to >= 0 || !may_become_constant(id)) return false;
        to = id;
      }
    }
    if (from < 0 || to < 0 || !is_worth(result_.storage_bytes(to), bytes)) return false;
    folded_[to] = loop::derived_constant(result_, from, "_converted", value(kernel, step, to));
    return true;
  }

  static bool is_worth(int64_t bytes, int64_t read) {
    return bytes <= 2 * read || bytes <= read + kMaxGrowthBytes;
  }

  bool may_become_constant(BufferId id) const {
    const Buffer& buffer = result_.buffer(id);
    const auto writers = writers_.find(id);
    return buffer.kind == BufferClass::arena && buffer.view_of < 0 && is_static(buffer.shape) &&
           writers != writers_.end() && writers->second == 1;
  }

  Literal value(const Kernel& kernel, const Step& step, BufferId to) const {
    std::vector<std::vector<std::byte>> contents;
    size_t written = 0;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const Buffer& buffer = result_.buffer(step.buffers[i]);
      if (step.buffers[i] == to) {
        written = i;
        contents.emplace_back(static_cast<size_t>(result_.storage_bytes(to)));
      } else {
        contents.emplace_back(buffer.value.bytes().begin(), buffer.value.bytes().end());
      }
    }
    std::map<std::string, int64_t> sizes;
    for (size_t i = 0; i < step.sizes.size(); ++i) {
      sizes[kernel.sizes[i]] = step.sizes[i].constant();
    }
    const std::map<std::string, loop::MathFunction> functions =
        loop::functions_for({{kernel.name, kernel}}, loop::math_library(true));
    loop::interpret(kernel, functions, {contents.begin(), contents.end()}, sizes);
    const Buffer& buffer = result_.buffer(to);
    return Literal(buffer.element, static_shape(buffer.shape), std::move(contents[written]));
  }

  Program result_;
  std::map<BufferId, int64_t> writers_;
  std::map<BufferId, BufferId> folded_;
};

}  // namespace

Program fold_constants(const Program& program) { return ConstantFolding(program).run(); }

}  // namespace backcast
