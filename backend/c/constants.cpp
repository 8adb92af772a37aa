// See constants.h.
#include "backend/c/constants.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "backend/c/operations.h"
#include "backend/library/header.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {

namespace {

using loop::Buffer;
using loop::BufferId;

int64_t alignment_of(const Buffer& buffer) {
  return std::max(buffer.alignment, byte_size(buffer.element));
}

std::string element_text(const Literal& value, int64_t i) {
  switch (value.element()) {
    case ElementType::f32:
      return float_literal(value.data<float>()[i]);
    case ElementType::f64:
      return double_literal(value.data<double>()[i]);
    case ElementType::f16:
    case ElementType::bf16:
      return fmt::format("0x{:04x}", value.data<uint16_t>()[i]);
    case ElementType::i64:
    case ElementType::u64:
      return integer_literal(loop::scalar_of(value.element()), value.data<int64_t>()[i]);
    default:
      return integer_literal(loop::scalar_of(value.element()), value.as_int(i));
  }
}

/// Elements in lines of at most 100 columns.
void append_elements(std::string& text, const Literal& value) {
  size_t column = 0;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const std::string element = element_text(value, i) + ",";
    if (column == 0 || column + element.size() + 1 > 100) {
      text += i == 0 ? "  " : "\n  ";
      column = 2;
    } else {
      text += ' ';
      ++column;
    }
    text += element;
    column += element.size();
  }
}

void append_array(std::string& text, const Buffer& buffer, const std::string& name,
                  const std::string& macro) {
  const int64_t count = buffer.value.element_count();
  std::string attributes = " " + macro;
  if (alignment_of(buffer) > byte_size(buffer.element)) {
    attributes += fmt::format(" __attribute__((aligned({})))", alignment_of(buffer));
  }
  text += fmt::format("/* {} {} */\nstatic const {} {}[{}]{} = {{\n", comment_text(buffer.name),
                      to_string(buffer.value.type()), c_type_of(buffer.element), name,
                      std::max<int64_t>(count, 1), attributes);
  append_elements(text, buffer.value);
  text += count == 0 ? "  0};\n" : "\n};\n";
}

std::string section_macro(const Abi& abi) {
  return fmt::format(
      "#if defined(__ELF__) && defined(BC_GNU_C)\n#define {0}_WEIGHTS "
      "__attribute__((section(\".rodata.{1}\")))\n"
      "#else\n#define {0}_WEIGHTS\n#endif\n\n",
      abi.macro_prefix, abi.prefix);
}

/// Directives before and after constants: formats of object files have sections of their own. In
/// WebAssembly's assembler every object has a type and a size, and sections have no stack.
std::string sections_text(const TargetInfo& target) {
  if (target.architecture == Architecture::wasm32) {
    return "#define {1}_BEGIN \".section .rodata.{0},\\\"\\\",@\\n.type "
           "{0}_constants,@object\\n\"\n"
           "#define {1}_END \".size {0}_constants, {3}\\n\"\n";
  }
  return "#if defined(__APPLE__)\n"
         "#define {1}_BEGIN \".pushsection __TEXT,__const\\n\"\n"
         "#define {1}_END \".popsection\\n\"\n"
         "#elif defined(_WIN32)\n"
         "#define {1}_BEGIN \".section .rdata,\\\"dr\\\"\\n\"\n"
         "#define {1}_END \".text\\n\"\n"
         "#else\n"
         "#define {1}_BEGIN \".pushsection .rodata.{0},\\\"a\\\"\\n\"\n"
         "#define {1}_END \".popsection\\n\"\n"
         "#endif\n";
}

/// The file's bytes are read by the assembler; C knows them as one array, by the assembler's name.
std::string include_text(const Abi& abi, const TargetInfo& target, const std::string& file_name,
                         int64_t alignment, size_t bytes) {
  const std::string form =
      "/* The constants are the {3} bytes of the file {2}, which the assembler includes: compile\n"
      " * in its folder, or define {1}_CONSTANTS_FILE as its path, in quotes. */\n"
      "#ifndef {1}_CONSTANTS_FILE\n#define {1}_CONSTANTS_FILE \"{2}\"\n#endif\n" +
      sections_text(target) +
      "__asm__({1}_BEGIN \".balign {4}\\n\"\n"
      "        \"{0}_constants:\\n\"\n"
      "        \".incbin \\\"\" {1}_CONSTANTS_FILE \"\\\"\\n\" {1}_END);\n"
      "extern const unsigned char {0}_constants[{3}] __asm__(\"{0}_constants\")\n"
      "    __attribute__((visibility(\"hidden\")));\n\n";
  return fmt::format(fmt::runtime(form), abi.prefix, abi.macro_prefix, file_name, bytes, alignment);
}

/// The initial values of the state as one struct, a member per variable.
void append_initial(const loop::Program& program, const Abi& abi, ConstantsText& result) {
  std::string members, values;
  Identifiers names;
  for (const StateVariableAbi& v : abi.state.variables) {
    if (v.initial < 0) continue;
    const Buffer& buffer = program.buffer(v.buffer);
    const std::string name = names.make(sanitize(buffer.name));
    members +=
        fmt::format("  {} {}[{}]; /* {} */\n", c_type_of(buffer.element), name,
                    buffer.value.element_count(), comment_text(to_string(buffer.value.type())));
    values += "  {\n";
    append_elements(values, buffer.value);
    values += "\n  },\n";
    result.initial_offsets[v.buffer] =
        fmt::format("(uint32_t)offsetof(struct state_initial, {})", name);
  }
  if (members.empty()) return;
  result.text += fmt::format(
      "struct state_initial {{\n{}}};\nstatic const struct state_initial state_initial {}_WEIGHTS "
      "= "
      "{{\n{}}};\n",
      members, abi.macro_prefix, values);
  result.initial = "&state_initial";
}

/// The same as bytes of the binary file.
void append_initial_bytes(const loop::Program& program, const Abi& abi, ConstantsText& result) {
  if (abi.state.initial_bytes == 0) return;
  result.binary.resize((result.binary.size() + 15) / 16 * 16, '\0');
  const size_t start = result.binary.size();
  result.initial = fmt::format("({}_constants + {})", abi.prefix, start);
  for (const StateVariableAbi& v : abi.state.variables) {
    if (v.initial < 0) continue;
    result.binary.resize(start + static_cast<size_t>(v.initial), '\0');
    const std::span<const std::byte> bytes = program.buffer(v.buffer).value.bytes();
    result.binary.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    result.initial_offsets[v.buffer] = fmt::format("{}u", v.initial);
  }
}

}  // namespace

ConstantsText constants_text(const loop::Program& program, const Abi& abi, const TargetInfo& target,
                             int64_t inline_bytes, const std::string& file_name) {
  ConstantsText result;
  const std::set<BufferId> used = linked_constants(program);
  if (used.empty()) return result;
  int64_t total = 0, alignment = abi.state.initial_bytes > 0 ? 16 : 1;
  for (const BufferId id : used) {
    total += static_cast<int64_t>(program.buffer(id).value.bytes().size());
    alignment = std::max(alignment, alignment_of(program.buffer(id)));
  }
  Identifiers names;
  if (total <= inline_bytes) result.text = section_macro(abi);
  for (const BufferId id : used) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.kind == loop::BufferClass::state) continue;
    if (total <= inline_bytes) {
      const std::string name = names.make("const_" + sanitize(buffer.name));
      append_array(result.text, buffer, name, abi.macro_prefix + "_WEIGHTS");
      result.names[id] = name;
      continue;
    }
    const auto step = static_cast<size_t>(alignment_of(buffer));
    result.binary.resize((result.binary.size() + step - 1) / step * step, '\0');
    result.names[id] =
        fmt::format("(const void *)({}_constants + {})", abi.prefix, result.binary.size());
    const std::span<const std::byte> bytes = buffer.value.bytes();
    result.binary.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (total > inline_bytes) {
    append_initial_bytes(program, abi, result);
    result.text = include_text(abi, target, file_name, alignment, result.binary.size());
  } else {
    append_initial(program, abi, result);
    result.text += '\n';
  }
  return result;
}

}  // namespace backcast::c_backend
