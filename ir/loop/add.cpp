#include "ir/loop/add.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/loop/step_access.h"

namespace backcast::loop {
namespace {

template <class Taken>
std::string fresh(const std::string& wish, const Taken& taken) {
  std::string name = wish;
  for (int i = 2; taken(name); ++i) name = fmt::format("{}_{}", wish, i);
  return name;
}

}  // namespace

BufferId add_buffer(Program& program, const std::string& wish, Buffer buffer) {
  buffer.name = fresh(wish, [&](const std::string& name) {
    return std::any_of(program.buffers.begin(), program.buffers.end(),
                       [&](const Buffer& other) { return other.name == name; });
  });
  program.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program.buffers.size()) - 1;
}

BufferId add_constant(Program& program, const std::string& wish, Literal value, Loc loc) {
  Buffer constant;
  constant.kind = BufferClass::constant;
  constant.element = value.element();
  constant.shape = value.type().shape;
  constant.value = std::move(value);
  constant.loc = std::move(loc);
  return add_buffer(program, wish, std::move(constant));
}

BufferId derived_constant(Program& program, BufferId from, const std::string& ending,
                          Literal value) {
  const Buffer& original = program.buffer(from);
  const std::string wish = original.name + ending;
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const Buffer& known = program.buffers[id];
    if (known.kind == BufferClass::constant && known.view_of < 0 && known.name.starts_with(wish) &&
        known.value == value) {
      return static_cast<BufferId>(id);
    }
  }
  return add_constant(program, wish, std::move(value), original.loc);
}

std::string add_kernel(Program& program, const std::string& wish, Kernel kernel) {
  kernel.name =
      fresh(wish, [&](const std::string& name) { return program.kernels.contains(name); });
  const std::string name = kernel.name;
  program.kernels.emplace(name, std::move(kernel));
  return name;
}

void separate_calls(Program& program) {
  std::set<std::string> called;
  for (EntryPoint& entry : program.entries) {
    for_each_call(entry.steps, [&](Step& step) {
      if (called.insert(step.kernel).second) return;
      step.kernel = add_kernel(program, step.kernel, program.kernels.at(step.kernel));
      called.insert(step.kernel);
    });
  }
}

std::string add_symbol(Program& program, const std::string& wish, DimRange range) {
  const std::string name =
      fresh(wish, [&](const std::string& taken) { return program.symbols.contains(taken); });
  program.symbols[name] = range;
  return name;
}

}  // namespace backcast::loop
