// See header_format.h.
#include "backend/library/header_format.h"

#include <algorithm>

namespace backcast {

std::string filled_comment(const std::string& text) {
  std::string result, line = "/*";
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (line.size() + word.size() + 4 > 100) {
      result += line + "\n";
      line = " *";
    }
    line += " " + word;
    start = end + 1;
  }
  return result + line + " */\n";
}

std::string declaration(const std::string& start, const std::vector<std::string>& arguments,
                        const std::string& end) {
  std::string text, line = start;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i] + (i + 1 < arguments.size() ? "," : end);
    if (i > 0 && line.size() + 1 + argument.size() > 100) {
      text += line + "\n";
      line = std::string(std::min<size_t>(start.size(), 60), ' ') + argument;
    } else {
      line += (i > 0 ? " " : "") + argument;
    }
  }
  return text + line + "\n";
}

}  // namespace backcast
