// See zero_skipping.h.
#include "passes/schedule/zero_skipping.h"

#include <cmath>

#include "ir/loop/step_access.h"
#include "passes/schedule/rectified.h"

namespace backcast {

ZeroSkipping::ZeroSkipping(const loop::Program& program, const TargetInfo& target)
    : program_(program),
      target_(target),
      rectified_(rectified_buffers(program)),
      constant_bytes_(loop::constant_bytes(program)) {}

/// Zero times an infinity is none. What training computes is finite, or training has failed.
bool ZeroSkipping::is_finite(loop::BufferId id, bool trains) const {
  const loop::Buffer& buffer = program_.buffer(id);
  if (buffer.kind == loop::BufferClass::state || trains) return true;
  if (buffer.kind != loop::BufferClass::constant || buffer.view_of >= 0) return false;
  const Literal& value = buffer.value;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (!std::isfinite(value.as_double(i))) return false;
  }
  return true;
}

std::optional<SkippingNest> ZeroSkipping::choose(const loop::Definition& definition,
                                                 const loop::Kernel& kernel, const loop::Step& step,
                                                 bool trains, bool may_repack) const {
  const auto buffer = [&](const std::string& param) {
    return loop::buffer_of(kernel, step, param);
  };
  const auto is_constant = [&](const std::string& param) {
    return loop::passes_constant(program_, kernel, step, param);
  };
  SkippingContext context{.target = target_, .program_bytes = constant_bytes_};
  context.is_rectified = [&](const std::string& param) { return is_rectified(buffer(param)); };
  context.is_finite = [&](const std::string& param) { return is_finite(buffer(param), trains); };
  context.choose = [&](const loop::Definition& d, const TileLimits& limits) {
    return choose_schedule(d, kernel, target_, is_constant, may_repack, limits);
  };
  context.rearranging = [&](const loop::Definition& d, const NestSchedule& schedule) {
    return rearranging_cycles(d, kernel, target_, is_constant, schedule);
  };
  context.cycles = [&] {
    return schedule_cycles(definition, kernel, target_, is_constant, may_repack);
  };
  return choose_nonzero_steps(definition, kernel, context);
}

}  // namespace backcast
