#include "passes/lower/moved_steps.h"

#include <utility>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"

namespace backcast {

using loop::Buffer;
using loop::BufferId;
using loop::Program;
using loop::Step;

BufferId add_part(Program& program, BufferId of, const Dims& shape, const Dim& offset) {
  Buffer part = program.buffer(of);
  part.view_of = of;
  part.view_offset = offset;
  part.shape = shape;
  part.alignment = 0;
  part.value = {};
  const std::string name = part.name + "_part";
  return loop::add_buffer(program, name, std::move(part));
}

void MovedSteps::move(Step& step) {
  for (BufferId& id : step.buffers) {
    if (id >= 0) id = moved(id);
  }
  for (Dim& size : step.sizes) size = size.substitute(symbols_);
  step.count = step.count.substitute(symbols_);
  for (Step& inner : step.body) move(inner);
  for (Step& inner : step.otherwise) move(inner);
}

BufferId MovedSteps::moved(BufferId id) {
  const auto found = moved_.find(id);
  if (found != moved_.end()) return found->second;
  const Dim offset = loop::byte_offset(program_, id), now = offset.substitute(symbols_);
  BufferId result = id;
  if (!(now == offset)) {
    const Dims shape = program_.buffer(id).shape;
    const Dim elements = Dim::floor_div(now, Dim(byte_size(program_.buffer(id).element)));
    result = add_part(program_, program_.owner(id), shape, elements);
  }
  moved_[id] = result;
  return result;
}

}  // namespace backcast
