// Bytes looked up among 256 (operations.h), by vpermi2b where the compiler's flags allow it.
#include <fmt/format.h>

#include "backend/c/operations.h"

namespace backcast::c_backend {

using loop::Type;

namespace {

constexpr int32_t kRegister = 64;  // bytes

/// Lanes of `name` in a vector of so many; what lies beyond its own is undefined.
std::string resized(const std::string& name, int32_t from, int32_t to) {
  std::string list;
  for (int32_t lane = 0; lane < to; ++lane) list += fmt::format(", {}", lane < from ? lane : -1);
  return fmt::format("__builtin_shufflevector({0}, {0}{1})", name, list);
}

/// `places` in a whole register, for gcc, whose shuffles would take it through memory.
std::string widened(int32_t lanes) {
  if (lanes != 16 && lanes != 32) return resized("places", lanes, kRegister);
  return fmt::format("__builtin_ia32_si512_{}si((int __attribute__((vector_size({}))))places)",
                     lanes == 32 ? "256" : "", lanes);
}

/// Each half of the table is two registers, of which an instruction takes what 7 bits tell; the
/// eighth tells the half.
std::string x86_body(const std::string& c_type, int32_t lanes) {
  return fmt::format(
      "#if defined(__AVX512VBMI__)\n"
      "  typedef char register_bytes __attribute__((vector_size({0})));\n"
      "  typedef signed char signed_bytes __attribute__((vector_size({0})));\n"
      "  typedef char bytes_at __attribute__((vector_size({0}), aligned(1), may_alias));\n"
      "  const bytes_at *quarters = (const bytes_at *)(const void *)table;\n"
      "#if defined(__clang__)\n"
      "  const register_bytes at = (register_bytes){1};\n"
      "  const register_bytes low = __builtin_ia32_vpermi2varqi512(quarters[0], at, quarters[1]);\n"
      "  const register_bytes high = __builtin_ia32_vpermi2varqi512(quarters[2], at, "
      "quarters[3]);\n"
      "#else\n"
      "  const register_bytes at = (register_bytes){4};\n"
      "  const register_bytes low =\n"
      "      __builtin_ia32_vpermt2varqi512_mask(at, quarters[0], quarters[1], -1);\n"
      "  const register_bytes high =\n"
      "      __builtin_ia32_vpermt2varqi512_mask(at, quarters[2], quarters[3], -1);\n"
      "#endif\n"
      "  const register_bytes upper = (register_bytes)((signed_bytes)at < 0);\n"
      "  const register_bytes found = (low & ~upper) | (high & upper);\n"
      "  return ({2}){3};\n",
      kRegister, resized("places", lanes, kRegister), c_type, resized("found", kRegister, lanes),
      widened(lanes));
}

}  // namespace

Text byte_look_up_text(Prelude& prelude, Type type, const std::string& table, const Text& places) {
  const std::string name = "look_up_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type);
    std::string list;
    for (int32_t lane = 0; lane < type.lanes; ++lane) {
      list += fmt::format("{}table[places[{}]]", lane == 0 ? "" : ", ", lane);
    }
    std::string body = fmt::format("  return ({}){{{}}};\n", c_type, list);
    if (type.lanes <= kRegister) {
      body = fmt::format("{}#else\n{}#endif\n", x86_body(c_type, type.lanes), body);
    }
    const std::string parameters =
        fmt::format("const {} *table, {} places", prelude.memory_type(type.with_lanes(1)),
                    prelude.type({loop::Scalar::u8, type.lanes}));
    return inline_function(c_type, name, parameters) + fmt::format(" {{\n{}}}\n", body);
  });
  return {fmt::format("{}({}, {})", name, table, places.text)};
}

}  // namespace backcast::c_backend
