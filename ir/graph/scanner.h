// Reads tokens of the text form from left to right; every complaint names line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/dim.h"
#include "ir/graph/error.h"

namespace backcast {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Skips blanks and `//` comments; true at the end of the text.
  bool at_end();
  /// The next character after blanks, 0 at the end.
  char peek();
  /// Consumes `token` when it comes next. A word is only taken whole.
  bool accept(std::string_view token);
  void expect(std::string_view token);

  /// [A-Za-z_][A-Za-z0-9_]*; empty when none comes next.
  std::string_view word();
  /// A non-empty run of letters, digits, `_` and `.` without blanks before it.
  std::string_view name();
  /// A string in double quotes with the escapes \" \\ \n \t \xHH.
  std::string quoted();
  /// A decimal integer, possibly negative, in 64 bits.
  int64_t integer();
  /// Characters of a number, `nan(0x…)`, `inf` or a word: what may stand for one element.
  std::string_view number();
  /// Hexadecimal digits, at most 16.
  uint64_t hexadecimal();
  Dim dimension();

  size_t position();  // of the next token
  /// Throws CompileError "line:column: message" for the current or a given position.
  [[noreturn]] void fail(const std::string& message);
  [[noreturn]] void fail_at(size_t position, const std::string& message) const;

 private:
  void skip_blanks();
  Dim sum(int depth);
  Dim product(int depth);
  Dim factor(int depth);

  std::string_view text_;
  size_t at_ = 0;
};

/// `text` in quotes with escapes; Scanner::quoted() reads it back.
std::string quote(std::string_view text);
/// Whether `text` is what Scanner::word() reads in one go.
bool is_word(std::string_view text);

}  // namespace backcast
