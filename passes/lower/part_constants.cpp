#include "passes/lower/part_constants.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "passes/lower/moved_steps.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::EntryPoint;
using loop::Program;
using loop::Step;

/// Where a part begins and ends in its constant, in bytes.
using Part = std::pair<int64_t, int64_t>;
/// The views of each part that steps name.
using Parts = std::map<Part, std::vector<BufferId>>;

/// Nothing when a view moves or has no constant shape.
std::optional<Part> part_of(const Program& program, BufferId view) {
  const Dim begin = loop::byte_offset(program, view);
  if (!begin.is_constant() || !is_static(program.buffer(view).shape)) return std::nullopt;
  return Part{begin.constant(), begin.constant() + program.storage_bytes(view)};
}

/// By constant: its parts, where it is read in more than one, none of which has something in common
/// with another.
std::map<BufferId, Parts> parts_of_constants(const Program& program) {
  std::map<BufferId, std::optional<Parts>> found;
  const auto add = [&](BufferId id) {
    const BufferId owner = program.owner(id);
    if (program.buffer(owner).kind != BufferClass::constant) return;
    std::optional<Parts>& parts = found.try_emplace(owner, Parts()).first->second;
    const std::optional<Part> part = part_of(program, id);
    if (!part) parts.reset();
    if (!parts) return;
    std::vector<BufferId>& views = (*parts)[*part];
    if (std::find(views.begin(), views.end(), id) == views.end()) views.push_back(id);
  };
  for (const EntryPoint& entry : program.entries) {
    for (const Step& step : entry.steps) loop::for_each_buffer(step, add);
    for (const BufferId id : entry.outputs) add(id);
  }
  std::map<BufferId, Parts> result;
  for (auto& [owner, parts] : found) {
    if (!parts || parts->size() < 2) continue;
    int64_t end = 0;
    bool apart = true;
    for (const auto& [part, views] : *parts) {
      apart = apart && part.first >= end;
      end = part.second;
    }
    if (apart) result.emplace(owner, std::move(*parts));
  }
  return result;
}

}  // namespace

Program part_constants(const Program& program) {
  Program result = program;
  std::map<BufferId, BufferId> moved;
  for (const auto& [owner, parts] : parts_of_constants(program)) {
    const std::span<const std::byte> bytes = program.buffer(owner).value.bytes();
    for (const auto& [part, views] : parts) {
      const Buffer& view = program.buffer(views[0]);
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(part.first);
      Literal value(view.element, static_shape(view.shape),
                    {begin, bytes.begin() + static_cast<std::ptrdiff_t>(part.second)});
      const BufferId id = loop::add_constant(result, program.buffer(owner).name + "_part",
                                             std::move(value), view.loc);
      for (const BufferId other : views) {
        const Dims& shape = program.buffer(other).shape;
        moved[other] = shape == view.shape ? id : add_part(result, id, shape, Dim(0));
      }
    }
  }
  loop::replace_buffers(result, moved);
  return result;
}

}  // namespace backcast
