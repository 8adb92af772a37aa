// See compiled.h.
#include "tests/backend_c/compiled.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "backend/c/emit.h"
#include "ir/graph/error.h"

namespace backcast::c_test {

bool is_installed(const std::string& program) {
  bool ok = false;
  run_command("command -v " + program, ok);
  return ok;
}

std::vector<Compiler> host_compilers() {
  std::vector<Compiler> found;
  for (const char* name : {"gcc", "clang-19"}) {
    if (is_installed(name)) found.push_back({name, name});
  }
  return found;
}

const TargetInfo& host_target() {
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return *find_target(wide ? "x86-64-v3" : "x86-64");
}

std::string run_command(const std::string& command, bool& ok) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  BC_CHECK(pipe != nullptr, "no shell");
  std::string output;
  char buffer[4096];
  size_t count = 0;
  while ((count = fread(buffer, 1, sizeof buffer, pipe)) > 0) output.append(buffer, count);
  ok = pclose(pipe) == 0;
  return output;
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "backcast_XXXXXX").string();
  BC_CHECK(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void Folder::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ + "/" + name, std::ios::binary) << content;
}

Library::Library(const Folder& folder, const std::vector<Case>& cases, const TargetInfo& target,
                 const std::string& command, std::string& messages) {
  std::string files;
  for (const Case& c : cases) {
    const std::string& name = c.program.name;
    const CSource source =
        emit_c(c.program, target, {.header = {.target = target.name}, .needs_options = false});
    folder.write(name + ".c", source.source);
    folder.write(name + ".h", source.header);
    files += " " + name + ".c";
  }
  static int number = 0;
  const std::string path = fmt::format("{}/library{}.so", folder.path(), number++);
  bool ok = false;
  messages = run_command(fmt::format("cd {} && {} {} -shared -fPIC -o {} {}", folder.path(),
                                     command, target.compiler_flags, path, files),
                         ok);
  if (!ok && messages.empty()) messages = "the compiler failed";
  if (!messages.empty()) return;
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) messages = dlerror();
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* Library::symbol(const std::string& name) const {
  void* result = handle_ == nullptr ? nullptr : dlsym(handle_, name.c_str());
  BC_CHECK(result != nullptr, "no symbol {}", name);
  return result;
}

namespace {

/// Symbols that are a whole dimension of an input get that dimension's extent.
SymbolValues sizes_of(const Case& c) {
  SymbolValues values;
  const loop::EntryPoint& entry = c.program.entries[0];
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const Dims& shape = c.program.buffer(entry.inputs[i]).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      std::set<std::string> symbols;
      shape[d].collect_symbols(symbols);
      if (symbols.size() == 1 && shape[d] == Dim::symbol(*symbols.begin())) {
        values[*symbols.begin()] = c.inputs[i].shape()[d];
      }
    }
  }
  return values;
}

}  // namespace

std::vector<Literal> run(const Library& library, const Case& c, int32_t& status) {
  const loop::Program& program = c.program;
  const loop::EntryPoint& entry = program.entries[0];
  const SymbolValues sizes = sizes_of(c);
  // Sizes and pointers all take eight bytes on this host.
  std::vector<uint64_t> in, out;
  for (const auto& [symbol, range] : program.symbols) {
    in.push_back(static_cast<uint64_t>(sizes.at(symbol)));
  }
  for (const Literal& literal : c.inputs) {
    in.push_back(reinterpret_cast<uint64_t>(literal.bytes().data()));
  }
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<std::byte>> outputs;
  for (const loop::BufferId id : entry.outputs) {
    const loop::Buffer& buffer = program.buffer(id);
    shapes.emplace_back();
    int64_t bytes = byte_size(buffer.element);
    for (const Dim& d : buffer.shape) {
      shapes.back().push_back(d.evaluate(sizes));
      bytes *= shapes.back().back();
    }
    outputs.emplace_back(static_cast<size_t>(bytes), std::byte{0xa5});
  }
  for (std::vector<std::byte>& bytes : outputs) {
    out.push_back(reinterpret_cast<uint64_t>(bytes.data()));
  }
  in.push_back(0);
  out.push_back(0);
  const auto alignment = static_cast<size_t>(std::max<int64_t>(program.arena_alignment, 8));
  const size_t arena_bytes =
      (static_cast<size_t>(program.arena_bytes) + alignment - 1) / alignment * alignment;
  void* arena = arena_bytes == 0 ? nullptr : aligned_alloc(alignment, arena_bytes);
  using Entry = int32_t (*)(const void*, const void*, void*, size_t, const void*);
  const auto function = reinterpret_cast<Entry>(library.symbol(program.name + "_run"));
  status = function(in.data(), out.data(), arena, arena_bytes, nullptr);
  free(arena);
  std::vector<Literal> result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    result.emplace_back(program.buffer(entry.outputs[i]).element, shapes[i], std::move(outputs[i]));
  }
  return result;
}

std::string difference(const Literal& actual, const Literal& expected) {
  if (!(actual.type() == expected.type())) return "types differ";
  const auto size = static_cast<size_t>(byte_size(actual.element()));
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(&actual.bytes()[at], &expected.bytes()[at], size) == 0) continue;
    const double a = actual.as_double(i), b = expected.as_double(i);
    if (is_float(actual.element()) && std::isnan(a) && std::isnan(b)) continue;
    return fmt::format("element {}: {} instead of {}", i, a, b);
  }
  return {};
}

}  // namespace backcast::c_test
