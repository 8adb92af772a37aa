// Token reading and expressions for the parser of loop IR. Internal to ir/loop.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph/dim.h"
#include "ir/graph/error.h"
#include "ir/graph/loc.h"
#include "ir/loop/lexer.h"
#include "ir/loop/stmt.h"
#include "ir/loop/text_syntax.h"

namespace backcast::loop {

/// Reads tokens one after the other; complaints name line and column.
class TokenReader {
 public:
  explicit TokenReader(std::string_view source) : source_(source), tokens_(tokens_of(source)) {}

  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  Token take() { return tokens_[next_ < tokens_.size() - 1 ? next_++ : next_]; }
  size_t position() const { return next_; }
  void go_to(size_t position) { next_ = position; }
  bool at_end() const { return peek().kind == TokenKind::end; }
  bool next_is(std::string_view spelling, size_t ahead = 0) const;
  bool accept(std::string_view spelling);
  void expect(std::string_view spelling);
  [[noreturn]] void fail(const std::string& message) const { fail(peek(), message); }
  [[noreturn]] void fail(const Token& at, const std::string& message) const {
    fail_at(source_, at.start, message);
  }

  /// A word or a text in quotes.
  std::string name();
  std::string word();
  std::string text();
  int64_t integer();
  Type type();
  Scalar scalar();
  Dim dimension();
  Dims dimensions(std::string_view open, std::string_view close);
  Loc loc();  // after `loc`

 private:
  Dim dimension_sum(int nesting);
  Dim dimension_product(int nesting);
  Dim dimension_factor(int nesting);
  /// f(), its complaint about sizes at a token.
  template <class F>
  Dim checked(const Token& at, F&& f) const {
    try {
      return f();
    } catch (const CompileError& error) {
      fail(at, error.what());
    }
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
};

/// Names in scope while parsing; an inner binding hides an outer one.
class Scope {
 public:
  void bind(const std::string& name, Type type) {
    types_[name].push_back(type);
    order_.push_back(name);
  }
  size_t mark() const { return order_.size(); }
  void leave(size_t mark) {
    for (; order_.size() > mark; order_.pop_back()) types_[order_.back()].pop_back();
  }
  /// Null when the name is not bound.
  const Type* find(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() || found->second.empty() ? nullptr : &found->second.back();
  }

 private:
  std::unordered_map<std::string, std::vector<Type>> types_;
  std::vector<std::string> order_;
};

/// Reads expressions and builds them as they stand, without folding.
class ExprParser {
 public:
  ExprParser(TokenReader& in, Scope& scope) : in_(in), scope_(scope) {}

  Expr run();  // a whole expression
  std::vector<Expr> list(std::string_view close);
  /// Buffers that may be accessed by several indices.
  std::map<std::string, Scalar>& buffers() { return buffers_; }

 private:
  struct Parsed {
    Expr expr;
    int depth = 1;
  };
  Parsed operation(int above, int nesting);
  Parsed prefix(int nesting);
  Parsed named(int nesting);
  Parsed keyword(const std::string& word, const Token& at, int nesting);
  Parsed if_then_else(const Token& at, int nesting);
  Parsed typed_operand(ExprKind kind, const Token& at, int nesting);
  Parsed number(bool negative);
  Parsed load(const Token& at, int nesting);
  Parsed ramp(ExprKind kind, const Token& at, int nesting);
  Parsed shuffle(const Token& at, int nesting);
  Parsed call(const Token& at, int nesting);
  Parsed arguments(ExprNode node, const Token& at, std::string_view close, int nesting);
  Parsed make(ExprNode node, const Token& at, int depth);
  int32_t lanes();
  void check_nesting(int nesting) const;

  TokenReader& in_;
  Scope& scope_;
  std::map<std::string, Scalar> buffers_;
};

}  // namespace backcast::loop
