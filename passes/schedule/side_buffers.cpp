// See side_buffers.h.
#include "passes/schedule/side_buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/loop/step_access.h"
#include "passes/schedule/nibbles.h"

namespace backcast {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferId;
using loop::BufferParam;
using loop::Kernel;
using loop::Step;

namespace {

void add_parameter(BufferParam param, BufferId buffer, Kernel& kernel, Step& step) {
  kernel.buffers.insert(kernel.buffers.begin(), std::move(param));
  step.buffers.insert(step.buffers.begin(), buffer);
}

}  // namespace

std::string SideBuffers::fresh_parameter(const Kernel& kernel, const std::string& param) {
  int n = 0;
  std::string name;
  do {
    name = fmt::format("{}p{}", param, n++);
  } while (kernel.find(name));
  return name;
}

/// One that neither a kernel nor a buffer has.
std::string SideBuffers::fresh_name(const std::string& kernel, const std::string& param) const {
  std::string name = fmt::format("{}_{}", kernel, param);
  const auto taken = [&] {
    return program_.kernels.count(name) ||
           std::any_of(program_.buffers.begin(), program_.buffers.end(),
                       [&](const Buffer& buffer) { return buffer.name == name; });
  };
  while (taken()) name += "_";
  return name;
}

BufferId SideBuffers::add_buffer(Buffer buffer) {
  buffer.alignment = std::max(byte_size(buffer.element), int64_t{target_.vector_bits} / 8);
  program_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program_.buffers.size()) - 1;
}

void SideBuffers::add_panel(const std::string& param, loop::Scalar element, const Dims& shape,
                            Kernel& kernel, Step& step) {
  Buffer place;
  place.name = fresh_name(kernel.name, param);
  place.element = loop::element_of(element);
  place.shape = shape;
  place.loc = step.loc;
  const BufferId panel = add_buffer(std::move(place));
  add_parameter({param, element, shape, AccessMode::write, {}}, panel, kernel, step);
}

Step SideBuffers::compute_before(loop::Stmt body, const std::vector<BufferParam>& reads,
                                 BufferParam written, int64_t macs, Kernel& kernel, Step& step) {
  Buffer place;
  place.name = fresh_name(kernel.name, written.name);
  place.element = loop::element_of(written.element);
  place.shape = written.shape;
  place.loc = step.loc;
  Kernel before;
  before.name = place.name;
  before.locs = kernel.locs;
  before.sizes = kernel.sizes;
  before.macs = macs;
  before.buffers = reads;
  before.buffers.push_back(written);
  before.body = std::move(body);
  Step call = step;
  call.kernel = before.name;
  call.buffers.clear();
  for (const BufferParam& read : reads) {
    call.buffers.push_back(loop::buffer_of(kernel, step, read.name));
  }
  const BufferId to = add_buffer(std::move(place));
  call.buffers.push_back(to);
  program_.kernels.emplace(call.kernel, std::move(before));
  written.mode = AccessMode::read;
  add_parameter(std::move(written), to, kernel, step);
  return call;
}

BufferId SideBuffers::packed_constant(const loop::Definition& definition,
                                      const NestSchedule& chosen, const std::string& param,
                                      const Kernel& kernel, const Step& step) {
  const BufferId from = loop::buffer_of(kernel, step, param);
  Buffer packed = program_.buffer(from);
  packed.value = pack(definition, kernel, chosen, param, packed.value);
  // Entries share their constants, packed ones too, and so do kernels for parts of one result.
  std::vector<std::pair<BufferId, BufferId>>& equal = packed_[packed.value.hash()];
  for (const auto& [original, id] : equal) {
    const bool shared = program_.entries.size() > 1 || original == from;
    if (shared && program_.buffer(id).value == packed.value) return id;
  }
  const std::string& parameter = chosen.packed.at(param).parameter;
  packed.name =
      fmt::format("{}_{}{}", packed.name, kernel.name, parameter == param ? "" : "_" + parameter);
  packed.shape = {Dim(packed.value.element_count())};
  equal.emplace_back(from, add_buffer(std::move(packed)));
  return equal.back().second;
}

bool SideBuffers::reads_nibbles(const Kernel& kernel, const Step& step) const {
  return std::ranges::any_of(kernel.buffers, [&](const BufferParam& param) {
    if (param.mode != AccessMode::read) return false;
    const Buffer& buffer = program_.buffer(loop::buffer_of(kernel, step, param.name));
    return buffer.kind == loop::BufferClass::constant && buffer.value.element_count() > 1 &&
           fits_nibbles(buffer.value);
  });
}

void SideBuffers::hold_nibbles(const Kernel& kernel, const Step& step, NestSchedule& chosen) const {
  for (auto& [param, packing] : chosen.packed) {
    if (packing.at_run_time) continue;
    const Buffer& constant = program_.buffer(loop::buffer_of(kernel, step, param));
    packing.holds_nibbles = may_hold_nibbles(chosen, packing, constant.value);
  }
}

void SideBuffers::pack_constant(const loop::Definition& definition, const NestSchedule& chosen,
                                const std::string& param, Kernel& kernel, Step& step) {
  const BufferId packed = packed_constant(definition, chosen, param, kernel, step);
  const Buffer& buffer = program_.buffer(packed);
  const std::string& name = chosen.packed.at(param).parameter;
  if (name != param) {
    return add_parameter(
        {name, loop::scalar_of(buffer.element), buffer.shape, AccessMode::read, {}}, packed, kernel,
        step);
  }
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    if (kernel.buffers[i].name != param) continue;
    kernel.buffers[i].shape = buffer.shape;
    step.buffers[i] = packed;
  }
}

}  // namespace backcast
