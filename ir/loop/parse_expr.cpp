// Expressions of the text form: precedence climbing; nodes are built as they stand.
#include <charconv>

#include "ir/loop/integer_fold.h"
#include "ir/loop/parser_base.h"
#include "ir/loop/type_rules.h"

namespace backcast::loop {
namespace {

// Nesting costs stack while reading, depth costs stack in every later walk.
constexpr int kMaxNesting = 400;
constexpr int kMaxDepth = 2000;
constexpr int32_t kMaxShuffle = 1 << 16;

}  // namespace

void ExprParser::check_nesting(int nesting) const {
  if (nesting > kMaxNesting) in_.fail("an expression is nested too deeply");
}

Expr ExprParser::run() { return operation(0, 0).expr; }

std::vector<Expr> ExprParser::list(std::string_view close) {
  std::vector<Expr> result;
  if (in_.accept(close)) return result;
  do {
    result.push_back(run());
  } while (in_.accept(","));
  in_.expect(close);
  return result;
}

ExprParser::Parsed ExprParser::make(ExprNode node, const Token& at, int depth) {
  if (depth > kMaxDepth) in_.fail(at, "an expression is too deep");
  const std::string mistake = type_mistake(node);
  if (!mistake.empty()) in_.fail(at, mistake);
  return {Expr(std::make_shared<const ExprNode>(std::move(node))), depth};
}

ExprParser::Parsed ExprParser::operation(int above, int nesting) {
  check_nesting(nesting);
  if (above == 0 && in_.next_is("if")) return if_then_else(in_.take(), nesting);
  Parsed left = prefix(nesting);
  while (in_.peek().kind == TokenKind::sign) {
    const Token at = in_.peek();
    int precedence = 0;
    const Op op = op_of_sign(at.spelling, left.expr.type().scalar, precedence);
    if (op == Op::none || precedence < above) break;
    in_.take();
    const Parsed right = operation(precedence + 1, nesting + 1);
    ExprNode node = {.kind = ExprKind::binary, .op = op, .args = {left.expr, right.expr}};
    node.type = result_type(node);
    left = make(std::move(node), at, std::max(left.depth, right.depth) + 1);
  }
  return left;
}

ExprParser::Parsed ExprParser::if_then_else(const Token& at, int nesting) {
  const Parsed condition = operation(1, nesting + 1);
  in_.expect("then");
  const Parsed a = operation(1, nesting + 1);
  in_.expect("else");
  const Parsed b = operation(1, nesting + 1);
  ExprNode node = {.kind = ExprKind::if_then_else, .args = {condition.expr, a.expr, b.expr}};
  node.type = result_type(node);
  return make(std::move(node), at, std::max({condition.depth, a.depth, b.depth}) + 1);
}

ExprParser::Parsed ExprParser::prefix(int nesting) {
  check_nesting(nesting);
  const Token at = in_.peek();
  if (at.kind == TokenKind::number) return number(false);
  if (in_.accept("(")) {
    Parsed inner = operation(0, nesting + 1);
    in_.expect(")");
    return inner;
  }
  if (in_.next_is("-") || in_.next_is("~")) {
    in_.take();
    const bool minus = at.spelling == "-";
    const bool constant =
        in_.peek().kind == TokenKind::number || in_.next_is("inf") || in_.next_is("nan");
    if (minus && constant) return number(true);
    const Parsed operand = prefix(nesting + 1);
    ExprNode node = {
        .kind = ExprKind::unary, .op = minus ? Op::neg : Op::bit_not, .args = {operand.expr}};
    node.type = result_type(node);
    return make(std::move(node), at, operand.depth + 1);
  }
  return named(nesting);
}

ExprParser::Parsed ExprParser::number(bool negative) {
  const Token at = in_.take();
  std::string text = (negative ? "-" : "") + std::string(at.spelling);
  if (at.spelling == "nan" && in_.accept("(")) {
    text += "(" + std::string(in_.take().spelling) + ")";
    in_.expect(")");
  }
  ExprNode node = {.kind = ExprKind::constant};
  if (at.spelling == "true" || at.spelling == "false") {
    node.type = {Scalar::boolean, 1};
    node.int_value = at.spelling == "true";
    if (in_.accept(":")) node.type = in_.type();
    if (node.type.scalar != Scalar::boolean) in_.fail(at, "true and false are of type bool");
    return make(std::move(node), at, 1);
  }
  if (in_.accept(":")) node.type = in_.type();
  const Scalar scalar = node.type.scalar;
  if (scalar == Scalar::boolean) in_.fail(at, "a bool is true or false");
  if (is_float(scalar)) {
    if (!float_from_text(scalar, text, node.float_value)) in_.fail(at, "no number: " + text);
    return make(std::move(node), at, 1);
  }
  const char* end = text.data() + text.size();
  uint64_t large = 0;
  const std::from_chars_result read = scalar == Scalar::u64
                                          ? std::from_chars(text.data(), end, large)
                                          : std::from_chars(text.data(), end, node.int_value);
  if (scalar == Scalar::u64) node.int_value = static_cast<int64_t>(large);
  const bool fits =
      read.ec == std::errc() && read.ptr == end && wrap(scalar, node.int_value) == node.int_value;
  if (!fits) in_.fail(at, "no number of type " + node.type.to_string() + ": " + text);
  return make(std::move(node), at, 1);
}

ExprParser::Parsed ExprParser::named(int nesting) {
  const Token at = in_.peek();
  if (at.kind == TokenKind::word) {
    const std::string word(at.spelling);
    if (is_keyword(word)) return keyword(word, at, nesting);
  }
  const std::string name = in_.name();
  if (in_.accept("[")) {
    const auto buffer = buffers_.find(name);
    if (buffer == buffers_.end()) in_.fail(at, "unknown buffer " + name);
    return arguments({.kind = ExprKind::access, .type = {buffer->second, 1}, .name = name}, at, "]",
                     nesting);
  }
  if (in_.accept("(")) {
    return arguments({.kind = ExprKind::call, .type = {Scalar::f32, 0}, .name = name}, at, ")",
                     nesting);
  }
  const Type* type = scope_.find(name);
  if (type == nullptr) in_.fail(at, "unknown name " + name);
  return make({.kind = ExprKind::var, .type = *type, .name = name}, at, 1);
}

ExprParser::Parsed ExprParser::arguments(ExprNode node, const Token& at, std::string_view close,
                                         int nesting) {
  int depth = 0;
  if (!in_.accept(close)) {
    do {
      const Parsed arg = operation(0, nesting + 1);
      node.args.push_back(arg.expr);
      depth = std::max(depth, arg.depth);
    } while (in_.accept(","));
    in_.expect(close);
  }
  if (node.kind == ExprKind::access) {
    for (const Expr& arg : node.args) node.type.lanes = std::max(node.type.lanes, arg.type().lanes);
  } else if (node.kind == ExprKind::call && node.type.lanes == 0) {
    // Without a type of its own, a call has that of its first argument.
    if (node.args.empty()) in_.fail(at, "a call without arguments needs a type: call f32 f()");
    node.type = node.args[0].type();
  } else {
    node.type = result_type(node);
  }
  return make(std::move(node), at, depth + 1);
}

ExprParser::Parsed ExprParser::keyword(const std::string& word, const Token& at, int nesting) {
  if (word == "true" || word == "false" || word == "inf" || word == "nan") return number(false);
  in_.take();
  if (word == "load") return load(at, nesting);
  if (word == "cast") return typed_operand(ExprKind::cast, at, nesting);
  if (word == "bitcast") return typed_operand(ExprKind::bitcast, at, nesting);
  if (word == "call") return call(at, nesting);
  if (word == "ramp") return ramp(ExprKind::ramp, at, nesting);
  if (word == "broadcast") return ramp(ExprKind::broadcast, at, nesting);
  if (word == "shuffle") return shuffle(at, nesting);
  if (!in_.accept("(")) in_.fail(at, "unexpected \"" + word + "\"; as a name it needs quotes");
  if (word == "select") return arguments({.kind = ExprKind::select}, at, ")", nesting);
  if (word == "fma") return arguments({.kind = ExprKind::fma}, at, ")", nesting);
  ExprNode node = {.kind = ExprKind::reduce_lanes};
  if (word == "reduce_lanes") {
    node.op = op_of_name(in_.word());
    in_.expect(",");
  } else {
    node.op = op_of_name(word);
    node.kind = node.op >= Op::add ? ExprKind::binary : ExprKind::unary;
  }
  if (node.op == Op::none) in_.fail(at, "unexpected \"" + word + "\"");
  return arguments(std::move(node), at, ")", nesting);
}

ExprParser::Parsed ExprParser::typed_operand(ExprKind kind, const Token& at, int nesting) {
  const Type type = in_.type();
  in_.expect("(");
  const Parsed operand = operation(0, nesting + 1);
  in_.expect(")");
  return make({.kind = kind, .type = type, .args = {operand.expr}}, at, operand.depth + 1);
}

ExprParser::Parsed ExprParser::load(const Token& at, int nesting) {
  const Type type = in_.type();
  const std::string buffer = in_.name();
  in_.expect("[");
  const Parsed index = operation(0, nesting + 1);
  in_.expect("]");
  return make({.kind = ExprKind::load, .type = type, .name = buffer, .args = {index.expr}}, at,
              index.depth + 1);
}

int32_t ExprParser::lanes() {
  const Token at = in_.peek();
  const int64_t count = in_.integer();
  if (count < 2 || count > kMaxLanes) in_.fail(at, "a vector has 2 to 4096 lanes");
  return static_cast<int32_t>(count);
}

ExprParser::Parsed ExprParser::ramp(ExprKind kind, const Token& at, int nesting) {
  ExprNode node = {.kind = kind};
  int depth = 0;
  in_.expect("(");
  for (int i = 0; i < (kind == ExprKind::ramp ? 2 : 1); ++i) {
    const Parsed arg = operation(0, nesting + 1);
    node.args.push_back(arg.expr);
    depth = std::max(depth, arg.depth);
    in_.expect(",");
  }
  node.type.lanes = lanes();
  in_.expect(")");
  node.type = result_type(node);
  return make(std::move(node), at, depth + 1);
}

ExprParser::Parsed ExprParser::shuffle(const Token& at, int nesting) {
  ExprNode node = {.kind = ExprKind::shuffle};
  int depth = 0;
  in_.expect("(");
  do {
    const Parsed arg = operation(0, nesting + 1);
    node.args.push_back(arg.expr);
    depth = std::max(depth, arg.depth);
  } while (in_.accept(","));
  in_.expect(";");
  do {
    const int64_t lane = in_.integer();
    if (lane < 0 || lane > kMaxShuffle || node.indices.size() >= kMaxLanes) {
      in_.fail(at, "a lane outside of the shuffled values");
    }
    node.indices.push_back(static_cast<int32_t>(lane));
  } while (in_.accept(","));
  in_.expect(")");
  node.type = result_type(node);
  return make(std::move(node), at, depth + 1);
}

ExprParser::Parsed ExprParser::call(const Token& at, int nesting) {
  const Type type = in_.type();
  const std::string name = in_.name();
  in_.expect("(");
  return arguments({.kind = ExprKind::call, .type = type, .name = name}, at, ")", nesting);
}

}  // namespace backcast::loop
