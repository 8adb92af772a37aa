// Pieces of header text. Internal to backend/library.
#pragma once

#include <string>
#include <vector>

#include "backend/library/abi.h"

namespace backcast {

/// Lines `code /* comment */` with the comments in one column; a comment that would pass column 100
/// takes lines of its own above.
class Aligned {
 public:
  void add(std::string code, std::string comment = {}) {
    rows_.push_back({std::move(code), std::move(comment)});
  }
  std::string text() const {
    size_t column = 0;
    for (const Row& row : rows_) {
      if (fits(row)) column = std::max(column, row.code.size() + 1);
    }
    std::string result;
    for (const Row& row : rows_) {
      if (row.comment.empty()) {
        result += row.code + "\n";
      } else if (!fits(row)) {
        result += above(row) + row.code + "\n";
      } else {
        const size_t pad =
            column + row.comment.size() + 6 > kColumns ? 1 : column - row.code.size();
        result += row.code + std::string(pad, ' ') + "/* " + row.comment + " */\n";
      }
    }
    return result;
  }

 private:
  static constexpr size_t kColumns = 100;
  struct Row {
    std::string code, comment;
  };
  static bool fits(const Row& row) {
    return !row.comment.empty() && row.code.size() + row.comment.size() + 7 <= kColumns;
  }
  /// The comment in pieces, wherever a piece ends.
  static std::string above(const Row& row) {
    const std::string indent(std::min<size_t>(row.code.find_first_not_of(' '), 8), ' ');
    std::string result;
    for (size_t i = 0; i < row.comment.size(); i += 80) {
      std::string piece = row.comment.substr(i, 80);
      while (!piece.empty() && piece.back() == ' ') piece.pop_back();
      result += indent + "/* " + piece + " */\n";
    }
    return result;
  }
  std::vector<Row> rows_;
};

/// A comment in lines of at most 100 columns.
std::string filled_comment(const std::string& text);

/// Arguments that go on while a line has room.
std::string declaration(const std::string& start, const std::vector<std::string>& arguments,
                        const std::string& end);

/// Macros of the state; nothing for a library without.
std::string state_macros(const Abi& abi);
/// Entry points and functions of a training library; the structs come before.
std::string state_declarations(const Abi& abi, const std::string& stream);

}  // namespace backcast
