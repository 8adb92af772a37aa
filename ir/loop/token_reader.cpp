// Token reading for the parser of loop IR.
#include <algorithm>
#include <charconv>

#include "ir/graph/error.h"
#include "ir/loop/parser_base.h"

namespace backcast::loop {
namespace {

constexpr int kMaxDimensionNesting = 60;

}  // namespace

bool TokenReader::next_is(std::string_view spelling, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind != TokenKind::text && token.kind != TokenKind::end &&
         token.spelling == spelling;
}

bool TokenReader::accept(std::string_view spelling) {
  if (!next_is(spelling)) return false;
  take();
  return true;
}

void TokenReader::expect(std::string_view spelling) {
  if (!accept(spelling)) fail("expected \"" + std::string(spelling) + "\"");
}

std::string TokenReader::name() {
  if (peek().kind == TokenKind::text) return text();
  return word();
}

std::string TokenReader::word() {
  if (peek().kind != TokenKind::word) fail("expected a name");
  return std::string(take().spelling);
}

std::string TokenReader::text() {
  if (peek().kind != TokenKind::text) fail("expected a text in quotes");
  return take().value;
}

int64_t TokenReader::integer() {
  const Token at = peek();
  const bool negative = accept("-");
  if (peek().kind != TokenKind::number) fail("expected an integer");
  const std::string digits = (negative ? "-" : "") + std::string(take().spelling);
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const std::from_chars_result result = std::from_chars(digits.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) fail(at, "an integer exceeds 64 bits");
  if (result.ec != std::errc() || result.ptr != end) fail(at, "expected an integer");
  return value;
}

Type TokenReader::type() {
  const Token at = peek();
  Type result;
  if (!type_from_text(word(), result)) fail(at, "expected a type such as f32 or f32x8");
  return result;
}

Scalar TokenReader::scalar() {
  const Token at = peek();
  const Type result = type();
  if (result.is_vector() || result.scalar == Scalar::index) fail(at, "expected an element type");
  return result.scalar;
}

Dims TokenReader::dimensions(std::string_view open, std::string_view close) {
  Dims dims;
  expect(open);
  if (accept(close)) return dims;
  do {
    dims.push_back(dimension());
  } while (accept(","));
  expect(close);
  return dims;
}

Loc TokenReader::loc() {
  static constexpr std::string_view kOrigins[] = {"imported", "adjoint_of", "fused_from", "made"};
  Loc loc;
  expect("(");
  loc.node = text();
  expect(",");
  loc.op_type = text();
  if (accept(",")) {
    const Token at = peek();
    const std::string origin = word();
    const std::string_view* found = std::find(std::begin(kOrigins), std::end(kOrigins), origin);
    if (found == std::end(kOrigins)) fail(at, "unknown origin " + origin);
    loc.origin = static_cast<Origin>(found - kOrigins);
  }
  expect(")");
  return loc;
}

Dim TokenReader::dimension() { return dimension_sum(0); }

Dim TokenReader::dimension_sum(int nesting) {
  Dim sum = dimension_product(nesting);
  while (next_is("+") || next_is("-")) {
    const Token at = take();
    const Dim right = dimension_product(nesting);
    sum = checked(at, [&] { return at.spelling == "+" ? sum + right : sum - right; });
  }
  return sum;
}

Dim TokenReader::dimension_product(int nesting) {
  Dim product = dimension_factor(nesting);
  while (next_is("*") || next_is("/") || next_is("%")) {
    const Token at = take();
    const Dim right = dimension_factor(nesting);
    product = checked(at, [&] {
      if (at.spelling == "*") return product * right;
      return at.spelling == "/" ? Dim::floor_div(product, right) : Dim::mod(product, right);
    });
  }
  return product;
}

Dim TokenReader::dimension_factor(int nesting) {
  if (nesting > kMaxDimensionNesting) fail("a dimension is nested too deeply");
  const Token at = peek();
  const bool number =
      at.kind == TokenKind::number || (next_is("-") && peek(1).kind == TokenKind::number);
  if (number) return integer();
  if (accept("-")) {
    const Dim operand = dimension_factor(nesting + 1);
    return checked(at, [&] { return Dim(0) - operand; });
  }
  if (accept("(")) {
    Dim inner = dimension_sum(nesting + 1);
    expect(")");
    return inner;
  }
  const bool smaller = next_is("min");
  if ((smaller || next_is("max")) && next_is("(", 1)) {
    take();
    take();
    const Dim a = dimension_sum(nesting + 1);
    expect(",");
    const Dim b = dimension_sum(nesting + 1);
    expect(")");
    return checked(at, [&] { return smaller ? Dim::min(a, b) : Dim::max(a, b); });
  }
  if (at.kind != TokenKind::word && at.kind != TokenKind::text) fail("expected a dimension");
  const std::string symbol = name();
  if (symbol.empty()) fail(at, "a symbol without a name");
  return Dim::symbol(symbol);
}

}  // namespace backcast::loop
