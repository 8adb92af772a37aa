// Tokens of the text form.
#include "ir/graph/scanner.h"

#include <algorithm>
#include <charconv>

namespace backcast {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Scanner::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool Scanner::at_end() {
  skip_blanks();
  return at_ == text_.size();
}

char Scanner::peek() { return at_end() ? '\0' : text_[at_]; }

size_t Scanner::position() {
  skip_blanks();
  return at_;
}

bool Scanner::accept(std::string_view token) {
  skip_blanks();
  if (text_.substr(at_, token.size()) != token) return false;
  const size_t end = at_ + token.size();
  if (is_letter(token.back()) && end < text_.size() &&
      (is_letter(text_[end]) || is_digit(text_[end]))) {
    return false;
  }
  at_ = end;
  return true;
}

void Scanner::expect(std::string_view token) {
  if (!accept(token)) fail("expected \"" + std::string(token) + "\"");
}

std::string_view Scanner::word() {
  skip_blanks();
  size_t end = at_;
  while (end < text_.size() && (is_letter(text_[end]) || (end > at_ && is_digit(text_[end]))))
    ++end;
  const std::string_view result = text_.substr(at_, end - at_);
  at_ = end;
  return result;
}

std::string_view Scanner::name() {
  size_t end = at_;
  while (end < text_.size() &&
         (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.')) {
    ++end;
  }
  if (end == at_) fail("expected a name");
  const std::string_view result = text_.substr(at_, end - at_);
  at_ = end;
  return result;
}

std::string Scanner::quoted() {
  const size_t start = position();
  expect("\"");
  std::string result;
  while (at_ < text_.size() && text_[at_] != '\n') {
    const char c = text_[at_++];
    if (c == '"') return result;
    if (c != '\\') {
      result += c;
      continue;
    }
    const char escape = at_ < text_.size() ? text_[at_++] : '\0';
    if (escape == '"' || escape == '\\') {
      result += escape;
    } else if (escape == 'n') {
      result += '\n';
    } else if (escape == 't') {
      result += '\t';
    } else if (escape == 'x' && at_ + 1 < text_.size() && hex_digit(text_[at_]) >= 0 &&
               hex_digit(text_[at_ + 1]) >= 0) {
      result += static_cast<char>(hex_digit(text_[at_]) * 16 + hex_digit(text_[at_ + 1]));
      at_ += 2;
    } else {
      fail_at(at_ - 2, "unknown escape in a string; known are \\\" \\\\ \\n \\t \\xHH");
    }
  }
  fail_at(start, "a string does not end on its line");
}

int64_t Scanner::integer() {
  skip_blanks();
  int64_t value = 0;
  const std::from_chars_result result =
      std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (result.ec == std::errc::result_out_of_range) fail("an integer exceeds 64 bits");
  if (result.ec != std::errc()) fail("expected an integer");
  at_ = static_cast<size_t>(result.ptr - text_.data());
  return value;
}

std::string_view Scanner::number() {
  skip_blanks();
  size_t end = at_;
  while (end < text_.size()) {
    const char c = text_[end];
    if (!is_letter(c) && !is_digit(c) && c != '.' && c != '+' && c != '-') break;
    ++end;
  }
  if (text_.substr(end, 1) == "(") {  // of nan(0x…)
    const size_t close = text_.substr(end, 24).find(')');
    if (close != std::string_view::npos) end += close + 1;
  }
  if (end == at_) fail("expected a number");
  const std::string_view result = text_.substr(at_, end - at_);
  at_ = end;
  return result;
}

uint64_t Scanner::hexadecimal() {
  const size_t start = at_;
  uint64_t value = 0;
  while (at_ < text_.size() && at_ - start < 16 && hex_digit(text_[at_]) >= 0) {
    value = value << 4 | static_cast<uint64_t>(hex_digit(text_[at_++]));
  }
  if (at_ == start) fail("expected hexadecimal digits");
  return value;
}

void Scanner::fail(const std::string& message) { fail_at(position(), message); }

void Scanner::fail_at(size_t position, const std::string& message) const {
  const std::string_view before = text_.substr(0, position);
  const int64_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw CompileError(fmt::format("{}:{}: {}", line, position - line_start + 1, message));
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

bool is_word(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace backcast
