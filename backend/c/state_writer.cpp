// See state_writer.h.
#include "backend/c/state_writer.h"

#include <fmt/ranges.h>

#include "backend/library/header.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {
namespace {

using Kind = StateFunction::Kind;

constexpr std::string_view kRuntime =
#include "bc_runtime_text.inc"
    ;

std::string variable_text(const StateVariableAbi& v, const loop::Program& program,
                          const ConstantsText& constants) {
  const auto offset = constants.initial_offsets.find(v.buffer);
  return fmt::format(
      "    /* {} */\n    {{UINT64_C(0x{:016x}), {}u, {}u, {}u, {}, {}, 0x{:02x}, 0, {}, "
      "{{{}}}}},\n",
      comment_text(program.buffer(v.buffer).name), v.name_hash, v.offset, v.bytes, v.slice_start,
      v.slice_axis, v.role, v.element,
      offset == constants.initial_offsets.end() ? "BC_ZEROS" : offset->second,
      fmt::join(v.runs, ", "));
}

/// Parameters of the exported function, and how it calls the runtime.
std::pair<std::string, std::string> body_of(const Abi& abi, const StateFunction& function,
                                            const std::string& initial) {
  const std::string first = function.kind == Kind::init ? initial + ", " : "";
  const std::string call =
      fmt::format("  return {}(STATE_LAYOUT, {}state", function.runtime, first);
  const std::string& flat = abi.state.flat_type;
  switch (function.kind) {
    case Kind::init:
      return {"void *state, size_t state_bytes, uint64_t seed", call + ", state_bytes, seed);\n"};
    case Kind::set_learning_rate:
      return {"void *state, float rate",
              fmt::format("  const {} value = rate;\n  uint{}_t bits;\n"
                          "  __builtin_memcpy(&bits, &value, sizeof value);\n{}, bits);\n",
                          c_type_of(abi.state.rate), 8 * byte_size(abi.state.rate), call)};
    case Kind::get:
      return {fmt::format("const void *state, {} *flat", flat),
              fmt::format("{}, {}u, flat);\n", call, function.roles)};
    case Kind::set:
      return {fmt::format("void *state, const {} *flat", flat),
              fmt::format("{}, {}u, flat);\n", call, function.roles)};
    case Kind::save:
      return {"const void *state, const bc_writer *writer", call + ", writer);\n"};
    case Kind::load:
      return {"void *state, const bc_reader *reader", call + ", reader);\n"};
  }
  BC_CHECK(false, "function {} of the state", function.symbol);
}

}  // namespace

std::string state_text(const Abi& abi, const loop::Program& program,
                       const ConstantsText& constants) {
  const StateAbi& state = abi.state;
  if (state.bytes == 0) return "";
  std::string text = "#define BC_RUNTIME static __attribute__((unused))\n";
  text += kRuntime;
  text += fmt::format(
      "\nstatic const struct {{\n  bc_layout layout;\n  bc_variable variables[{}];\n}} "
      "state_layout = {{\n    {{{}_MODEL_HASH, {}u, {}u, {}u, 0}},\n    {{\n",
      state.variables.size(), abi.macro_prefix, state.variables.size(), state.bytes,
      state.alignment);
  for (const StateVariableAbi& v : state.variables) text += variable_text(v, program, constants);
  return text +
         "    }\n};\n#define STATE_LAYOUT ((const bc_layout *)(const void *)&state_layout)\n\n";
}

std::string state_functions_text(const Abi& abi, const ConstantsText& constants) {
  const std::string initial = constants.initial.empty() ? "NULL" : constants.initial;
  std::string text;
  for (const StateFunction& function : abi.functions) {
    const auto [parameters, body] = body_of(abi, function, initial);
    text += fmt::format("\nbc_status {}({}) {{\n{}}}\n", function.symbol, parameters, body);
  }
  return text;
}

}  // namespace backcast::c_backend
