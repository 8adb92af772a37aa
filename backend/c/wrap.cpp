// Breaking long lines of generated C (kernel_writer.h).
#include "backend/c/kernel_writer.h"

namespace backcast::c_backend {

namespace {

constexpr size_t kColumns = 100;

/// Operators end lines; names, types and `*` of a declaration do not.
bool may_break_after(char c) {
  return std::string_view(",+-/&|<>=?:;").find(c) != std::string::npos;
}

/// Cuts at the last space before the limit that is not inside a string, piece by piece.
void append_wrapped(std::string& result, std::string_view line) {
  const size_t indent = line.find_first_not_of(' ');
  const bool is_comment = indent != std::string_view::npos && line.substr(indent).starts_with("/*");
  const std::string continuation = std::string(indent == std::string_view::npos ? 0 : indent, ' ') +
                                   (is_comment ? " * " : "    ");
  bool first = true;
  while (true) {
    const size_t room = kColumns - (first ? 0 : continuation.size());
    size_t cut = std::string_view::npos;
    if (line.size() > room) {
      bool quoted = false;
      for (size_t i = 0; i < line.size() && (i <= room || cut == std::string_view::npos); ++i) {
        if (line[i] == '\\') {
          ++i;
          continue;
        }
        if (line[i] == '"' && !is_comment) quoted = !quoted;
        if (line[i] == ' ' && !quoted && i > indent &&
            (is_comment || may_break_after(line[i - 1]))) {
          cut = i;
        }
      }
    }
    if (!first) result += continuation;
    if (cut == std::string_view::npos) break;
    result += line.substr(0, cut);
    result += '\n';
    line.remove_prefix(cut + 1);
    first = false;
  }
  result += line;
}

}  // namespace

std::string wrap_lines(const std::string& text) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.find('\n', start);
    if (end == std::string::npos) end = text.size();
    const std::string_view line(text.data() + start, end - start);
    if (line.size() > kColumns && line[0] != '#') {
      append_wrapped(result, line);
    } else {
      result += line;
    }
    result += '\n';
    start = end + 1;
  }
  return result;
}

}  // namespace backcast::c_backend
