// Expressions as text: infix, with the parentheses that precedence needs.
#include "ir/graph/error.h"
#include "ir/loop/text.h"
#include "ir/loop/text_syntax.h"

namespace backcast::loop {
namespace {

class ExprPrinter {
 public:
  /// `above`: precedence that binds the text; weaker expressions need parentheses.
  void run(const Expr& e, int above) {
    if (!e) {
      text_ += "<none>";
      return;
    }
    switch (e->kind) {
      case ExprKind::constant:
        return constant(*e);
      case ExprKind::var:
        text_ += name_text(e->name);
        return;
      case ExprKind::access:
        return list(name_text(e->name) + "[", e->args, "]");
      case ExprKind::load:
        return list("load " + e->type.to_string() + " " + name_text(e->name) + "[", e->args, "]");
      case ExprKind::unary:
        return unary(*e, above);
      case ExprKind::binary:
        return binary(*e, above);
      case ExprKind::fma:
        return list("fma(", e->args);
      case ExprKind::select:
        return list("select(", e->args);
      case ExprKind::if_then_else:
        return if_then_else(*e, above);
      case ExprKind::cast:
        return list("cast " + e->type.to_string() + " (", e->args);
      case ExprKind::bitcast:
        return list("bitcast " + e->type.to_string() + " (", e->args);
      case ExprKind::ramp:
      case ExprKind::broadcast:
        return list(e->kind == ExprKind::ramp ? "ramp(" : "broadcast(", e->args,
                    ", " + std::to_string(e->type.lanes) + ")");
      case ExprKind::shuffle:
        return shuffle(*e);
      case ExprKind::reduce_lanes:
        return list("reduce_lanes(" + std::string(name_of(e->op)) + ", ", e->args);
      case ExprKind::call:
        return call(*e);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void list(const std::string& before, const std::vector<Expr>& args,
            const std::string& after = ")") {
    text_ += before;
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) text_ += ", ";
      run(args[i], 0);
    }
    text_ += after;
  }

  void constant(const ExprNode& e) {
    text_ += value_text(e);
    const bool typed = e.type != Type{} && e.type != Type{Scalar::boolean};
    if (typed) text_ += ":" + e.type.to_string();
  }

  void unary(const ExprNode& e, int above) {
    // `-3` is a constant, and `--x` is no good text.
    const Expr& a = e.args[0];
    const bool sign = (e.op == Op::neg || e.op == Op::bit_not) && a->kind != ExprKind::constant &&
                      a->kind != ExprKind::unary;
    if (!sign) return list(std::string(name_of(e.op)) + "(", e.args);
    if (above > kUnaryPrecedence) text_ += "(";
    text_ += e.op == Op::neg ? "-" : "~";
    run(a, kUnaryPrecedence + 1);
    if (above > kUnaryPrecedence) text_ += ")";
  }

  void binary(const ExprNode& e, int above) {
    const Infix infix = infix_of(e.op, e.args[0].type().scalar);
    if (infix.precedence == 0) return list(std::string(name_of(e.op)) + "(", e.args);
    const bool parentheses = infix.precedence < above;
    const bool chains = infix.precedence != kComparisonPrecedence;
    if (parentheses) text_ += "(";
    run(e.args[0], chains ? infix.precedence : infix.precedence + 1);
    const bool tight = infix.precedence == 7;
    text_ += tight ? std::string(infix.sign) : " " + std::string(infix.sign) + " ";
    run(e.args[1], infix.precedence + 1);
    if (parentheses) text_ += ")";
  }

  void if_then_else(const ExprNode& e, int above) {
    if (above > 0) text_ += "(";
    text_ += "if ";
    run(e.args[0], 1);
    text_ += " then ";
    run(e.args[1], 1);
    text_ += " else ";
    run(e.args[2], 1);
    if (above > 0) text_ += ")";
  }

  void shuffle(const ExprNode& e) {
    list("shuffle(", e.args, ";");
    for (size_t i = 0; i < e.indices.size(); ++i) {
      text_ += (i == 0 ? " " : ", ") + std::to_string(e.indices[i]);
    }
    text_ += ")";
  }

  void call(const ExprNode& e) {
    const bool plain = !e.args.empty() && e.args[0].type() == e.type;
    list((plain ? "" : "call " + e.type.to_string() + " ") + name_text(e.name) + "(", e.args);
  }

  std::string text_;
};

}  // namespace

std::string print(const Expr& expr) {
  ExprPrinter printer;
  printer.run(expr, 0);
  return printer.take();
}

/// With an `if` in parentheses, as conditions need it.
std::string print_operand(const Expr& expr) {
  ExprPrinter printer;
  printer.run(expr, 1);
  return printer.take();
}

}  // namespace backcast::loop
