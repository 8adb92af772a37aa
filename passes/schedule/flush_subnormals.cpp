#include "passes/schedule/flush_subnormals.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/loop/step_access.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;

/// Times something below one, these are subnormal or nearly so: 2^-126 and 2^-1022 are.
double faint(ElementType element) { return element == ElementType::f64 ? 0x1p-996 : 0x1p-100; }

bool holds_faint(const Literal& value) {
  if (value.element() != ElementType::f32 && value.element() != ElementType::f64) return false;
  const double limit = faint(value.element());
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double x = std::fabs(value.as_double(i));
    if (x > 0 && x < limit) return true;
  }
  return false;
}

class Marking {
 public:
  explicit Marking(const Program& program) : result_(program) {}

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](const Step& step) {
        Kernel& kernel = result_.kernels.at(step.kernel);
        kernel.flushes = kernel.flushes || meets_subnormals(kernel, step);
      });
    }
    return std::move(result_);
  }

 private:
  bool meets_subnormals(const Kernel& kernel, const Step& step) {
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const BufferId id = result_.owner(step.buffers[i]);
      const Buffer& buffer = result_.buffer(id);
      const bool writes = kernel.buffers[i].mode != loop::AccessMode::read;
      if (writes && buffer.kind == BufferClass::state && is_float(buffer.element)) return true;
      if (kernel.macs > 0 && buffer.kind == BufferClass::constant && is_faint(id)) return true;
    }
    return false;
  }

  bool is_faint(BufferId constant) {
    const auto [known, is_new] = faint_.emplace(constant, false);
    if (is_new) known->second = holds_faint(result_.buffer(constant).value);
    return known->second;
  }

  Program result_;
  std::map<BufferId, bool> faint_;
};

}  // namespace

Program flush_subnormals(const Program& program, const TargetInfo& target) {
  return target.slow_subnormals ? Marking(program).run() : program;
}

}  // namespace backcast
