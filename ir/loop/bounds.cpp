// Interval analysis, and proofs by replacing variables by their bounds, innermost first.
#include "ir/loop/bounds.h"

#include <algorithm>

#include "ir/loop/integer_fold.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

int64_t clamp(__int128 value) {
  // -INT64_MAX is the negation of "unbounded".
  if (value >= INT64_MAX) return INT64_MAX;
  return value <= -static_cast<__int128>(INT64_MAX) ? INT64_MIN : static_cast<int64_t>(value);
}

Interval operator+(Interval a, Interval b) {
  const bool no_min = a.min == INT64_MIN || b.min == INT64_MIN;
  const bool no_max = a.max == INT64_MAX || b.max == INT64_MAX;
  return {no_min ? INT64_MIN : clamp(static_cast<__int128>(a.min) + b.min),
          no_max ? INT64_MAX : clamp(static_cast<__int128>(a.max) + b.max)};
}

Interval operator*(Interval a, Interval b) {
  const __int128 products[] = {
      static_cast<__int128>(a.min) * b.min, static_cast<__int128>(a.min) * b.max,
      static_cast<__int128>(a.max) * b.min, static_cast<__int128>(a.max) * b.max};
  return {clamp(*std::min_element(products, products + 4)),
          clamp(*std::max_element(products, products + 4))};
}

Interval hull(Interval a, Interval b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

int64_t divide_bound(int64_t bound, int64_t by) {
  return bound == INT64_MIN || bound == INT64_MAX ? bound : floor_div_int(bound, by);
}

Interval quotient(Interval a, Interval b) {
  if (b.min < 1) return {};
  Interval result = {divide_bound(a.min, b.min), divide_bound(a.max, b.min)};
  if (b.max == INT64_MAX) return hull(result, {a.min >= 0 ? 0 : -1, a.max >= 0 ? 0 : -1});
  return hull(result, {divide_bound(a.min, b.max), divide_bound(a.max, b.max)});
}

Interval remainder(Interval a, Interval b) {
  if (b.min < 1) return {};
  Interval result = {0, b.max == INT64_MAX ? INT64_MAX : b.max - 1};
  if (a.min >= 0) {
    result.max = std::min(result.max, a.max);
    if (a.max < b.min) result.min = a.min;
  }
  return result;
}

Interval range_of_type(Scalar scalar) {
  const int width = bit_width(scalar);
  if (is_float(scalar) || width == 64) return {};
  if (scalar == Scalar::boolean) return {0, 1};
  if (!is_signed(scalar)) return {0, (int64_t{1} << width) - 1};
  return {-(int64_t{1} << (width - 1)), (int64_t{1} << (width - 1)) - 1};
}

bool reads_memory(const Expr& e) {
  bool reads = false;
  visit(e, [&](const Expr& node) {
    reads |= node->kind == ExprKind::load || node->kind == ExprKind::access;
  });
  return reads;
}

bool reads_memory(const IndexSum& sum) {
  return std::any_of(sum.terms.begin(), sum.terms.end(), [](const IndexProduct& term) {
    return std::any_of(term.factors.begin(), term.factors.end(),
                       [](const Expr& e) { return reads_memory(e); });
  });
}

}  // namespace

void Knowledge::bind(const std::string& name, Interval range) {
  variables_[name] = {range, {}, {}, next_depth_++};
}

void Knowledge::bind_loop(const std::string& name, const Expr& begin, const Expr& extent) {
  const Interval from = range(begin);
  const Interval count = range(extent);
  const Interval last = from + Interval{0, std::max<int64_t>(count.max, 1)} + Interval{-1, -1};
  Variable v = {{from.min, last.max}, {}, {}, next_depth_++};
  const IndexSum lower = sum_of(begin);
  const IndexSum upper = plus_constant(add(lower, sum_of(extent)), -1);
  // Memory may have changed since the loop began.
  if (!reads_memory(lower)) v.lower.push_back(lower);
  if (!reads_memory(upper)) v.upper.push_back(upper);
  variables_[name] = std::move(v);
  assume_nonnegative(plus_constant(sum_of(extent), -1));
}

void Knowledge::bind_equal(const std::string& name, const Expr& value) {
  Variable v = {range(value), {}, {}, next_depth_++};
  const IndexSum sum = sum_of(value);
  if (!reads_memory(sum)) {
    v.lower.push_back(sum);
    v.upper.push_back(sum);
  }
  variables_[name] = std::move(v);
}

void Knowledge::unbind(const std::string& name) { variables_.erase(name); }

void Knowledge::assume_nonnegative(IndexSum sum) {
  if (!sum.is_constant() && !reads_memory(sum)) facts_.push_back(std::move(sum));
}

size_t Knowledge::assume(const Expr& condition, bool truth) {
  const size_t before = facts_.size();
  if (condition->kind != ExprKind::binary) return before;
  const bool both = condition->op == (truth ? Op::bit_and : Op::bit_or);
  const Expr& a = condition->args[0];
  const Expr& b = condition->args[1];
  if (both && a.type().scalar == Scalar::boolean) {
    assume(a, truth);
    assume(b, truth);
    return before;
  }
  if (!is_comparison(condition->op) || a.type() != Type{}) return before;
  const IndexSum difference = add(sum_of(b), sum_of(a), -1);  // b - a
  Op op = condition->op;
  if (!truth) {
    static constexpr Op kOpposite[] = {Op::ne, Op::eq, Op::ge, Op::gt, Op::le, Op::lt};
    op = kOpposite[static_cast<size_t>(op) - static_cast<size_t>(Op::eq)];
  }
  if (op == Op::lt) assume_nonnegative(plus_constant(difference, -1));
  if (op == Op::le || op == Op::eq) assume_nonnegative(difference);
  if (op == Op::ge || op == Op::eq) assume_nonnegative(scaled(difference, -1));
  if (op == Op::gt) assume_nonnegative(plus_constant(scaled(difference, -1), -1));
  return before;
}

namespace {

/// Of an operation on two integers that does not wrap.
Interval range_of_operation(Op op, const Interval& a, const Interval& b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a + b * Interval{-1, -1};
    case Op::mul:
      return a * b;
    case Op::floor_div:
      return quotient(a, b);
    case Op::floor_mod:
      return remainder(a, b);
    case Op::div:
      return a.min >= 0 ? quotient(a, b) : Interval{};
    case Op::rem:
      return a.min >= 0 ? remainder(a, b) : Interval{};
    case Op::min:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Op::max:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Op::bit_and:
      if (b.min >= 0) return {0, a.min >= 0 ? std::min(a.max, b.max) : b.max};
      return a.min >= 0 ? Interval{0, a.max} : Interval{};
    default:
      return {};
  }
}

}  // namespace

Interval Knowledge::range(const Expr& e) const {
  switch (e->kind) {
    case ExprKind::constant:
      return {e->int_value, e->int_value};
    case ExprKind::var: {
      const auto found = variables_.find(e->name);
      return found == variables_.end() ? Interval{} : found->second.range;
    }
    case ExprKind::unary:
      return e->op == Op::neg ? range(e->args[0]) * Interval{-1, -1} : Interval{};
    case ExprKind::binary:
      if (!(e.type() == Type{})) return {};
      return range_of_operation(e->op, range(e->args[0]), range(e->args[1]));
    case ExprKind::select:
    case ExprKind::if_then_else:
      return hull(range(e->args[1]), range(e->args[2]));
    case ExprKind::cast:
      return range_of_integer(e->args[0]);
    default:
      return {};
  }
}

Interval Knowledge::range_of_integer(const Expr& e) const {
  if (e.type() == Type{}) return range(e);
  const Interval all = range_of_type(e.type().scalar);
  if (is_float(e.type().scalar)) return all;
  const auto arg = [&](size_t i) { return range_of_integer(e->args[i]); };
  switch (e->kind) {
    case ExprKind::constant:
      return {e->int_value, e->int_value};
    case ExprKind::select:
    case ExprKind::if_then_else:
      return hull(arg(1), arg(2));
    case ExprKind::binary:
      return e->op == Op::min || e->op == Op::max ? range_of_operation(e->op, arg(0), arg(1)) : all;
    case ExprKind::cast: {
      const Interval inner = arg(0);
      return inner.min >= all.min && inner.max <= all.max ? inner : all;
    }
    default:
      return all;
  }
}

bool Knowledge::keeps_values(const Expr& cast) const {
  const Expr& from = cast->args[0];
  const Scalar to = cast.type().scalar;
  if (!is_integer(to) || !is_integer(from.type().scalar) || bit_width(to) == 64) return false;
  const Interval range = range_of_integer(from), kept = range_of_type(to);
  return range.min >= kept.min && range.max <= kept.max;
}

Interval Knowledge::range(const IndexSum& sum) const {
  Interval total = {sum.constant, sum.constant};
  for (const IndexProduct& term : sum.terms) {
    Interval product = {term.coefficient, term.coefficient};
    for (const Expr& factor : term.factors) product = product * range(factor);
    total = total + product;
  }
  return total;
}

int Knowledge::depth(const Expr& e) const {
  int deepest = -1;
  visit(e, [&](const Expr& node) {
    if (node->kind != ExprKind::var) return;
    const auto found = variables_.find(node->name);
    if (found != variables_.end()) deepest = std::max(deepest, found->second.depth);
  });
  return deepest;
}

bool Knowledge::prove_by_fact(const IndexSum& sum) const {
  for (const IndexSum& fact : facts_) {
    const IndexProduct& lead = fact.terms[0];
    for (const IndexProduct& term : sum.terms) {
      if (compare_factors(term, lead) != 0 || lead.coefficient == INT64_MIN) continue;
      if (lead.coefficient == -1 && term.coefficient == INT64_MIN) continue;
      const int64_t times = term.coefficient / lead.coefficient;
      if (times < 1 || times * lead.coefficient != term.coefficient) continue;
      if (range(add(sum, fact, -times)).min >= 0) return true;
    }
  }
  return false;
}

namespace {

/// The sum as rest + factor * term; false when the term occurs other than linearly.
bool split_at(const IndexSum& sum, const Expr& term, IndexSum& factor, IndexSum& rest) {
  rest = {sum.constant, {}};
  factor = {};
  for (const IndexProduct& product : sum.terms) {
    std::vector<Expr> others;
    int64_t occurrences = 0;
    for (const Expr& f : product.factors) {
      if (equal(f, term)) {
        ++occurrences;
      } else {
        others.push_back(f);
      }
    }
    if (occurrences > 1) return false;
    if (occurrences == 0) {
      rest.terms.push_back(product);
    } else if (others.empty()) {
      factor.constant += product.coefficient;
    } else {
      factor = add(factor, {0, {{product.coefficient, std::move(others)}}});
    }
  }
  return true;
}

/// How an atom of the form min, max or quotient is bounded: by any of `any`, or by each of `all`.
struct AtomBounds {
  std::vector<IndexSum> any, all;
};

AtomBounds bounds_of(const Expr& term, bool from_below) {
  AtomBounds bounds;
  if (term->kind != ExprKind::binary || (term->op != Op::min && term->op != Op::max)) return bounds;
  std::vector<IndexSum>& list = (term->op == Op::max) == from_below ? bounds.any : bounds.all;
  list = {sum_of(term->args[0]), sum_of(term->args[1])};
  return bounds;
}

/// rest + factor * (x / c) has a bound without the quotient when c divides the factor.
bool without_quotient(const Expr& term, const IndexSum& factor, const IndexSum& rest,
                      IndexSum& bound) {
  int64_t c = 0;
  const bool quotient = term->kind == ExprKind::binary && term->op == Op::floor_div &&
                        as_constant(term->args[1], c) && c > 0;
  if (!quotient || !factor.is_constant() || factor.constant % c != 0) return false;
  const int64_t times = factor.constant / c;
  const IndexSum x = sum_of(term->args[0]);  // x - (c - 1) <= x/c*c <= x
  bound = add(rest, times > 0 ? plus_constant(x, 1 - c) : x, times);
  return true;
}

}  // namespace

bool Knowledge::prove_without(const IndexSum& sum, const Expr& term, int& budget) const {
  IndexSum factor;
  IndexSum rest;
  if (!split_at(sum, term, factor, rest)) return false;
  const Interval sign = range(factor);
  if (sign.min < 0 && sign.max > 0) return false;
  const bool from_below = sign.min >= 0;
  const auto proves_with = [&](const IndexSum& bound) {
    return prove(add(rest, multiply(factor, bound)), budget);
  };
  if (term->kind == ExprKind::var) {
    const auto found = variables_.find(term->name);
    if (found == variables_.end()) return false;
    const std::vector<IndexSum>& bounds = from_below ? found->second.lower : found->second.upper;
    return std::any_of(bounds.begin(), bounds.end(), proves_with);
  }
  IndexSum bound;
  if (without_quotient(term, factor, rest, bound)) return prove(bound, budget);
  const AtomBounds bounds = bounds_of(term, from_below);
  if (!bounds.all.empty()) return std::all_of(bounds.all.begin(), bounds.all.end(), proves_with);
  return std::any_of(bounds.any.begin(), bounds.any.end(), proves_with);
}

bool Knowledge::prove(const IndexSum& sum, int& budget) const {
  if (range(sum).min >= 0) return true;
  if (sum.is_constant() || --budget < 0) return false;
  if (prove_by_fact(sum)) return true;
  struct Candidate {
    int depth = 0;
    Expr term;
  };
  std::vector<Candidate> candidates;
  for (const IndexProduct& product : sum.terms) {
    for (const Expr& factor : product.factors) {
      const bool known = std::any_of(candidates.begin(), candidates.end(),
                                     [&](const Candidate& c) { return equal(c.term, factor); });
      // Within one depth, composite terms go before the variables in them.
      const int rank = 2 * depth(factor) + (factor->kind == ExprKind::var ? 0 : 1);
      if (!known) candidates.push_back({rank, factor});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.depth > b.depth; });
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& c) { return prove_without(sum, c.term, budget); });
}

bool Knowledge::proves_nonnegative(const IndexSum& sum) const {
  int budget = 24;
  return prove(sum, budget);
}

int Knowledge::decide(Op comparison, const IndexSum& a, const IndexSum& b) const {
  const IndexSum up = add(b, a, -1);
  const IndexSum down = scaled(up, -1);
  const auto less = [&](const IndexSum& difference) {
    return proves_nonnegative(plus_constant(difference, -1));
  };
  switch (comparison) {
    case Op::lt:
      return less(up) ? 1 : proves_nonnegative(down) ? 0 : -1;
    case Op::ge:
      return proves_nonnegative(down) ? 1 : less(up) ? 0 : -1;
    case Op::gt:
      return less(down) ? 1 : proves_nonnegative(up) ? 0 : -1;
    case Op::le:
      return proves_nonnegative(up) ? 1 : less(down) ? 0 : -1;
    case Op::eq:
    case Op::ne: {
      const int equal_value = comparison == Op::eq ? 1 : 0;
      if (up.is_constant()) return up.constant == 0 ? equal_value : 1 - equal_value;
      return less(up) || less(down) ? 1 - equal_value : -1;
    }
    default:
      return -1;
  }
}

}  // namespace backcast::loop
