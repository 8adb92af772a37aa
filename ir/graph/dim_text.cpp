// Dimensions as text. Printing and parsing agree on the usual precedence: unary minus, then
// * / %, then + -; the division rounds down.
#include <charconv>

#include "ir/graph/dim.h"
#include "ir/graph/dim_math.h"
#include "ir/graph/scanner.h"

namespace backcast {
namespace {

using Atom = Dim::Atom;
using Kind = Atom::Kind;

constexpr int kMaxNesting = 64;

/// As the left or right side of a division: bare when it is one symbol or a natural number.
std::string division_side(const Dim& d) {
  const bool bare = d.is_constant()
                        ? d.constant_term() >= 0
                        : d.constant_term() == 0 && d.terms().size() == 1 &&
                              d.terms()[0].coefficient == 1 && d.terms()[0].atoms.size() == 1 &&
                              (d.terms()[0].atoms[0]->kind == Kind::symbol ||
                               d.terms()[0].atoms[0]->kind == Kind::min ||
                               d.terms()[0].atoms[0]->kind == Kind::max);
  return bare ? d.to_string() : "(" + d.to_string() + ")";
}

std::string atom_text(const Atom& atom, bool parentheses) {
  switch (atom.kind) {
    case Kind::symbol:
      return is_word(atom.name) ? atom.name : quote(atom.name);
    case Kind::min:
      return "min(" + atom.a.to_string() + ", " + atom.b.to_string() + ")";
    case Kind::max:
      return "max(" + atom.a.to_string() + ", " + atom.b.to_string() + ")";
    case Kind::floor_div:
    case Kind::mod:
      break;
  }
  const std::string text =
      division_side(atom.a) + (atom.kind == Kind::mod ? "%" : "/") + division_side(atom.b);
  return parentheses ? "(" + text + ")" : text;
}

}  // namespace

std::string Dim::to_string() const {
  std::string text;
  for (const Term& term : terms_) {
    const bool negative = term.coefficient < 0 && term.coefficient != INT64_MIN;
    if (negative) text += "-";
    if (!negative && !text.empty()) text += "+";
    const uint64_t size = math::magnitude(term.coefficient);
    const bool alone = size == 1 && term.atoms.size() == 1 && text != "-";
    for (size_t i = 0; i < term.atoms.size(); ++i) {
      if (i > 0) text += "*";
      text += atom_text(*term.atoms[i], !alone);
    }
    if (size != 1) {
      text += "*" + (negative ? std::to_string(size) : std::to_string(term.coefficient));
    }
  }
  if (text.empty()) return std::to_string(constant_);
  if (constant_ > 0) text += "+";
  if (constant_ != 0) text += std::to_string(constant_);
  return text;
}

std::optional<Dim> Dim::parse(std::string_view text) {
  try {
    Scanner scanner(text);
    Dim result = scanner.dimension();
    if (!scanner.at_end()) return std::nullopt;
    return result;
  } catch (const CompileError&) {
    return std::nullopt;
  }
}

Dim Scanner::dimension() {
  const size_t start = position();
  try {
    return sum(0);
  } catch (const CompileError& error) {
    const std::string_view message = error.what();
    // Arithmetic does not know where it happens.
    if (!message.empty() && message[0] >= '0' && message[0] <= '9') throw;
    fail_at(start, std::string(message));
  }
}

Dim Scanner::sum(int depth) {
  if (depth > kMaxNesting) fail("a dimension is nested too deeply");
  Dim result = product(depth);
  while (true) {
    if (accept("+")) {
      result = result + product(depth);
    } else if (accept("-")) {
      result = result - product(depth);
    } else {
      return result;
    }
  }
}

Dim Scanner::product(int depth) {
  Dim result = factor(depth);
  while (true) {
    if (accept("*")) {
      result = result * factor(depth);
    } else if (accept("/")) {
      result = Dim::floor_div(result, factor(depth));
    } else if (accept("%")) {
      result = Dim::mod(result, factor(depth));
    } else {
      return result;
    }
  }
}

Dim Scanner::factor(int depth) {
  if (depth > kMaxNesting) fail("a dimension is nested too deeply");
  const char next = peek();
  const bool negative_number =
      next == '-' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9';
  if (negative_number || (next >= '0' && next <= '9')) return integer();
  if (accept("-")) return Dim(0) - factor(depth + 1);
  if (accept("(")) {
    Dim inner = sum(depth + 1);
    expect(")");
    return inner;
  }
  if (next == '"') {
    const size_t start = position();
    std::string name = quoted();
    if (name.empty()) fail_at(start, "a dimension symbol needs a name");
    return Dim::symbol(std::move(name));
  }
  const std::string_view symbol = word();
  if (symbol.empty()) fail("expected a dimension");
  if ((symbol == "min" || symbol == "max") && accept("(")) {
    const Dim a = sum(depth + 1);
    expect(",");
    const Dim b = sum(depth + 1);
    expect(")");
    return symbol == "min" ? Dim::min(a, b) : Dim::max(a, b);
  }
  return Dim::symbol(std::string(symbol));
}

}  // namespace backcast
