// See built_library.h.
#include "tests/backend_state/built_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "backend/c/emit.h"
#include "backend/library/abi.h"
#include "backend/llvm/archive.h"
#include "backend/llvm/host.h"
#include "backend/llvm/jit.h"
#include "ir/graph/error.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "passes/plan/plan_memory.h"
#include "tests/backend_c/compiled.h"
#include "tests/support/training_program.h"

namespace backcast::state_test {

namespace {

loop::Program planned(const TargetInfo& target, const std::string& text = kTrainingProgram) {
  loop::Program program = plan_memory(loop::parse_program(text), target);
  loop::verify(program, "plan_memory");
  return program;
}

}  // namespace

loop::Program training_program(const std::string& target_name) {
  return planned(*find_target(target_name));
}

loop::Program training_program() { return planned(c_test::host_target()); }

loop::Program double_program() {
  std::string text = kTrainingProgram;
  for (size_t at = text.find("f32"); at != std::string::npos; at = text.find("f32", at)) {
    text.replace(at, 3, "f64");
  }
  return planned(c_test::host_target(), text);
}

std::vector<std::string> forms() {
  std::vector<std::string> names = {"jit", "archive"};
  if (c_test::is_installed("gcc")) names.push_back("gcc");
  if (c_test::is_installed("clang-19")) names.push_back("clang");
  return names;
}

struct BuiltLibrary::Code {
  c_test::Folder folder;
  std::unique_ptr<CompiledProgram> jit;
  void* handle = nullptr;

  /// Makes a shared library of files in the folder by a shell command.
  void load(const std::string& command) {
    bool ok = false;
    const std::string messages = c_test::run_command("cd " + folder.path() + " && " + command, ok);
    BC_CHECK(ok && messages.empty(), "{}: {}", command, messages);
    handle = dlopen((folder.path() + "/library.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    BC_CHECK(handle != nullptr, "{}", dlerror());
  }
};

BuiltLibrary::BuiltLibrary(const loop::Program& program, const std::string& form)
    : program_(program), code_(std::make_unique<Code>()) {
  const TargetInfo& target = c_test::host_target();
  const std::string& name = program.name;
  if (form == "jit") {
    code_->jit = std::make_unique<CompiledProgram>(program, target);
  } else if (form == "archive") {
    const ObjectFile object = emit_object(program, target);
    code_->folder.write("lib.a", write_archive({{name + ".o", object.bytes}}));
    code_->load("gcc -shared -o library.so -Wl,--whole-archive lib.a -Wl,--no-whole-archive");
  } else {
    const CSource source = emit_c(program, target, {.header = {.target = target.name}});
    code_->folder.write(name + ".c", source.source);
    code_->folder.write(name + ".h", source.header);
    code_->load((form == "gcc" ? "gcc" : "clang-19") +
                std::string(" -std=c11 -O2 -Wall -Wextra "
                            "-shared -fPIC -o library.so ") +
                target.compiler_flags + " " + name + ".c");
  }
}

BuiltLibrary::~BuiltLibrary() {
  if (code_->handle != nullptr) dlclose(code_->handle);
}

void* BuiltLibrary::symbol(const std::string& name) const {
  const std::string full = program_.name + "_" + name;
  if (code_->jit) return code_->jit->symbol(full);
  void* found = dlsym(code_->handle, full.c_str());
  BC_CHECK(found != nullptr, "no symbol {}", full);
  return found;
}

int32_t BuiltLibrary::call(const std::string& name, void* state, const std::vector<Literal>& inputs,
                           std::vector<Literal>& outputs,
                           const std::vector<std::string>& left_out) const {
  const auto entry = std::find_if(program_.entries.begin(), program_.entries.end(),
                                  [&](const loop::EntryPoint& e) { return e.name == name; });
  BC_CHECK(entry != program_.entries.end(), "no entry point {}", name);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Literal& input : inputs) in.push_back(input.bytes().data());
  std::vector<std::vector<std::byte>> results;
  for (const loop::BufferId id : entry->outputs) {
    const std::string& output = program_.buffer(id).name;
    results.emplace_back(static_cast<size_t>(program_.storage_bytes(id)), std::byte{0xa5});
    const bool is_wanted = std::find(left_out.begin(), left_out.end(), output) == left_out.end();
    out.push_back(is_wanted ? results.back().data() : nullptr);
  }
  const auto alignment = static_cast<size_t>(program_.arena_alignment);
  const size_t arena_bytes = static_cast<size_t>(program_.arena_bytes);
  std::vector<std::byte> memory(arena_bytes + alignment, std::byte{0x5a});
  void* arena = memory.data();
  size_t room = memory.size();
  std::align(alignment, arena_bytes, arena, room);
  int32_t status = 0;
  if (entry->inputs.empty() && entry->outputs.empty()) {
    status = function<int32_t(void*, void*, size_t, const void*)>(name)(state, arena, arena_bytes,
                                                                        nullptr);
  } else {
    using Function = int32_t(void*, const void*, const void*, void*, size_t, const void*);
    status = function<Function>(name)(state, in.data(), out.data(), arena, arena_bytes, nullptr);
  }
  outputs.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    const loop::Buffer& buffer = program_.buffer(entry->outputs[i]);
    outputs.emplace_back(buffer.element, static_shape(buffer.shape), std::move(results[i]));
  }
  return status;
}

StateBlock::StateBlock(const loop::Program& program)
    : storage_(new unsigned char[static_cast<size_t>(program.state_bytes) + 64]()),
      bytes_(static_cast<size_t>(program.state_bytes)) {
  void* start = storage_.get();
  size_t room = bytes_ + 64;
  data_ = static_cast<unsigned char*>(std::align(64, bytes_, start, room));
}

loop::StateValues StateBlock::values(const loop::Program& program) const {
  loop::StateValues result;
  for (const loop::BufferId id : program.states()) {
    const loop::Buffer& buffer = program.buffer(id);
    std::vector<std::byte> bytes(static_cast<size_t>(program.storage_bytes(id)));
    memcpy(bytes.data(), data_ + buffer.offset, bytes.size());
    result.emplace(buffer.name, Literal(buffer.element, static_shape(buffer.shape), bytes));
  }
  return result;
}

}  // namespace backcast::state_test
