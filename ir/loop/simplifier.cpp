// Simplification of expressions: sums of index terms become canonical, quotients and remainders
// lose what divides, comparisons and extrema are decided where bounds allow.
#include "ir/loop/simplifier.h"

#include <cmath>
#include <numeric>
#include <optional>

#include "ir/loop/integer_fold.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

bool is_index(const Expr& e) { return e.type() == Type{}; }

bool is_sum_node(const Expr& e) {
  if (!is_index(e)) return false;
  if (e->kind == ExprKind::unary) return e->op == Op::neg;
  return e->kind == ExprKind::binary && (e->op == Op::add || e->op == Op::sub || e->op == Op::mul);
}

/// base + lane * stride; a broadcast has stride 0.
struct Ramp {
  Expr base, stride;
};

std::optional<Ramp> as_ramp(const Expr& e) {
  if (e.type().scalar != Scalar::index || !e.type().is_vector()) return {};
  if (e->kind == ExprKind::constant) return Ramp{Expr(e->int_value), Expr(0)};
  if (e->kind == ExprKind::broadcast) return Ramp{e->args[0], Expr(0)};
  if (e->kind == ExprKind::ramp) return Ramp{e->args[0], e->args[1]};
  return {};
}

bool reads_memory(const Expr& e) {
  bool reads = false;
  visit(e, [&](const Expr& node) {
    reads |= node->kind == ExprKind::load || node->kind == ExprKind::access;
  });
  return reads;
}

/// The terms of a sum that a divisor c * factors divides, divided by it; the others.
struct Divided {
  IndexSum whole, rest;
};

bool divide_term(const IndexProduct& term, const IndexProduct& by, IndexProduct& result) {
  if (term.coefficient % by.coefficient != 0) return false;
  result = {term.coefficient / by.coefficient, term.factors};
  for (const Expr& wanted : by.factors) {
    bool found = false;
    for (size_t i = 0; i < result.factors.size() && !found; ++i) {
      if (!equal(result.factors[i], wanted)) continue;
      result.factors.erase(result.factors.begin() + static_cast<int64_t>(i));
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

Divided divide(const IndexSum& sum, const IndexProduct& by) {
  Divided parts;
  const bool by_constant = by.factors.empty();
  parts.whole.constant = by_constant ? floor_div_int(sum.constant, by.coefficient) : 0;
  parts.rest.constant = by_constant ? floor_mod_int(sum.constant, by.coefficient) : sum.constant;
  for (const IndexProduct& term : sum.terms) {
    IndexProduct divided;
    if (!divide_term(term, by, divided)) {
      parts.rest.terms.push_back(term);
    } else if (divided.factors.empty()) {
      parts.whole.constant += divided.coefficient;
    } else {
      parts.whole = add(parts.whole, {0, {std::move(divided)}});
    }
  }
  return parts;
}

/// Greatest common divisor of c and every coefficient.
int64_t common_divisor(const IndexSum& sum, int64_t c) {
  for (const IndexProduct& term : sum.terms) {
    if (term.coefficient == INT64_MIN) return 1;
    c = std::gcd(c, term.coefficient);
  }
  return c;
}

/// The terms divided by g, which divides them; the constant rounded down.
IndexSum reduced(const IndexSum& sum, int64_t g) {
  IndexSum result = {floor_div_int(sum.constant, g), sum.terms};
  for (IndexProduct& term : result.terms) term.coefficient /= g;
  return result;
}

/// The divisor as one product with a positive coefficient; false when it is none.
bool as_divisor(const Expr& b, IndexProduct& by) {
  const IndexSum sum = sum_of(b);
  if (sum.is_constant()) {
    by = {sum.constant, {}};
  } else if (sum.is_single_term()) {
    by = sum.terms[0];
  } else {
    return false;
  }
  return by.coefficient > 0;
}

IndexSum sum_of_product(const IndexProduct& p) {
  return p.factors.empty() ? IndexSum{p.coefficient, {}} : IndexSum{0, {p}};
}

/// Whether the arguments select |x| where that is NaN and the larger of |x| and nothing above zero
/// elsewhere.
bool is_magnitude(const std::vector<Expr>& args) {
  const Expr &condition = args[0], &x = args[1], &larger = args[2];
  if (condition->kind != ExprKind::unary || condition->op != Op::is_nan) return false;
  if (larger->kind != ExprKind::binary || larger->op != Op::max) return false;
  const Expr& least = larger->args[1];
  return x->kind == ExprKind::unary && x->op == Op::abs && is_float(x.type().scalar) &&
         equal(condition->args[0], x) && equal(larger->args[0], x) &&
         least->kind == ExprKind::constant &&
         (least->float_value < 0 || (least->float_value == 0 && !std::signbit(least->float_value)));
}

}  // namespace

Expr Simplifier::materialize(const IndexSum& sum) const {
  return expr_of(sum, [this](const Expr& e) { return knowledge_.depth(e); });
}

Expr Simplifier::run(const Expr& e) {
  if (e->args.empty()) return e;
  const auto found = done_.find(e.get());
  if (found != done_.end()) return found->second.second;
  const Expr result = run_node(e);
  done_[e.get()] = {e, result};
  return result;
}

Expr Simplifier::run_node(const Expr& e) {
  if (is_sum_node(e)) return materialize(join_quotients(collect(e)));
  if (e->kind == ExprKind::binary) return run_binary(e);
  if (e->kind == ExprKind::if_then_else) return run_if(e);
  std::vector<Expr> args;
  for (const Expr& arg : e->args) args.push_back(run(arg));
  if (e->kind == ExprKind::select && equal(args[1], args[2])) return args[1];
  if (e->kind == ExprKind::select && is_magnitude(args)) return args[1];
  if (e->kind == ExprKind::load && e.type().is_vector()) {
    const std::optional<Ramp> at = as_ramp(args[0]);
    if (at && is_constant(at->stride, 1)) args[0] = at->base;
    if (at && is_constant(at->stride, 0)) {
      return broadcast(load(e.type().with_lanes(1), e->name, at->base), e.type().lanes);
    }
  }
  return with_args(e, std::move(args));
}

IndexSum Simplifier::collect(const Expr& e) {
  if (!is_sum_node(e)) return sum_of(run(e));
  if (e->kind == ExprKind::unary) return scaled(collect(e->args[0]), -1);
  const IndexSum a = collect(e->args[0]);
  const IndexSum b = collect(e->args[1]);
  if (e->op == Op::add) return add(a, b);
  if (e->op == Op::sub) return add(a, b, -1);
  return sum_of(binary(Op::mul, materialize(a), materialize(b)));
}

Expr Simplifier::run_under(const Expr& e, const Expr& condition, bool truth) {
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> outside;
  outside.swap(done_);
  const size_t before = knowledge_.assume(condition, truth);
  // Nothing new is known: results from outside hold.
  if (knowledge_.assumptions() == before) outside.swap(done_);
  const Expr result = run(e);
  if (knowledge_.assumptions() != before) outside.swap(done_);
  knowledge_.forget_to(before);
  return result;
}

Expr Simplifier::run_if(const Expr& e) {
  const Expr condition = run(e->args[0]);
  int64_t decided = 0;
  if (as_constant(condition, decided)) return run(e->args[decided != 0 ? 1 : 2]);
  const Expr a = run_under(e->args[1], condition, true);
  const Expr b = run_under(e->args[2], condition, false);
  // Without a read there is nothing that laziness protects, and equal branches need no condition.
  if (equal(a, b) && !reads_memory(a)) return a;
  return if_then_else(condition, a, b);
}

Expr Simplifier::run_conjunction(const Expr& e, const Expr& a) {
  int64_t value = 0;
  const bool conjunction = e->op == Op::bit_and;
  if (as_constant(a, value)) return (value != 0) == conjunction ? run(e->args[1]) : a;
  // Only where a holds (or, in a disjunction, fails) does b matter; a read in b happens always.
  const Expr b = reads_memory(e->args[1]) ? run(e->args[1]) : run_under(e->args[1], a, conjunction);
  return equal(a, b) ? a : binary(e->op, a, b);
}

Expr Simplifier::run_binary(const Expr& e) {
  const Expr a = run(e->args[0]);
  const bool logical = e->op == Op::bit_and || e->op == Op::bit_or;
  if (logical && e.type() == Type{Scalar::boolean}) return run_conjunction(e, a);
  const Expr b = run(e->args[1]);
  if (a.type().scalar == Scalar::index && a.type().is_vector()) {
    return vector_arithmetic(e->op, a, b);
  }
  if (!is_index(a)) return binary(e->op, a, b);
  if (is_comparison(e->op)) return comparison(e->op, a, b);
  switch (e->op) {
    case Op::floor_div:
      return quotient(a, b);
    case Op::floor_mod:
      return remainder(a, b);
    case Op::min:
    case Op::max:
      return extremum(e->op, a, b);
    default:
      return binary(e->op, a, b);
  }
}

Expr Simplifier::quotient(const Expr& a, const Expr& b) {
  IndexProduct by;
  if (!as_divisor(b, by)) return floor_div(a, b);
  Divided parts = divide(sum_of(a), by);
  const IndexSum divisor = sum_of_product(by);
  const Interval range = knowledge_.range(parts.rest);
  if (knowledge_.decide(Op::ge, parts.rest, {}) == 1 &&
      knowledge_.decide(Op::lt, parts.rest, divisor) == 1) {
    return materialize(parts.whole);
  }
  if (!by.factors.empty()) return floor_div(a, b);
  int64_t c = by.coefficient;
  if (range.min != INT64_MIN && range.max != INT64_MAX &&
      floor_div_int(range.min, c) == floor_div_int(range.max, c)) {
    return materialize(plus_constant(parts.whole, floor_div_int(range.min, c)));
  }
  const int64_t g = common_divisor(parts.rest, c);
  Expr rest = materialize(reduced(parts.rest, g));
  c /= g;
  int64_t inner = 0;
  const bool nested = rest->kind == ExprKind::binary && rest->op == Op::floor_div &&
                      as_constant(rest->args[1], inner) && inner > 0 && inner < (1 << 30) &&
                      c < (1 << 30);
  if (nested) return run(materialize(add(parts.whole, sum_of(quotient(rest->args[0], inner * c)))));
  return materialize(add(parts.whole, sum_of(floor_div(rest, c))));
}

Expr Simplifier::remainder(const Expr& a, const Expr& b) {
  IndexProduct by;
  if (!as_divisor(b, by)) return floor_mod(a, b);
  const Divided parts = divide(sum_of(a), by);
  const Interval range = knowledge_.range(parts.rest);
  if (knowledge_.decide(Op::ge, parts.rest, {}) == 1 &&
      knowledge_.decide(Op::lt, parts.rest, sum_of_product(by)) == 1) {
    return materialize(parts.rest);
  }
  if (!by.factors.empty()) return floor_mod(materialize(parts.rest), b);
  const int64_t c = by.coefficient;
  if (range.min != INT64_MIN && range.max != INT64_MAX &&
      floor_div_int(range.min, c) == floor_div_int(range.max, c)) {
    return materialize(plus_constant(parts.rest, -c * floor_div_int(range.min, c)));
  }
  // (g*x + m) % (g*c) = g * ((x + m/g) % c) + m % g, with m < g*c.
  const int64_t g = common_divisor(parts.rest, c);
  const Expr rest = floor_mod(materialize(reduced(parts.rest, g)), Expr(c / g));
  return materialize(plus_constant(scaled(sum_of(rest), g), floor_mod_int(parts.rest.constant, g)));
}

Expr Simplifier::extremum(Op op, const Expr& a, const Expr& b) {
  const bool smaller = op == Op::min;
  const int decided = knowledge_.decide(Op::le, sum_of(a), sum_of(b));
  if (decided == 1) return smaller ? a : b;
  if (decided == 0) return smaller ? b : a;
  if (knowledge_.decide(Op::le, sum_of(b), sum_of(a)) == 1) return smaller ? b : a;
  return binary(op, a, b);
}

Expr Simplifier::comparison(Op op, const Expr& a, const Expr& b) {
  const int decided = knowledge_.decide(op, sum_of(a), sum_of(b));
  if (decided >= 0) return int_constant({Scalar::boolean}, decided);
  return binary(op, a, b);
}

Expr Simplifier::vector_arithmetic(Op op, const Expr& a, const Expr& b) {
  const int32_t lanes = a.type().lanes;
  const std::optional<Ramp> x = as_ramp(a);
  const std::optional<Ramp> y = as_ramp(b);
  if (!x || !y) return binary(op, a, b);
  if (is_comparison(op)) {
    // Both ends of a line decide what lies between, except for equality.
    const auto last = [&](const Ramp& r) {
      return add(sum_of(r.base), multiply(sum_of(r.stride), {lanes - 1, {}}));
    };
    const int first_lane = knowledge_.decide(op, sum_of(x->base), sum_of(y->base));
    const bool ordered = op != Op::eq && op != Op::ne;
    if (ordered && first_lane >= 0 && knowledge_.decide(op, last(*x), last(*y)) == first_lane) {
      return int_constant({Scalar::boolean, lanes}, first_lane);
    }
    return binary(op, a, b);
  }
  const bool scalar_x = is_constant(x->stride, 0);
  const bool scalar_y = is_constant(y->stride, 0);
  if (scalar_x && scalar_y) return broadcast(run(binary(op, x->base, y->base)), lanes);
  if (op == Op::add || op == Op::sub) {
    return ramp(run(binary(op, x->base, y->base)), run(binary(op, x->stride, y->stride)), lanes);
  }
  if (op == Op::mul && (scalar_x || scalar_y)) {
    const Ramp& line = scalar_x ? *y : *x;
    const Expr& factor = scalar_x ? x->base : y->base;
    return ramp(run(line.base * factor), run(line.stride * factor), lanes);
  }
  return binary(op, a, b);
}

}  // namespace backcast::loop
