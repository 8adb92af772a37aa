// Sums of products of index terms.
#include "ir/loop/index_sum.h"

#include <algorithm>
#include <bit>

#include "ir/loop/integer_fold.h"

namespace backcast::loop {
namespace {

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// Products beyond this are kept as one term instead of being multiplied out.
constexpr size_t kMaxProductTerms = 64;
constexpr size_t kMaxFactors = 16;

}  // namespace

int compare(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return 0;
  if (const int c = order(a->kind, b->kind)) return c;
  if (const int c = order(a->name, b->name)) return c;
  if (const int c = order(a->op, b->op)) return c;
  if (const int c = order(a->int_value, b->int_value)) return c;
  if (const int c = order(a->type.scalar, b->type.scalar)) return c;
  if (const int c = order(a->type.lanes, b->type.lanes)) return c;
  if (const int c =
          order(std::bit_cast<uint64_t>(a->float_value), std::bit_cast<uint64_t>(b->float_value))) {
    return c;
  }
  if (const int c = order(a->args.size(), b->args.size())) return c;
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (const int c = compare(a->args[i], b->args[i])) return c;
  }
  return order(a->indices, b->indices);
}

int compare_factors(const IndexProduct& a, const IndexProduct& b) {
  const size_t common = std::min(a.factors.size(), b.factors.size());
  for (size_t i = 0; i < common; ++i) {
    if (const int c = compare(a.factors[i], b.factors[i])) return c;
  }
  return order(a.factors.size(), b.factors.size());
}

IndexSum scaled(const IndexSum& a, int64_t factor) { return add({}, a, factor); }

IndexSum plus_constant(IndexSum a, int64_t value) {
  a.constant = wrapping_add(a.constant, value);
  return a;
}

IndexSum add(const IndexSum& a, const IndexSum& b, int64_t scale) {
  IndexSum sum;
  sum.constant = wrapping_add(a.constant, wrapping_mul(b.constant, scale));
  size_t i = 0;
  size_t k = 0;
  while (i < a.terms.size() || k < b.terms.size()) {
    const int c = i == a.terms.size()   ? 1
                  : k == b.terms.size() ? -1
                                        : compare_factors(a.terms[i], b.terms[k]);
    IndexProduct term = c <= 0 ? a.terms[i] : b.terms[k];
    const int64_t left = c <= 0 ? a.terms[i].coefficient : 0;
    const int64_t right = c >= 0 ? wrapping_mul(b.terms[k].coefficient, scale) : 0;
    term.coefficient = wrapping_add(left, right);
    if (term.coefficient != 0) sum.terms.push_back(std::move(term));
    if (c <= 0) ++i;
    if (c >= 0) ++k;
  }
  return sum;
}

IndexSum multiply(const IndexSum& a, const IndexSum& b) {
  if (b.is_constant()) return scaled(a, b.constant);
  if (a.is_constant()) return scaled(b, a.constant);
  IndexSum sum = scaled(a, b.constant);
  sum = add(sum, IndexSum{0, b.terms}, a.constant);
  for (const IndexProduct& x : a.terms) {
    for (const IndexProduct& y : b.terms) {
      IndexProduct product = {wrapping_mul(x.coefficient, y.coefficient), x.factors};
      product.factors.insert(product.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(product.factors.begin(), product.factors.end(),
                [](const Expr& p, const Expr& q) { return compare(p, q) < 0; });
      if (product.coefficient != 0) sum = add(sum, {0, {std::move(product)}});
    }
  }
  return sum;
}

namespace {

bool small_product(const IndexSum& a, const IndexSum& b) {
  size_t factors = 0;
  for (const IndexSum* sum : {&a, &b}) {
    size_t most = 0;
    for (const IndexProduct& term : sum->terms) most = std::max(most, term.factors.size());
    factors += most;
  }
  return (a.terms.size() + 1) * (b.terms.size() + 1) <= kMaxProductTerms && factors <= kMaxFactors;
}

}  // namespace

IndexSum sum_of(const Expr& e) {
  int64_t value = 0;
  if (as_constant(e, value)) return {value, {}};
  const IndexSum whole = {0, {{1, {e}}}};
  if (e->kind == ExprKind::unary && e->op == Op::neg) return scaled(sum_of(e->args[0]), -1);
  if (e->kind != ExprKind::binary) return whole;
  switch (e->op) {
    case Op::add:
      return add(sum_of(e->args[0]), sum_of(e->args[1]));
    case Op::sub:
      return add(sum_of(e->args[0]), sum_of(e->args[1]), -1);
    case Op::mul: {
      const IndexSum a = sum_of(e->args[0]);
      const IndexSum b = sum_of(e->args[1]);
      return small_product(a, b) ? multiply(a, b) : whole;
    }
    default:
      return whole;
  }
}

namespace {

/// Whether `e` is op(x, c) with a constant c.
bool is_by_constant(const Expr& e, Op op, int64_t& c) {
  return e->kind == ExprKind::binary && e->op == op && as_constant(e->args[1], c);
}

/// The term that goes with product[at] = x % c: the same product with x / c in its place.
IndexProduct quotient_of(const IndexProduct& product, size_t at, int64_t c) {
  const Expr& mod = product.factors[at];
  IndexProduct partner = {wrapping_mul(product.coefficient, c), product.factors};
  partner.factors[at] = floor_div(mod->args[0], mod->args[1]);
  std::sort(partner.factors.begin(), partner.factors.end(),
            [](const Expr& p, const Expr& q) { return compare(p, q) < 0; });
  return partner;
}

bool join_one(IndexSum& sum) {
  for (const IndexProduct& term : sum.terms) {
    for (size_t at = 0; at < term.factors.size(); ++at) {
      int64_t c = 0;
      if (!is_by_constant(term.factors[at], Op::floor_mod, c)) continue;
      const IndexProduct partner = quotient_of(term, at, c);
      const bool present =
          std::any_of(sum.terms.begin(), sum.terms.end(), [&](const IndexProduct& other) {
            return other.coefficient == partner.coefficient && compare_factors(other, partner) == 0;
          });
      if (!present) continue;
      IndexSum others = {0, {{term.coefficient, term.factors}}};
      others.terms[0].factors.erase(others.terms[0].factors.begin() + static_cast<int64_t>(at));
      if (others.terms[0].factors.empty()) others = {term.coefficient, {}};
      const IndexSum whole = multiply(others, sum_of(term.factors[at]->args[0]));
      const IndexSum pair = add({0, {term}}, {0, {partner}});
      sum = add(add(sum, pair, -1), whole);
      return true;
    }
  }
  return false;
}

}  // namespace

IndexSum join_quotients(IndexSum sum) {
  for (size_t rounds = 0; rounds < 8 && join_one(sum); ++rounds) {
  }
  return sum;
}

namespace {

Expr product_expr(const IndexProduct& product, const std::function<int(const Expr&)>& depth) {
  std::vector<Expr> factors = product.factors;
  std::stable_sort(factors.begin(), factors.end(),
                   [&](const Expr& a, const Expr& b) { return depth(a) < depth(b); });
  Expr result = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) result = result * factors[i];
  return result;
}

}  // namespace

Expr expr_of(const IndexSum& sum, const std::function<int(const Expr&)>& depth) {
  struct Ordered {
    int depth = 0;
    const IndexProduct* term = nullptr;
  };
  std::vector<Ordered> terms;
  for (const IndexProduct& term : sum.terms) {
    int deepest = -1;
    for (const Expr& factor : term.factors) deepest = std::max(deepest, depth(factor));
    terms.push_back({deepest, &term});
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Ordered& a, const Ordered& b) { return a.depth < b.depth; });
  // A positive term in front spares a negation.
  const auto positive = std::find_if(terms.begin(), terms.end(),
                                     [](const Ordered& t) { return t.term->coefficient > 0; });
  if (positive != terms.end()) std::rotate(terms.begin(), positive, positive + 1);
  const bool constant_first = positive == terms.end() && !terms.empty() && sum.constant > 0;
  Expr result = constant_first ? Expr(sum.constant) : Expr();
  for (const Ordered& ordered : terms) {
    const int64_t c = ordered.term->coefficient;
    const Expr product = product_expr(*ordered.term, depth);
    if (result.get() != nullptr && c < 0 && c != INT64_MIN) {
      result = result - product * Expr(-c);
    } else if (result.get() != nullptr) {
      result = result + product * Expr(c);
    } else {
      result = c == -1 ? unary(Op::neg, product) : product * Expr(c);
    }
  }
  if (!result) return sum.constant;
  if (constant_first) return result;
  const bool subtract = sum.constant < 0 && sum.constant != INT64_MIN;
  return subtract ? result - Expr(-sum.constant) : result + Expr(sum.constant);
}

}  // namespace backcast::loop
