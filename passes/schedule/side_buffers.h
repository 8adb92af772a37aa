// What a scheduled kernel needs beside what its definition names: buffers that other kernels fill
// before it, panels and totals of its own, packed constants. Each becomes the kernel's first
// parameter.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

class SideBuffers {
 public:
  /// Both must outlive it.
  SideBuffers(loop::Program& program, const TargetInfo& target)
      : program_(program), target_(target) {}

  /// A name after `param` that no parameter has.
  static std::string fresh_parameter(const loop::Kernel& kernel, const std::string& param);

  /// A buffer that the kernel writes and reads again before it returns.
  void add_panel(const std::string& param, loop::Scalar element, const Dims& shape,
                 loop::Kernel& kernel, loop::Step& step);

  /// A buffer that `body` writes as `written` in a kernel of its own, over `reads`, which `kernel`
  /// has, too, maybe in another shape. Returns that kernel's call; to be made before `step`.
  loop::Step compute_before(loop::Stmt body, const std::vector<loop::BufferParam>& reads,
                            loop::BufferParam written, int64_t macs, loop::Kernel& kernel,
                            loop::Step& step);

  /// Whether the call reads a constant of several elements, all of which fit in 4 bits.
  bool reads_nibbles(const loop::Kernel& kernel, const loop::Step& step) const;
  /// Marks the packed constants of a schedule whose values fit in 4 bits (nibbles.h).
  void hold_nibbles(const loop::Kernel& kernel, const loop::Step& step, NestSchedule& chosen) const;

  /// Constant `param` in the order in which `chosen` reads it; it takes the place of the original,
  /// or joins it where it has a name of its own.
  void pack_constant(const loop::Definition& definition, const NestSchedule& chosen,
                     const std::string& param, loop::Kernel& kernel, loop::Step& step);

 private:
  std::string fresh_name(const std::string& kernel, const std::string& param) const;
  loop::BufferId add_buffer(loop::Buffer buffer);
  loop::BufferId packed_constant(const loop::Definition& definition, const NestSchedule& chosen,
                                 const std::string& param, const loop::Kernel& kernel,
                                 const loop::Step& step);

  loop::Program& program_;
  const TargetInfo& target_;
  /// Constants by hash: what was packed, and the result.
  std::map<uint64_t, std::vector<std::pair<loop::BufferId, loop::BufferId>>> packed_;
};

}  // namespace backcast
