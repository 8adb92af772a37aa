// Tokens of loop IR's text form.
#include "ir/loop/lexer.h"

#include <algorithm>

#include "ir/graph/error.h"
#include "ir/graph/scanner.h"

namespace backcast::loop {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view kSigns[] = {"..", "->", "==", "!=", "<=", ">=", "<<", ">>"};
constexpr std::string_view kSingleSigns = "()[]{},:;=+-*/%<>&|^~@.";

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (skip_blanks(); at_ < source_.size(); skip_blanks()) tokens.push_back(next());
    tokens.push_back({TokenKind::end, {}, source_.size(), {}});
    return tokens;
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (at_ < source_.size()) {
      const char c = peek();
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        at_ = std::min(source_.find('\n', at_), source_.size());
      } else {
        return;
      }
    }
  }

  template <class F>
  void skip_while(F&& belongs) {
    while (at_ < source_.size() && belongs(peek())) ++at_;
  }

  void skip_number() {
    if (peek() == '0' && peek(1) == 'x') {
      at_ += 2;
      skip_while([](char c) { return is_digit(c) || is_letter(c); });
      return;
    }
    skip_while(is_digit);
    if (peek() == '.' && is_digit(peek(1))) {
      ++at_;
      skip_while(is_digit);
    }
    const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      at_ += 1 + sign;
      skip_while(is_digit);
    }
  }

  Token text() {
    const size_t start = at_++;
    while (at_ < source_.size() && peek() != '"' && peek() != '\n') at_ += peek() == '\\' ? 2 : 1;
    if (peek() != '"') fail_at(source_, start, "a string does not end on its line");
    ++at_;
    const std::string_view spelling = source_.substr(start, at_ - start);
    try {
      return {TokenKind::text, spelling, start, Scanner(spelling).quoted()};
    } catch (const CompileError&) {
      fail_at(source_, start, "unknown escape in a string; known are \\\" \\\\ \\n \\t \\xHH");
    }
  }

  Token next() {
    const size_t start = at_;
    const char c = peek();
    TokenKind kind = TokenKind::sign;
    if (c == '"') return text();
    if (is_letter(c)) {
      kind = TokenKind::word;
      skip_while([this](char d) {
        return is_letter(d) || is_digit(d) ||
               (d == '.' && (is_letter(peek(1)) || is_digit(peek(1))));
      });
    } else if (is_digit(c)) {
      kind = TokenKind::number;
      skip_number();
    } else if (c == '#') {
      kind = TokenKind::hash;
      ++at_;
      skip_while([](char d) { return is_letter(d) || is_digit(d); });
    } else {
      const std::string_view* sign =
          std::find(std::begin(kSigns), std::end(kSigns), source_.substr(at_, 2));
      const bool single = kSingleSigns.find(c) != std::string_view::npos;
      if (sign == std::end(kSigns) && !single) fail_at(source_, at_, "unexpected character");
      at_ += sign != std::end(kSigns) ? 2 : 1;
    }
    return {kind, source_.substr(start, at_ - start), start, {}};
  }

  std::string_view source_;
  size_t at_ = 0;
};

}  // namespace

void fail_at(std::string_view source, size_t position, const std::string& message) {
  const std::string_view before = source.substr(0, position);
  const int64_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw CompileError(fmt::format("{}:{}: {}", line, position - line_start + 1, message));
}

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace backcast::loop
