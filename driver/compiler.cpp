#include "driver/compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/c/emit.h"
#include "backend/library/header.h"
#include "backend/library/report.h"
#include "backend/llvm/archive.h"
#include "backend/llvm/emit.h"
#include "backend/llvm/host.h"
#include "backend/llvm/object_reader.h"
#include "driver/layers.h"
#include "ir/graph/text.h"
#include "ir/loop/text.h"
#include "ir/ops/op_attrs.h"
#include "ir/ops/ops.h"
#include "passes/graph/differentiate.h"

namespace backcast {

namespace fs = std::filesystem;

Emit parse_emit(const std::string& word, const TargetInfo& target) {
  static const std::map<std::string, Emit> words{{"lib", Emit::lib},
                                                 {"c", Emit::c},
                                                 {"obj", Emit::obj},
                                                 {"llvm", Emit::llvm},
                                                 {"ir", Emit::ir}};
  if (word.empty()) return target.only_c ? Emit::c : Emit::lib;
  auto found = words.find(word);
  if (found == words.end()) {
    throw CompileError("--emit " + word + ": choose one of lib, c, obj, llvm, ir");
  }
  if (target.only_c && found->second != Emit::c && found->second != Emit::ir) {
    throw CompileError(
        fmt::format("--emit {}: for target {} there is C alone (--emit c), for its own compiler",
                    word, target.name));
  }
  return found->second;
}

TargetInfo resolve_target(const std::string& name) {
  if (name == "native") return host_target();
  return *find_target(name);
}

std::string library_name(const std::string& wish, const std::string& model_path) {
  std::string stem = fs::path(model_path).stem().string();
  // A file called model.onnx is named after its folder.
  if (stem == "model") {
    std::string folder = fs::absolute(model_path).parent_path().filename().string();
    if (!folder.empty()) stem = folder;
  }
  std::string name = Identifiers().make(wish.empty() ? stem : wish);
  if (!wish.empty() && name != wish) {
    throw CompileError("--name " + wish + ": not a C identifier; \"" + name + "\" would be one");
  }
  return name;
}

std::string name_file(const std::string& message, const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  std::istringstream lines(message);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    bool named = line.rfind(file, 0) == 0 || line.rfind(path, 0) == 0;
    out += (out.empty() ? "" : "\n") + (named ? line : file + ": " + line);
  }
  return out;
}

namespace {

/// A buffer that the target's pointers cannot span is the user's to mend.
void check_address_space(const Abi& abi, const TargetInfo& target) {
  const int64_t most = target.pointer_bits == 32 ? INT32_MAX : int64_t{1} << 47;
  const auto check = [&](const std::string& what, int64_t count, int64_t size) {
    if (count <= most / size) return;
    throw CompileError(
        fmt::format("{} takes {} elements of {} bytes, more than {} can address; lower the "
                    "model's sizes, symbolic ones with --dim",
                    what, count, size, target.name));
  };
  check("the arena", abi.arena_bytes, 1);
  check("the weights", abi.weight_bytes, 1);
  for (const EntryAbi& entry : abi.entries) {
    for (const std::vector<TensorField>* fields : {&entry.inputs, &entry.outputs}) {
      for (const TensorField& field : *fields) {
        check("\"" + field.name + "\"", field.max_elements, byte_size(field.element));
      }
    }
  }
}

void check_input_names(const InputBounds& bounds, const ImportedModel& model) {
  for (const auto& [name, range] : bounds.named) {
    const std::vector<std::string>& names = model.input_names;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw CompileError(
        fmt::format("--input-range {}=…: the model's inputs are {}", name, fmt::join(names, ", ")));
  }
}

/// Of all constants and initial values as the model has them, before a target packs them.
uint64_t hash_of_values(const Module& module) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  const auto add = [&](const Literal& value) {
    hash = (hash ^ value.hash()) * UINT64_C(0x100000001b3);
  };
  for (const auto& [name, function] : module.functions) {
    for (const Node& node : function.nodes) {
      if (node.op == &ops::constant) add(node.attrs.as<ConstantAttrs>().value);
    }
  }
  for (const StateVariable& state : module.states) add(state.initial);
  return hash == 0 ? 1 : hash;
}

}  // namespace

CompiledModel compile_model(const CompileRequest& request) {
  CompiledModel model;
  model.target = resolve_target(request.target);
  if (request.one_thread) model.target.parallel_grain = 0;
  model.model_file = fs::path(request.model).filename().string();
  PipelineOptions options = request.pipeline;
  options.name = library_name(request.name, request.model);
  try {
    ImportOptions import_options = request.import_options;
    import_options.differentiator = add_vjp;
    std::optional<StreamOptions>& stream = options.passes.stream;
    if (stream) {
      for (const StreamInput& input : stream->inputs) {
        import_options.sequences[input.name] = input.axis;
      }
    }
    Module module;
    if (request.training) {
      ImportedTraining training = import_training(request.model, import_options, *request.training);
      model.imported = std::move(training.model);
      module = std::move(training.module);
    } else {
      model.imported = request.bytes ? import_model_bytes(*request.bytes, {}, import_options)
                                     : import_model(request.model, import_options);
      module = model.imported.module;
      if (stream) stream->endless = model.imported.endless;
      if (!request.derivatives.kinds.empty()) {
        module = add_derivatives(std::move(module), request.derivatives);
      }
    }
    if (options.passes.inputs) check_input_names(*options.passes.inputs, model.imported);
    model.result = run_pipeline(module, model.target, options);
    if (model.result.notes.dropped.channels > 0) {
      if (options.passes.inputs) model.promise = "valid for " + options.passes.inputs->describe();
      model.macs_before = layers_of(model.imported).macs;
    }
    if (model.result.lowered) {
      if (!model.result.program.states().empty()) {
        model.result.program.model_hash = hash_of_values(module);
      }
      if (request.training) {
        const TrainingSpec& spec = request.training->spec;
        model.training = fmt::format("training with {} and {}", enum_name(spec.loss.kind),
                                     enum_name(spec.optimizer.kind));
      }
      if (options.stop_after.empty()) {
        model.abi = abi_of(model.result.program);
        check_address_space(model.abi, model.target);
      }
    }
  } catch (const CompileError& error) {
    throw CompileError(name_file(error.what(), request.model));
  }
  return model;
}

namespace {

/// What stays in flash: code, and all that is neither code nor weights.
void measure(const std::string& object, const CompiledModel& model, ReportOptions& report) {
  const ObjectSummary summary = read_object(object);
  int64_t code = 0, data = 0;
  for (const ObjectSection& section : summary.sections) {
    if (section.allocated) (section.executable ? code : data) += section.bytes;
  }
  report.code_bytes = code;
  report.table_bytes = data - model.abi.weight_bytes;
  const std::string prefix = kernel_symbol(model.result.program, "");
  for (const ObjectSymbol& symbol : summary.symbols) {
    if (!symbol.name.starts_with(prefix)) continue;
    report.kernel_bytes[symbol.name.substr(prefix.size())] = symbol.bytes;
  }
}

}  // namespace

Files emit_files(const CompiledModel& model, Emit emit, const EmitOptions& options) {
  Files files;
  const std::string& name = model.abi.prefix;
  const loop::Program& program = model.result.program;
  const bool names = options.names.value_or(!model.target.is_microcontroller());
  if (emit == Emit::ir) {
    std::string text_name =
        model.result.lowered ? program.name : library_name("", model.model_file);
    if (model.result.lowered) {
      files[text_name + ".ir"] = loop::print(program);
      files[text_name + ".constants"] = loop::print_constants(program);
    } else {
      PrintOptions print_options;
      print_options.side_file = text_name + ".constants";
      files[text_name + ".ir"] = print(model.result.module, print_options);
      files[text_name + ".constants"] = print_constants(model.result.module, print_options);
    }
    return files;
  }
  if (emit == Emit::llvm) {
    files[name + ".ll"] = emit_llvm_text(program, model.target, {.names = names});
    return files;
  }
  HeaderOptions header;
  header.model_file = model.model_file;
  header.target = model.target.name;
  header.version = BACKCAST_VERSION;
  header.training = model.training;
  header.promise = model.promise;
  header.has_section = model.target.system == System::usual;
  ReportOptions report;
  report.model_file = header.model_file;
  report.target = header.target;
  report.version = BACKCAST_VERSION;
  report.dropped_channels = model.result.notes.dropped.channels;
  report.macs_before = model.macs_before;
  report.promise = model.promise;
  report.stream = model.result.notes.stream.lines();
  for (const std::string& line : report.stream) {
    header.stream += (header.stream.empty() ? "A" + line.substr(1) : ", " + line);
  }
  if (!header.stream.empty()) header.stream += ".";
  header.first_call = model.result.notes.stream.first_whole_call();
  if (!report.stream.empty() && !model.result.notes.stream.endless) {
    report.macs_whole = layers_of(model.imported).macs;
  }
  for (const WinogradLayer& layer : model.result.notes.winograd.layers) {
    report.winograd.push_back({layer.node, layer.tile, layer.error, layer.direct_error,
                               layer.weight_bytes, layer.scratch_bytes});
  }
  for (const Loc& loc : model.result.notes.skipping) report.skips_zeros.push_back(loc.node);
  report.examples = model.result.notes.examples;
  report.bands = model.result.notes.bands;
  report.recomputation = model.result.notes.recomputation;
  if (emit == Emit::c) {
    COptions c_options;
    c_options.header = header;
    c_options.names = names;
    CSource source = emit_c(program, model.target, c_options);
    files[name + ".c"] = source.source;
    files[name + ".h"] = source.header;
    if (!source.constants_bin.empty()) files[source.constants_name] = source.constants_bin;
    report.stack_bytes = source.stack_bytes;
  } else {
    ObjectFile object = emit_object(program, model.target, {.names = names});
    header.stack_bytes = object.stack_bytes;
    report.stack_bytes = object.stack_bytes;
    measure(object.bytes, model, report);
    files[name + ".h"] = header_text(model.abi, header);
    const bool windows = model.target.system == System::windows;
    const std::string object_name = name + (windows ? ".obj" : ".o");
    if (emit == Emit::obj) {
      files[object_name] = object.bytes;
    } else {
      files[windows ? name + ".lib" : "lib" + name + ".a"] =
          write_archive({{object_name, object.bytes}});
    }
  }
  Report made = report_of(program, report);
  files[name + ".report.txt"] = report_text(made);
  files[name + ".report.json"] = report_json(made);
  return files;
}

void write_files(const std::string& folder, const Files& files) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder)) {
    throw CompileError(fmt::format("{}: cannot make the output folder ({})", folder,
                                   error ? error.message() : "it is a file"));
  }
  // Known before the first file is in place: a rename onto a folder fails.
  for (const auto& [name, bytes] : files) {
    if (fs::is_directory(fs::path(folder) / name)) {
      throw CompileError(fmt::format("{}/{}: cannot write (it is a folder)", folder, name));
    }
  }
  std::vector<std::pair<fs::path, fs::path>> written;  // temporary, final
  const auto discard = [&] {
    for (const auto& [temporary, path] : written) fs::remove(temporary, error);
  };
  for (const auto& [name, bytes] : files) {
    fs::path path = fs::path(folder) / name;
    fs::path temporary = fs::path(folder) / ("." + name + ".partial");
    written.emplace_back(temporary, path);
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      discard();
      throw CompileError(fmt::format("{}: cannot write ({})", path.string(),
                                     std::generic_category().message(errno)));
    }
  }
  for (const auto& [temporary, path] : written) {
    fs::rename(temporary, path, error);
    if (error) {
      std::string why = error.message();
      discard();
      throw CompileError(fmt::format("{}: cannot write ({})", path.string(), why));
    }
  }
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || fs::is_directory(path)) throw CompileError(path + ": cannot be read");
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

}  // namespace backcast
