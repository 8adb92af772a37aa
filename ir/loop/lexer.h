// Tokens of loop IR's text form. Internal to ir/loop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backcast::loop {

enum class TokenKind : uint8_t { word, number, text, hash, sign, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view spelling;
  size_t start = 0;   // in the source
  std::string value;  // of a text in quotes
};

/// Throws CompileError "line:column: message".
[[noreturn]] void fail_at(std::string_view source, size_t position, const std::string& message);

/// word `a.b_1`, number `1.5e-3` or `0x7f`, text `"…"`, hash `#1f3c`, sign `+`, `..`, `->`, …;
/// the last token is `end`.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace backcast::loop
