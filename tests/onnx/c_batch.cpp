// The C emission of many cases, compiled by the host's compiler into one shared object.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "backend/c/emit.h"
#include "driver/device.h"
#include "driver/subprocess.h"
#include "tests/onnx/case_runner.h"

namespace backcast {

namespace fs = std::filesystem;

namespace {

/// Calls `<prefix>_run` through its C structs: int64_t sizes, then pointers, in the ABI's order.
CaseResult call(const NodeCase& node_case, const DataSet& set, void* library) {
  CaseResult result;
  const CompiledModel& model = node_case.model;
  const EntryAbi& entry = model.abi.entries.front();
  void* symbol = dlsym(library, entry.symbol.c_str());
  if (!symbol) {
    result.error = "no symbol " + entry.symbol;
    return result;
  }
  using Run = int32_t (*)(const void*, const void*, void*, size_t, const void*);
  SymbolValues sizes = sizes_for(model.result.program, set.inputs);
  std::vector<uint64_t> in, out;
  for (const SizeField& field : entry.sizes) in.push_back(uint64_t(sizes.at(field.symbol)));
  for (const Literal& input : set.inputs)
    in.push_back(reinterpret_cast<uint64_t>(input.bytes().data()));
  std::vector<std::vector<std::byte>> outputs;
  const auto live_type = [&](const TensorField& field) {
    TensorType type{field.element, {}};
    for (const Dim& dim : model.result.program.buffer(field.buffer).shape) {
      type.shape.push_back(dim.evaluate(sizes));
    }
    return type;
  };
  for (const TensorField& field : entry.outputs) {
    const int64_t elements = live_type(field).element_count().constant();
    outputs.emplace_back(static_cast<size_t>(elements * byte_size(field.element)), std::byte{0xA5});
  }
  for (std::vector<std::byte>& bytes : outputs)
    out.push_back(reinterpret_cast<uint64_t>(bytes.data()));
  in.push_back(0);
  out.push_back(0);
  size_t alignment = static_cast<size_t>(std::max<int64_t>(model.abi.arena_alignment, 16));
  size_t arena_bytes = (static_cast<size_t>(model.abi.arena_bytes) / alignment + 1) * alignment;
  void* arena = std::aligned_alloc(alignment, arena_bytes);
  std::fill_n(static_cast<unsigned char*>(arena), arena_bytes, 0xFF);
  int32_t status =
      reinterpret_cast<Run>(symbol)(in.data(), out.data(), arena, arena_bytes, nullptr);
  std::free(arena);
  if (status != 0) result.error = fmt::format("status {}", status);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& extent = entry.outputs[i].extent;
    if (!extent.empty()) std::memcpy(&sizes[extent], outputs[i].data(), sizeof(int64_t));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!entry.outputs[i].extent.empty()) continue;  // the shapes tell
    const TensorType type = live_type(entry.outputs[i]);
    outputs[i].resize(
        static_cast<size_t>(type.element_count().constant() * byte_size(type.element)));
    result.outputs.emplace_back(type.element, static_shape(type.shape), std::move(outputs[i]));
  }
  return result;
}

}  // namespace

std::vector<std::vector<CaseResult>> run_c_batch(const std::vector<const NodeCase*>& cases) {
  std::vector<std::vector<CaseResult>> results;
  for (const NodeCase* c : cases) results.emplace_back(c->sets.size());
  std::string folder = (fs::temp_directory_path() / "backcast-c-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw InternalError("no temporary folder");
  std::string makefile = "all: batch.so\nOBJECTS =";
  Files files;
  for (const NodeCase* c : cases) {
    for (auto& [name, bytes] : emit_files(c->model, Emit::c)) files[name] = bytes;
    makefile += " " + c->model.abi.prefix + ".o";
  }
  const TargetInfo& target = cases.front()->model.target;
  files["Makefile"] =
      makefile +
      fmt::format(
          "\n%.o: %.c\n\t{} -std=c11 -O0 -fPIC -Wall -Wextra -Wconversion -Wdouble-promotion "
          "-pedantic "
          "-Werror {} -c $< -o $@\nbatch.so: $(OBJECTS)\n\tcc -shared $(OBJECTS) -o $@\n",
          program_exists("ccache") ? "ccache cc" : "cc", target.compiler_flags);
  write_files(folder, files);
  SubprocessResult made = run_subprocess({"make", "-s", "-k", "-j2"}, folder, 1200);
  // Cases that do not compile are reported; the others still run.
  std::set<std::string> broken;
  if (made.status != 0) {
    std::string objects;
    for (const NodeCase* c : cases) {
      fs::path object = fs::path(folder) / (c->model.abi.prefix + ".o");
      if (!fs::exists(object)) broken.insert(c->name);
    }
    for (const NodeCase* c : cases) {
      if (!broken.count(c->name)) objects += " " + c->model.abi.prefix + ".o";
    }
    run_subprocess({"sh", "-c", "cc -shared" + objects + " -o batch.so"}, folder, 600);
  }
  void* library = dlopen((fs::path(folder) / "batch.so").c_str(), RTLD_NOW);
  std::string why = library ? "" : std::string("cannot load: ") + dlerror();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (size_t s = 0; s < results[i].size(); ++s) {
      if (broken.count(cases[i]->name)) {
        size_t at = made.output.find(cases[i]->model.abi.prefix + ".c");
        results[i][s].error = "the C does not compile: " +
                              (at == std::string::npos ? "" : made.output.substr(at, 300));
      } else if (!library) {
        results[i][s].error = why;
      } else {
        results[i][s] = call(*cases[i], cases[i]->sets[s], library);
      }
    }
  }
  if (library) dlclose(library);
  std::error_code error;
  fs::remove_all(folder, error);
  return results;
}

}  // namespace backcast
