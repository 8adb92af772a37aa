// See abi.h.
#include "backend/library/abi.h"

#include <algorithm>
#include <set>

#include "ir/graph/error.h"
#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"

namespace backcast {
namespace {

/// Keywords of C23 and C++23, alternative tokens, and macros that common headers or compilers
/// define as plain words.
constexpr std::string_view kReserved[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
    "co_yield", "compl", "complex", "concept", "const", "const_cast", "consteval", "constexpr",
    "constinit", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "imaginary", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not",
    "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
    "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union", "unsigned",
    "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
    // macros
    "EOF", "HUGE_VAL", "I", "INFINITY", "NAN", "NDEBUG", "NULL", "assert", "errno", "i386", "linux",
    "noreturn", "offsetof", "stderr", "stdin", "stdout", "unix",
    // the struct's own
    "reserved"};

bool is_reserved(std::string_view word) {
  return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

int64_t max_elements(const loop::Program& program, loop::BufferId id) {
  const loop::Buffer& buffer = program.buffer(id);
  return program.storage_bytes(id) / byte_size(buffer.element);
}

std::vector<TensorField> tensor_fields(const loop::Program& program, const loop::EntryPoint& entry,
                                       const std::vector<loop::BufferId>& ids,
                                       loop::BufferClass kind, const std::string& prefix,
                                       Identifiers& names) {
  std::vector<TensorField> fields;
  Identifiers macro_names;
  std::set<loop::BufferId> seen;
  for (loop::BufferId id : ids) {
    const loop::Buffer& buffer = program.buffer(id);
    BC_CHECK(buffer.kind == kind && buffer.view_of < 0,
             "buffer {} of an entry point is not an input or output of its own", buffer.name);
    BC_CHECK(seen.insert(id).second, "buffer {} twice in an entry point", buffer.name);
    TensorField field;
    // From the second entry point on, a buffer's name has the entry point's in front.
    field.name = buffer.name.substr(buffer.name.starts_with(prefix) ? prefix.size() : 0);
    field.identifier = names.make(field.name);
    field.macro_name = macro_names.make(upper_case(field.identifier));
    field.buffer = id;
    field.element = buffer.element;
    field.c_type = c_type_of(buffer.element);
    field.shape = to_string(TensorType{buffer.element, buffer.shape});
    field.max_elements = max_elements(program, id);
    field.nullable = field.max_elements == 0 || entry.optional_outputs.contains(id);
    const auto range = entry.ranges.find(id);
    if (range != entry.ranges.end()) field.range = range->second;
    const auto extent = entry.extents.find(id);
    if (extent != entry.extents.end()) field.extent = extent->second;
    fields.push_back(std::move(field));
  }
  return fields;
}

std::vector<Check> checks_of(const Abi& abi, const EntryAbi& entry) {
  using Kind = Check::Kind;
  std::vector<Check> checks;
  if (entry.has_structs) checks = {{Kind::in_null, Status::null}, {Kind::out_null, Status::null}};
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    if (!entry.inputs[i].nullable) checks.push_back({Kind::input_null, Status::null, i});
  }
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    if (!entry.outputs[i].nullable) checks.push_back({Kind::output_null, Status::null, i});
  }
  if (entry.has_state) checks.push_back({Kind::state_null, Status::null});
  if (abi.arena_bytes > 0) {
    checks.push_back({Kind::arena_null, Status::null});
    checks.push_back({Kind::arena_size, Status::arena_size, 0, abi.arena_bytes});
    if (abi.arena_alignment > 1) {
      checks.push_back({Kind::arena_alignment, Status::alignment, 0, abi.arena_alignment});
    }
  }
  if (entry.has_state) {
    checks.push_back({Kind::state_alignment, Status::alignment, 0, abi.state.alignment});
  }
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const int64_t bytes = byte_size(entry.inputs[i].element);
    if (bytes > 1) checks.push_back({Kind::input_alignment, Status::alignment, i, bytes});
  }
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    const int64_t bytes = byte_size(entry.outputs[i].element);
    if (bytes > 1) checks.push_back({Kind::output_alignment, Status::alignment, i, bytes});
  }
  for (size_t i = 0; i < entry.sizes.size(); ++i) {
    checks.push_back({Kind::dimension, Status::dimension, i});
  }
  if (entry.has_state) checks.push_back({Kind::state_header, Status::state});
  return checks;
}

std::vector<SizeField> size_fields(const loop::Program& program, Identifiers& names) {
  std::vector<SizeField> fields;
  Identifiers macro_names({"ARENA", "STACK", "WEIGHT", "MODEL", "STATE", "PARAMETER"});
  for (const std::string& symbol : loop::caller_symbols(program)) {
    const DimRange& range = program.symbols.at(symbol);
    const std::string identifier = names.make(symbol);
    fields.push_back({symbol, identifier, macro_names.make(upper_case(identifier)), range});
  }
  return fields;
}

/// How many steps call each kernel.
using CallCounts = std::map<std::string, int64_t>;
void count_calls(const std::vector<loop::Step>& steps, CallCounts& counts) {
  for (const loop::Step* step : loop::flat_steps(steps)) {
    if (step->kind == loop::StepKind::call) ++counts[step->kernel];
  }
}

/// The nodes a step computes, each once: its own where it names them, else those of its kernel.
std::string step_name(const loop::Program& program, const loop::Step& step,
                      const CallCounts& calls) {
  std::string name = step.loc.node;
  const auto kernel = program.kernels.find(step.kernel);
  if (step.kind == loop::StepKind::call && kernel != program.kernels.end() &&
      name.find('+') == std::string::npos && calls.at(step.kernel) == 1) {
    std::vector<std::string> nodes;
    for (const Loc& loc : kernel->second.locs) {
      if (loc.node.empty()) continue;
      if (std::find(nodes.begin(), nodes.end(), loc.node) == nodes.end()) nodes.push_back(loc.node);
    }
    if (!nodes.empty()) name = fmt::format("{}", fmt::join(nodes, "+"));
  }
  constexpr std::string_view kKinds[] = {"", "copy", "loop", "branch", "check_finite"};
  if (name.empty()) name = kKinds[static_cast<size_t>(step.kind)];
  return name.empty() ? step.kernel : name;
}

void mix(uint64_t& hash, std::string_view bytes) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * UINT64_C(0x100000001b3);
  }
  hash = (hash ^ 0xff) * UINT64_C(0x100000001b3);  // a separator no UTF-8 text holds
}

/// FNV-1a over what the model is to its callers: interface and constants.
uint64_t model_hash(const loop::Program& program) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const std::string& symbol : loop::caller_symbols(program)) {
    const DimRange& range = program.symbols.at(symbol);
    mix(hash, fmt::format("{} {} {}", symbol, range.min, range.max));
  }
  for (const loop::Buffer& buffer : program.buffers) {
    if (buffer.kind == loop::BufferClass::arena || buffer.view_of >= 0) continue;
    // Constants may be packed for a target; what the program was told of them is not.
    if (buffer.kind == loop::BufferClass::constant && program.model_hash != 0) continue;
    mix(hash, fmt::format("{} {}", buffer.name,
                          to_string(TensorType{buffer.element, loop::model_shape(buffer)})));
    if (buffer.kind == loop::BufferClass::state) mix(hash, enum_name(buffer.role));
    const bool has_value =
        buffer.kind == loop::BufferClass::constant || !buffer.value.bytes().empty();
    if (has_value && program.model_hash == 0) {
      mix(hash, fmt::format("{:016x}", buffer.value.hash()));
    }
  }
  for (const loop::EntryPoint& entry : program.entries) mix(hash, entry.name);
  if (program.model_hash != 0) mix(hash, fmt::format("{:016x}", program.model_hash));
  return hash;
}

}  // namespace

std::set<loop::BufferId> linked_constants(const loop::Program& program) {
  std::set<loop::BufferId> used;
  for (const loop::EntryPoint& entry : program.entries) {
    for (const loop::Step* step : loop::flat_steps(entry.steps)) {
      for (const loop::BufferId id : step->buffers) {
        if (id < 0) continue;
        const loop::BufferId owner = program.owner(id);
        if (program.buffer(owner).kind == loop::BufferClass::constant) used.insert(owner);
      }
    }
  }
  for (const StateVariableAbi& variable : state_of(program).variables) {
    if (variable.initial >= 0) used.insert(variable.buffer);
  }
  return used;
}

std::string_view macro_of(Status status) {
  constexpr std::string_view kMacros[] = {"BC_OK",
                                          "BC_ERROR_NULL",
                                          "BC_ERROR_ARENA_SIZE",
                                          "BC_ERROR_ALIGNMENT",
                                          "BC_ERROR_DIMENSION",
                                          "BC_ERROR_INDEX",
                                          "BC_ERROR_STATE_SIZE",
                                          "BC_ERROR_STATE",
                                          "BC_ERROR_NONFINITE",
                                          "BC_ERROR_CHECKPOINT",
                                          "BC_ERROR_IO",
                                          "BC_ERROR_VALUE"};
  return kMacros[static_cast<size_t>(status)];
}

Abi abi_of(const loop::Program& program) {
  Abi abi;
  abi.prefix = program.name;
  BC_CHECK(sanitize(program.name) == program.name && !is_reserved(program.name),
           "\"{}\" is no name for a C library", program.name);
  abi.macro_prefix = upper_case(program.name);
  abi.arena_bytes = program.arena_bytes;
  abi.arena_alignment = std::max<int64_t>(program.arena_alignment, 1);
  abi.model_hash = model_hash(program);
  for (const loop::BufferId id : linked_constants(program)) {
    abi.weight_bytes += static_cast<int64_t>(program.buffer(id).value.bytes().size());
  }
  BC_CHECK(program.states().empty() || program.state_bytes > 0, "the state of {} was not planned",
           program.name);
  abi.state = state_of(program);
  CallCounts calls;
  for (const loop::EntryPoint& entry : program.entries) count_calls(entry.steps, calls);
  int32_t number = 0;
  for (const loop::EntryPoint& entry : program.entries) {
    EntryAbi result;
    result.name = entry.name;
    result.symbol = program.name + "_" + sanitize(entry.name);
    result.macro_name = upper_case(sanitize(entry.name));
    Identifiers input_names, output_names;
    result.has_state = abi.state.bytes > 0;
    result.writes_state = loop::writes_state(program, entry);
    result.has_structs = !result.has_state || !entry.inputs.empty() || !entry.outputs.empty();
    if (result.has_structs) result.sizes = size_fields(program, input_names);
    const std::string prefix = abi.entries.empty() ? "" : entry.name + "_";
    result.inputs =
        tensor_fields(program, entry, entry.inputs, loop::BufferClass::input, prefix, input_names);
    result.outputs = tensor_fields(program, entry, entry.outputs, loop::BufferClass::output, prefix,
                                   output_names);
    result.checks = checks_of(abi, result);
    if (entry.required_count >= 0) {
      result.checks.push_back(
          {Check::Kind::count_zero, Status::state, 0, program.buffer(entry.required_count).offset});
    }
    for (const loop::Step* step : loop::flat_steps(entry.steps)) {
      result.steps.push_back({number++, step_name(program, *step, calls)});
    }
    abi.entries.push_back(std::move(result));
  }
  abi.functions = state_functions(abi);
  return abi;
}

std::string_view c_type_of(ElementType element) {
  switch (element) {
    case ElementType::boolean:
    case ElementType::u8:
      return "uint8_t";
    case ElementType::i8:
      return "int8_t";
    case ElementType::i16:
      return "int16_t";
    case ElementType::i32:
      return "int32_t";
    case ElementType::i64:
      return "int64_t";
    case ElementType::u16:
    case ElementType::f16:
    case ElementType::bf16:
      return "uint16_t";
    case ElementType::u32:
      return "uint32_t";
    case ElementType::u64:
      return "uint64_t";
    case ElementType::f32:
      return "float";
    case ElementType::f64:
      return "double";
  }
  BC_CHECK(false, "element type {}", static_cast<int>(element));
}

std::string sanitize(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool valid = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    result += valid ? c : '_';
  }
  if (result.empty() || result[0] == '_' || (result[0] >= '0' && result[0] <= '9') ||
      result.starts_with("bc_") || result.starts_with("BC_")) {
    result = "x" + result;
  }
  return result;
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

std::string Identifiers::make(std::string_view text) {
  const std::string base = sanitize(text);
  std::string name = base;
  if (is_reserved(name) || taken_.contains(name)) {
    int64_t& number = last_.try_emplace(base, 1).first->second;
    do {
      name = fmt::format("{}_{}", base, ++number);
    } while (taken_.contains(name));
  }
  taken_.insert(name);
  return name;
}

}  // namespace backcast
