// See pieces.h.
#include "backend/c/pieces.h"

#include <fmt/format.h>

namespace backcast::c_backend {

std::string pieces_text() {
  return "static void for_each_piece(const bc_context *context, int64_t count, int64_t grain,\n"
         "    bc_loop_body body, void *closure) {\n"
         "  const size_t needed = offsetof(bc_context, parallel_for) + sizeof "
         "context->parallel_for;"
         "\n"
         "  if (context == NULL || context->struct_bytes < needed || context->parallel_for == "
         "NULL) "
         "{\n"
         "    body(closure, 0, count);\n"
         "  } else {\n"
         "    context->parallel_for(context->user, count, grain, body, closure);\n"
         "  }\n"
         "}\n\n";
}

std::string call_struct(const std::string& function) {
  return fmt::format("struct {}_call", function);
}

std::string piece_function(const std::string& function) { return function + "_piece"; }

std::string piece_text(const loop::Kernel& kernel, const std::string& function) {
  std::string fields, arguments;
  const auto add = [&](const std::string& type, const std::string& name) {
    fields += fmt::format("  {}{};\n", type, name);
    arguments += fmt::format("call->{}, ", name);
  };
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const bool is_read = kernel.buffers[i].mode == loop::AccessMode::read;
    add(is_read ? "const void *" : "void *", fmt::format("place{}", i));
  }
  // The last two sizes are the range.
  for (size_t i = 0; i + 2 < kernel.sizes.size(); ++i) add("index_t ", fmt::format("size{}", i));
  return fmt::format(
      "{0} {{\n{1}}};\n"
      "static void {2}(void *closure, int64_t begin, int64_t end) {{\n"
      "  const {0} *const call = (const {0} *)closure;\n"
      "  {3}({4}(index_t)begin, (index_t)end);\n"
      "}}\n",
      call_struct(function), fields, piece_function(function), function, arguments);
}

}  // namespace backcast::c_backend
