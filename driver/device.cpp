#include "driver/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "driver/device_cases.h"
#include "driver/harness/harness.h"
#include "driver/subprocess.h"
#include "ir/graph/evaluator.h"

namespace backcast {

namespace fs = std::filesystem;

namespace {

/// Where the harness' sources are: beside an installed program, or in the source tree.
fs::path harness_folder() {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  fs::path installed = self.parent_path().parent_path() / "share/backcast/harness";
  return fs::exists(installed / "harness.c") ? installed : fs::path(BACKCAST_SOURCE_HARNESS);
}

/// clang's linker for WebAssembly, a package of its own: lld-19.
constexpr const char* kWasmLinker = "wasm-ld-19";

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

/// A temporary folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (fs::temp_directory_path() / "backcast-XXXXXX").string();
    if (!mkdtemp(path.data())) throw CompileError("no temporary folder can be made");
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads plain values off a byte string.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T)), sizeof(T));
    return value;
  }
  const char* take_bytes(size_t n) {
    if (bytes_.size() - at_ < n) throw InternalError("the device's answer is too short");
    at_ += n;
    return bytes_.data() + at_ - n;
  }
  bool done() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

std::string findings_of(uint32_t flags) {
  static const std::pair<uint32_t, const char*> names[] = {
      {HARNESS_OUTPUT_OVERRUN, "wrote outside an output"},
      {HARNESS_ARENA_OVERRUN, "wrote outside the arena"},
      {HARNESS_INPUT_CHANGED, "changed an input"},
      {HARNESS_STACK_BOUND, "took more stack than promised"},
  };
  std::string text;
  for (const auto& [flag, name] : names) {
    if (flags & flag) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

}  // namespace

SymbolValues sizes_for(const loop::Program& program, const std::vector<Literal>& inputs,
                       size_t entry_index) {
  const loop::EntryPoint& entry = program.entries[entry_index];
  SymbolValues values;
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const loop::Buffer& buffer = program.buffer(entry.inputs[i]);
    TensorType type{buffer.element, buffer.shape};
    if (i >= inputs.size() || inputs[i].element() != type.element ||
        !bind_symbols(type, inputs[i].shape(), values)) {
      throw CompileError(
          fmt::format("input \"{}\" is {}, but {} was given", buffer.name, to_string(type),
                      i < inputs.size() ? to_string(inputs[i].type()) : std::string("nothing")));
    }
  }
  for (const auto& [name, range] : program.symbols) {
    // As large as can be where only the results will tell.
    const bool is_measured = std::ranges::any_of(
        entry.extents, [&](const auto& extent) { return extent.second == name; });
    values.emplace(name, is_measured ? range.max : range.min);
  }
  return values;
}

struct DeviceImage::Impl {
  TemporaryFolder folder;
  TargetInfo target;
  std::vector<const CompiledModel*> models;
  std::vector<DeviceCase> cases;

  /// The index of a case; the first entry point for an empty name.
  size_t find_case(size_t model, const std::string& name) const {
    for (size_t i = 0; i < cases.size(); ++i) {
      if (cases[i].model == model && (name.empty() || cases[i].name == name)) return i;
    }
    throw InternalError("the library has no function " + name);
  }

  void require(const std::string& program) const {
    if (program == "./harness" || program_exists(program)) return;
    throw CompileError(
        fmt::format("{} is needed to run target {} here; install it", program, target.name));
  }

  void check(const std::vector<std::string>& command, const char* what) const {
    require(command[0]);
    SubprocessResult result = run_subprocess(command, folder.path().string(), 600);
    if (result.status != 0) {
      throw InternalError(fmt::format("{} failed with status {}:\n{}", what, result.status,
                                      result.output.substr(0, 4000)));
    }
  }

  bool bare() const { return target.runner == Runner::qemu_system; }
  /// Which of the bare machines.
  bool is_arm() const { return target.architecture == Architecture::thumb; }
  bool is_wasm() const { return target.runner == Runner::node; }
  std::string compiler() const {
    return target.runner == Runner::native || target.cross_compiler.empty() ? "cc"
                                                                            : target.cross_compiler;
  }

  void build(Emit emit) {
    Files files;
    std::vector<std::string> link;
    for (const CompiledModel* model : models) {
      for (auto& [name, bytes] : emit_files(*model, emit)) files[name] = bytes;
      const std::string& prefix = model->abi.prefix;
      link.push_back(emit == Emit::c ? prefix + ".o" : "lib" + prefix + ".a");
    }
    files["table.c"] = case_table(models, cases, emit);
    write_files(folder.path().string(), files);
    std::vector<std::string> flags = words(target.compiler_flags);
    if (emit == Emit::c) {
      for (const CompiledModel* model : models) {
        std::vector<std::string> command{compiler(), "-std=c11", "-O2"};
        command.insert(command.end(), flags.begin(), flags.end());
        const std::string& prefix = model->abi.prefix;
        for (const std::string& word :
             {std::string("-c"), prefix + ".c", std::string("-o"), prefix + ".o"}) {
          command.push_back(word);
        }
        check(command, "compiling the generated C");
      }
    }
    check(link_command(flags, link), "linking the generated library with the harness");
  }

  std::vector<std::string> link_command(const std::vector<std::string>& flags,
                                        const std::vector<std::string>& libraries) const {
    fs::path h = harness_folder();
    std::vector<std::string> command{compiler(), "-std=gnu11", "-O2"};
    command.insert(command.end(), flags.begin(), flags.end());
    std::vector<std::string> sources{"harness.c"};
    if (bare()) {
      command.push_back("-ffreestanding");
      sources.insert(sources.end(), {"harness_io_semihosting.c", "harness_memory.c",
                                     is_arm() ? "startup_cortex_m.c" : "startup_riscv32.c"});
    } else if (is_wasm()) {
      require(kWasmLinker);
      command.push_back("-ffreestanding");
      sources.insert(sources.end(), {"harness_io_wasm.c", "harness_memory.c"});
    } else {
      sources.push_back("harness_io_posix.c");
    }
    command.push_back("-I" + h.string());
    command.push_back("-I.");
    command.push_back("table.c");
    for (const std::string& source : sources) command.push_back((h / source).string());
    command.insert(command.end(), libraries.begin(), libraries.end());
    command.push_back("-o");
    command.push_back("harness");
    if (bare()) {
      for (const std::string& word :
           {std::string("-nostdlib"), std::string("-nostartfiles"), "-L" + h.string(),
            std::string("-T"), target.qemu + ".ld", std::string("-lgcc")}) {
        command.push_back(word);
      }
      if (is_arm()) command.push_back("-Wl,--no-enum-size-warning");
    } else if (is_wasm()) {
      for (const char* word :
           {"-nostdlib", "-Wl,--no-entry", "-Wl,--stack-first", "-Wl,-z,stack-size=1048576"}) {
        command.push_back(word);
      }
    } else if (target.runner == Runner::qemu_user) {
      command.push_back("-static");
    } else {
      // Binding memcpy at its first call would paint the dynamic linker's stack as the library's.
      command.push_back("-Wl,-z,now");
    }
    return command;
  }

  std::vector<std::string> run_command() const {
    if (bare()) {
      return words(fmt::format(
          "{} -M {} -nodefaults -display none -chardev stdio,id=console,signal=off "
          "-semihosting-config "
          "enable=on,target=native,chardev=console,arg=harness,arg=request,arg=response "
          "-kernel harness",
          is_arm() ? "qemu-system-arm -nic user,restrict=on"
                   : "qemu-system-riscv32 -bios none -net none",
          target.qemu));
    }
    if (is_wasm()) {
      return {target.qemu, (harness_folder() / "harness.mjs").string(), "harness", "request",
              "response"};
    }
    if (target.runner == Runner::qemu_user) {
      // Debian has the same emulator twice: qemu-user, and qemu-user-static with this ending.
      const std::string static_form = target.qemu + "-static";
      const bool only_static = !program_exists(target.qemu) && program_exists(static_form);
      std::vector<std::string> command{only_static ? static_form : target.qemu};
      if (!target.qemu_cpu.empty()) {
        command.push_back("-cpu");
        command.push_back(target.qemu_cpu);
      }
      for (const char* word : {"./harness", "request", "response"}) command.push_back(word);
      return command;
    }
    return {"./harness", "request", "response"};
  }
};

DeviceImage::DeviceImage(const std::vector<const CompiledModel*>& models, Emit emit)
    : impl_(std::make_unique<Impl>()) {
  BC_CHECK(!models.empty(), "an image without models");
  impl_->target = models.front()->target;
  impl_->models = models;
  impl_->cases = device_cases(models);
  if (impl_->target.runner == Runner::none) {
    throw CompileError(
        fmt::format("target {} can be compiled for but not run here", impl_->target.name));
  }
  impl_->build(emit);
}

DeviceImage::~DeviceImage() = default;

int64_t DeviceImage::image_bytes() const {
  return static_cast<int64_t>(fs::file_size(impl_->folder.path() / "harness"));
}

std::vector<DeviceReply> DeviceImage::run(const std::vector<DeviceCall>& calls) const {
  std::string request;
  append(request, harness_request{HARNESS_MAGIC, HARNESS_VERSION, uint32_t(calls.size()), 0});
  std::vector<SymbolValues> sizes;
  for (const DeviceCall& call : calls) {
    const CompiledModel& model = *impl_->models[call.model];
    const size_t index = impl_->find_case(call.model, call.entry);
    const EntryAbi* entry = impl_->cases[index].entry;
    SymbolValues values;
    if (entry) {
      values = sizes_for(model.result.program, call.inputs,
                         static_cast<size_t>(entry - model.abi.entries.data()));
    }
    append(request, harness_order{uint32_t(index), uint32_t(entry ? entry->sizes.size() : 0),
                                  uint32_t(call.inputs.size()), call.fill, HARNESS_CASE_ARENA, 0,
                                  call.null_outputs});
    for (size_t i = 0; entry && i < entry->sizes.size(); ++i) {
      append(request, values.at(entry->sizes[i].symbol));
    }
    sizes.push_back(std::move(values));
    for (const Literal& input : call.inputs) {
      append(request, static_cast<uint64_t>(input.bytes().size()));
      request.append(reinterpret_cast<const char*>(input.bytes().data()), input.bytes().size());
    }
  }
  write_files(impl_->folder.path().string(), {{"request", request}});
  std::vector<std::string> command = impl_->run_command();
  impl_->require(command[0]);
  SubprocessResult result = run_subprocess(command, impl_->folder.path().string(), 900);
  if (result.status == HARNESS_EXIT_MEMORY) {
    throw CompileError(
        fmt::format("{}: target {} has too little memory here for the arena, state, inputs and "
                    "outputs of a run; "
                    "--target native has more, a smaller --dim needs less",
                    impl_->models.front()->model_file, impl_->target.name));
  }
  if (result.status != 0) {
    throw InternalError(fmt::format("the program for {} ended with status {}: {}",
                                    impl_->target.name, result.status, result.output));
  }
  std::string response = read_file((impl_->folder.path() / "response").string());
  Reader reader(response);
  std::vector<DeviceReply> replies;
  for (size_t c = 0; c < calls.size(); ++c) {
    const DeviceCase& which = impl_->cases[impl_->find_case(calls[c].model, calls[c].entry)];
    harness_reply head = reader.take<harness_reply>();
    DeviceReply reply{head.status, {}, int64_t(head.stack_bytes), findings_of(head.flags)};
    std::vector<std::pair<uint64_t, const char*>> held_bytes;
    for (size_t k = 0; k < which.outputs.size(); ++k) {
      const uint64_t held = reader.take<uint64_t>();
      held_bytes.emplace_back(held, reader.take_bytes(held));
      const std::string extent = which.entry ? which.entry->outputs[k].extent : std::string();
      if (extent.empty()) continue;
      if (held != sizeof(int64_t)) throw InternalError("the device's answer has no extent");
      std::memcpy(&sizes[c][extent], held_bytes.back().second, sizeof(int64_t));
    }
    for (size_t k = 0; k < which.outputs.size(); ++k) {
      if (which.entry && !which.entry->outputs[k].extent.empty()) continue;  // the shapes tell
      const DeviceArgument& output = which.outputs[k];
      const auto [held, bytes] = held_bytes[k];
      if (held == 0 && output.max_bytes > 0) {  // a null output
        reply.outputs.emplace_back();
        continue;
      }
      std::vector<int64_t> shape;
      int64_t count = 1;
      for (const Dim& dim : output.shape) {
        shape.push_back(dim.evaluate(sizes[c]));
        count *= shape.back();
      }
      size_t live = static_cast<size_t>(count * byte_size(output.element));
      if (live > held) throw InternalError("the device's answer is too short");
      const std::byte* data = reinterpret_cast<const std::byte*>(bytes);
      reply.outputs.emplace_back(output.element, shape, std::vector<std::byte>(data, data + live));
    }
    replies.push_back(std::move(reply));
  }
  return replies;
}

}  // namespace backcast
