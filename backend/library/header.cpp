// See header.h.
#include "backend/library/header.h"

#include <algorithm>
#include <vector>

#include "backend/library/header_format.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr std::string_view kTypes =
#include "bc_types.inc"
    ;
constexpr std::string_view kLicence = "/* SPDX-License-Identifier: 0BSD */\n";
constexpr std::string_view kOpen = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
constexpr std::string_view kClose = "#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n";

std::string range_text(const loop::ValueRange& range) {
  const std::string ignored = range.ignore ? fmt::format(", or {}", *range.ignore) : "";
  return fmt::format(", each {}..{}{}", range.min, range.max, ignored);
}

std::string field_comment(const TensorField& field) {
  std::string text = field.shape;
  if (field.identifier != field.name) text += fmt::format(", \"{}\"", comment_text(field.name));
  if (field.range) text += range_text(*field.range);
  if (field.nullable) text += ", or null";
  if (!field.extent.empty()) text += fmt::format(", the extent {} of others", field.extent);
  return comment_text(text);
}

std::string struct_text(const std::string& name, const std::vector<SizeField>& sizes,
                        const std::vector<TensorField>& tensors, bool is_const) {
  Aligned members;
  for (const SizeField& size : sizes) {
    members.add(fmt::format("  int64_t {};", size.identifier),
                fmt::format("{}..{}", size.range.min, size.range.max));
  }
  for (const TensorField& tensor : tensors) {
    members.add(
        fmt::format("  {}{} *{};", is_const ? "const " : "", tensor.c_type, tensor.identifier),
        field_comment(tensor));
  }
  if (sizes.empty() && tensors.empty()) members.add("  uint8_t reserved;", "no members");
  return fmt::format("typedef struct {0} {{\n{1}}} {0};\n\n", name, members.text());
}

std::string macros(const Abi& abi, const HeaderOptions& options) {
  const std::string& prefix = abi.macro_prefix;
  const bool symbolic = !abi.entries.empty() && !abi.entries[0].sizes.empty();
  std::string text =
      fmt::format("#define {}_MODEL_HASH UINT64_C(0x{:016x})\n", prefix, abi.model_hash);
  text += fmt::format("#define {}_ARENA_BYTES {} /* {}usable in #if */\n", prefix, abi.arena_bytes,
                      symbolic ? "enough for every size in range; " : "");
  text += fmt::format("#define {}_ARENA_ALIGN {}\n", prefix, abi.arena_alignment);
  Aligned rest;
  rest.add(fmt::format("#define {}_STACK_BYTES {}", prefix, options.stack_bytes),
           options.stack_is_estimate
               ? "estimate: local arrays and what compilers usually add"
               : "most that a call takes, callees of bc_context not included");
  rest.add(
      fmt::format("#define {}_WEIGHT_BYTES {}", prefix, abi.weight_bytes),
      fmt::format("{}{}",
                  abi.state.parameter_count > 0 ? "constants and first parameters" : "constants",
                  options.has_section ? ", in section .rodata." + abi.prefix : ""));
  if (!options.stream.empty()) {
    rest.add(fmt::format("#define {}_FIRST_CALL {}", prefix, options.first_call),
             "of a sequence, counted from 1, whose outputs all hold");
  }
  text += rest.text() + state_macros(abi) + "\n";
  if (symbolic) {
    for (const SizeField& size : abi.entries[0].sizes) {
      if (size.identifier != size.symbol) {
        text += filled_comment(fmt::format("The model's dimension \"{}\" is {} here.",
                                           comment_text(size.symbol), size.identifier));
      }
      text += fmt::format("#define {0}_{1}_MIN {2}\n#define {0}_{1}_MAX {3}\n", prefix,
                          size.macro_name, size.range.min, size.range.max);
    }
    text += "\n/* Elements at the largest size. */\n";
  }
  for (const EntryAbi& entry : abi.entries) {
    for (const TensorField& field : entry.inputs) {
      text += fmt::format("#define {}_{}_IN_{}_ELEMENTS {}\n", prefix, entry.macro_name,
                          field.macro_name, field.max_elements);
    }
    for (const TensorField& field : entry.outputs) {
      text += fmt::format("#define {}_{}_OUT_{}_ELEMENTS {}\n", prefix, entry.macro_name,
                          field.macro_name, field.max_elements);
    }
  }
  return text + "\n";
}

/// Declared, then defined inline: the library itself holds entry points only.
std::string arena_function(const Abi& abi, const EntryAbi& entry) {
  std::string checks;
  std::vector<std::string> parameters;
  for (const SizeField& size : entry.sizes) {
    parameters.push_back("int64_t " + size.identifier);
    checks += fmt::format("  if ({0} < {1}_{2}_MIN || {0} > {1}_{2}_MAX) return 0;\n",
                          size.identifier, abi.macro_prefix, size.macro_name);
  }
  const std::string start = fmt::format("static inline size_t {}_arena_bytes(", entry.symbol);
  return filled_comment(fmt::format(
             "Bytes of arena that {} needs at {}; 0 if out of range. Places are planned for the "
             "largest sizes and do not move, so that every size in range needs the same.",
             entry.symbol, entry.sizes.size() == 1 ? "this size" : "these sizes")) +
         declaration(start, parameters, ");") + declaration(start, parameters, ") {") + checks +
         fmt::format("  return {}_ARENA_BYTES;\n}}\n\n", abi.macro_prefix);
}

std::string structs_text(const Abi& abi, const EntryAbi& entry) {
  if (!entry.has_structs) return "";
  std::string text = struct_text(entry.symbol + "_inputs", entry.sizes, entry.inputs, true);
  text += struct_text(entry.symbol + "_outputs", {}, entry.outputs, false);
  if (!entry.sizes.empty()) text += arena_function(abi, entry);
  return text;
}

std::string entry_declaration(const Abi& abi, const EntryAbi& entry) {
  const std::string& symbol = entry.symbol;
  std::string text = structs_text(abi, entry);
  text += filled_comment(fmt::format(
      "Runs the model. `arena` needs {0}_ARENA_BYTES aligned to {0}_ARENA_ALIGN{1}; its contents "
      "before and after mean nothing. Tensors must not overlap. `context` may be null.",
      abi.macro_prefix, abi.arena_bytes == 0 ? " and may be null" : ""));
  return text +
         declaration(fmt::format("bc_status {}(", symbol),
                     {fmt::format("const {}_inputs *in", symbol),
                      fmt::format("const {}_outputs *out", symbol), "void *arena",
                      "size_t arena_bytes", "const bc_context *context"},
                     ");") +
         "\n";
}

}  // namespace

std::string_view bc_types_text() { return kTypes; }

std::string comment_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool closes = c == '/' && !result.empty() && result.back() == '*';
    const bool opens = c == '*' && !result.empty() && result.back() == '/';
    if (closes || opens) result += ' ';
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\' ? '?' : c;
  }
  return result;
}

std::string header_text(const Abi& abi, const HeaderOptions& options) {
  const std::string guard = abi.macro_prefix + "_H";
  const std::string from =
      options.model_file.empty() ? "" : " from " + comment_text(options.model_file);
  std::string text(kLicence);
  text += filled_comment(
      fmt::format("{}: made by Backcast {}{} for {}{}.", abi.prefix, options.version, from,
                  options.target, options.training.empty() ? "" : ", " + options.training) +
      (options.promise.empty() ? "" : " Results are " + comment_text(options.promise) + "."));
  text += fmt::format("#ifndef {0}\n#define {0}\n\n", guard);
  const size_t types = kTypes.find("#ifndef BC_TYPES_H");
  BC_CHECK(types != std::string_view::npos, "bc_types.h has lost its guard");
  text += kTypes.substr(types);
  text +=
      "\n#if BC_TYPES_VERSION < 1\n"
      "#error \"a header of an older Backcast was included before this one: change their order\"\n"
      "#endif\n\n";
  text += macros(abi, options);
  text += kOpen;
  if (abi.state.bytes > 0) {
    for (const EntryAbi& entry : abi.entries) text += structs_text(abi, entry);
    text += state_declarations(abi, options.stream);
  } else {
    for (const EntryAbi& entry : abi.entries) text += entry_declaration(abi, entry);
  }
  text += kClose;
  return text + fmt::format("#endif /* {} */\n", guard);
}

}  // namespace backcast
