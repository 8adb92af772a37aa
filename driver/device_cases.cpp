#include "driver/device_cases.h"

#include <fmt/format.h>

namespace backcast {
namespace {

DeviceArgument argument_of(const loop::Program& program, const TensorField& field) {
  return {field.element, program.buffer(field.buffer).shape,
          field.max_elements * byte_size(field.element)};
}

DeviceArgument plain(ElementType element, const std::vector<int64_t>& shape) {
  DeviceArgument argument{element, {}, byte_size(element)};
  for (int64_t extent : shape) {
    argument.shape.push_back(extent);
    argument.max_bytes *= extent;
  }
  return argument;
}

/// Elements of the state's variables of these roles (bits).
int64_t flat_elements(const CompiledModel& model, uint32_t roles) {
  int64_t count = 0;
  for (const StateVariableAbi& variable : model.abi.state.variables) {
    const loop::Buffer& buffer = model.result.program.buffer(variable.buffer);
    if (roles >> variable.role & 1u) count += variable.bytes / byte_size(buffer.element);
  }
  return count;
}

/// Bytes that a checkpoint takes at most: the state, a record for every variable, head and end.
int64_t checkpoint_bytes(const StateAbi& state) {
  return state.bytes + 64 * static_cast<int64_t>(state.variables.size()) + 256;
}

DeviceCase function_case(const CompiledModel& model, const StateFunction& function) {
  const StateAbi& state = model.abi.state;
  const ElementType flat = state.flat_type == "double" ? ElementType::f64 : ElementType::f32;
  DeviceCase result;
  result.name = function.symbol.substr(model.abi.prefix.size() + 1);
  result.function = &function;
  switch (function.kind) {
    case StateFunction::Kind::init:
      result.inputs = {plain(ElementType::u64, {})};
      break;
    case StateFunction::Kind::set_learning_rate:
      result.inputs = {plain(ElementType::f32, {})};
      break;
    case StateFunction::Kind::get:
      result.outputs = {plain(flat, {flat_elements(model, function.roles)})};
      break;
    case StateFunction::Kind::set:
      result.inputs = {plain(flat, {flat_elements(model, function.roles)})};
      break;
    case StateFunction::Kind::save:
      result.outputs = {plain(ElementType::u8, {checkpoint_bytes(state)}),
                        plain(ElementType::i64, {})};
      break;
    case StateFunction::Kind::load:
      result.inputs = {plain(ElementType::u8, {checkpoint_bytes(state)}),
                       plain(ElementType::i64, {})};
      break;
  }
  return result;
}

/// Callbacks of checkpoints into and out of memory.
constexpr const char* kStreams =
    "typedef struct { unsigned char *bytes; size_t at, size; } stream;\n"
    "static bc_status stream_write(void *user, const void *bytes, size_t count) {\n"
    "  stream *s = user;\n"
    "  if (count > s->size - s->at) return BC_ERROR_IO;\n"
    "  for (size_t i = 0; i < count; i++) s->bytes[s->at++] = ((const unsigned char *)bytes)[i];\n"
    "  return BC_OK;\n}\n"
    "static bc_status stream_read(void *user, void *bytes, size_t count) {\n"
    "  stream *s = user;\n"
    "  if (count > s->size - s->at) return BC_ERROR_IO;\n"
    "  for (size_t i = 0; i < count; i++) ((unsigned char *)bytes)[i] = s->bytes[s->at++];\n"
    "  return BC_OK;\n}\n";

std::string function_call(const CompiledModel& model, const StateFunction& function) {
  const std::string state = model.abi.prefix + "_memory";
  switch (function.kind) {
    case StateFunction::Kind::init:
      return fmt::format("{}({}, sizeof {}, *(const uint64_t *)i[0])", function.symbol, state,
                         state);
    case StateFunction::Kind::set_learning_rate:
      return fmt::format("{}({}, *(const float *)i[0])", function.symbol, state);
    case StateFunction::Kind::get:
      return fmt::format("{}({}, o[0])", function.symbol, state);
    case StateFunction::Kind::set:
      return fmt::format("{}({}, i[0])", function.symbol, state);
    case StateFunction::Kind::save:
    case StateFunction::Kind::load:
      return fmt::format("{}({}, &callbacks)", function.symbol, state);
  }
  return {};
}

std::string function_thunk(const CompiledModel& model, const DeviceCase& c) {
  const StateFunction& function = *c.function;
  std::string text;
  const bool save = function.kind == StateFunction::Kind::save;
  if (save) {
    text += fmt::format(
        "  stream s = {{o[0], 0, {}u}};\n  bc_writer callbacks = {{&s, "
        "stream_write}};\n",
        c.outputs[0].max_bytes);
  } else if (function.kind == StateFunction::Kind::load) {
    text +=
        "  stream s = {(unsigned char *)(uintptr_t)i[0], 0, (size_t)*(const int64_t *)i[1]};\n"
        "  bc_reader callbacks = {&s, stream_read};\n";
  }
  text += fmt::format("  HARNESS_CALL(status, {});\n", function_call(model, function));
  if (save) text += "  *(int64_t *)o[1] = (int64_t)s.at;\n";
  return text;
}

std::string entry_thunk(const CompiledModel& model, const EntryAbi& entry) {
  std::string text;
  if (entry.has_structs) {
    text += fmt::format("  {0}_inputs in;\n  {0}_outputs out;\n", entry.symbol);
    if (entry.inputs.empty() && entry.sizes.empty()) text += "  in.reserved = 0;\n";
    if (entry.outputs.empty()) text += "  out.reserved = 0;\n";
    for (size_t k = 0; k < entry.sizes.size(); ++k) {
      text += fmt::format("  in.{} = d[{}];\n", entry.sizes[k].identifier, k);
    }
    for (size_t k = 0; k < entry.inputs.size(); ++k) {
      text += fmt::format("  in.{} = i[{}];\n", entry.inputs[k].identifier, k);
    }
    for (size_t k = 0; k < entry.outputs.size(); ++k) {
      text += fmt::format("  out.{} = o[{}];\n", entry.outputs[k].identifier, k);
    }
  }
  return text + fmt::format("  HARNESS_CALL(status, {}({}{}arena, bytes, 0));\n", entry.symbol,
                            entry.has_state ? model.abi.prefix + "_memory, " : "",
                            entry.has_structs ? "&in, &out, " : "");
}

std::string sizes_text(const std::string& name, const std::vector<DeviceArgument>& arguments) {
  std::string text = fmt::format("static const size_t {}[] = {{", name);
  for (const DeviceArgument& argument : arguments) text += fmt::format("{}u, ", argument.max_bytes);
  return text + "0};\n";
}

}  // namespace

std::vector<DeviceCase> device_cases(const std::vector<const CompiledModel*>& models) {
  std::vector<DeviceCase> cases;
  for (size_t m = 0; m < models.size(); ++m) {
    const CompiledModel& model = *models[m];
    for (const EntryAbi& entry : model.abi.entries) {
      DeviceCase result{m, entry.name, &entry, nullptr, {}, {}};
      for (const TensorField& field : entry.inputs) {
        result.inputs.push_back(argument_of(model.result.program, field));
      }
      for (const TensorField& field : entry.outputs) {
        result.outputs.push_back(argument_of(model.result.program, field));
      }
      cases.push_back(std::move(result));
    }
    for (const StateFunction& function : model.abi.functions) {
      cases.push_back(function_case(model, function));
      cases.back().model = m;
    }
  }
  return cases;
}

std::string case_table(const std::vector<const CompiledModel*>& models,
                       const std::vector<DeviceCase>& cases, Emit emit) {
  std::string text = "#include \"harness.h\"\n";
  bool streams = false;
  for (const CompiledModel* m : models) {
    text += fmt::format("#include \"{}.h\"\n", m->abi.prefix);
    if (m->abi.state.bytes == 0) continue;
    streams = true;
    text +=
        fmt::format("static _Alignas({0}_STATE_ALIGN) unsigned char {1}_memory[{0}_STATE_BYTES];\n",
                    m->abi.macro_prefix, m->abi.prefix);
  }
  if (streams) text += kStreams;
  std::string table = "const harness_case harness_cases[] = {\n";
  for (const DeviceCase& c : cases) {
    const CompiledModel& model = *models[c.model];
    const std::string symbol = c.entry ? c.entry->symbol : c.function->symbol;
    text += sizes_text(symbol + "_in_bytes", c.inputs);
    text += sizes_text(symbol + "_out_bytes", c.outputs);
    text += fmt::format(
        "static int32_t {}_thunk(const void *const *i, void *const *o, const int64_t *d,\n"
        "    void *arena, size_t bytes) {{\n  bc_status status;\n"
        "  (void)i; (void)o; (void)d; (void)arena; (void)bytes;\n",
        symbol);
    text += c.entry ? entry_thunk(model, *c.entry) : function_thunk(model, c);
    text += "  return status;\n}\n";
    // The stack of compiled C is an estimate: the compiler's spills are not in it.
    const std::string stack = emit == Emit::c ? "0u" : model.abi.macro_prefix + "_STACK_BYTES";
    table += fmt::format(
        "  {{\"{0}\", {0}_thunk, {1}u, {2}u, 8u, {3}, {4}u, {5}u, {0}_in_bytes, {6}u, "
        "{0}_out_bytes}},\n",
        symbol, c.entry ? model.abi.arena_bytes : 0, model.abi.arena_alignment, stack,
        c.entry ? c.entry->sizes.size() : 0, c.inputs.size(), c.outputs.size());
  }
  return text + table + "};\nconst size_t harness_case_count = " + std::to_string(cases.size()) +
         ";\n";
}

}  // namespace backcast
