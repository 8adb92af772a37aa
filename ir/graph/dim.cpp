// Canonical form of dimension expressions: a polynomial over atoms with 64-bit coefficients.
//
// Division carries the canonical form: floor_div(a, b) divides polynomials as far as coefficients
// allow, so that what stays under the division has its coefficients in [0, leading coefficient of
// b); common factors are cancelled and nested divisions by constants become one. mod by a constant
// is a - a/c*c, hence N/2*2 + mod(N, 2) == N.
#include "ir/graph/dim.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/graph/dim_math.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

using Atom = Dim::Atom;
using AtomPtr = Dim::AtomPtr;
using Term = Dim::Term;
using Kind = Atom::Kind;

// Bounds that no model comes near; they keep hostile text from exploding.
constexpr size_t kMaxTerms = 1024;
constexpr size_t kMaxDegree = 64;
constexpr int64_t kMaxDepth = 48;
constexpr int64_t kMaxSize = 4096;

[[noreturn]] void too_large() { throw CompileError("a dimension expression is too large"); }

int compare_atoms(const AtomPtr& x, const AtomPtr& y) {
  if (x == y) return 0;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->kind == Kind::symbol) return x->name.compare(y->name);
  const int first = Dim::compare(x->a, y->a);
  return first != 0 ? first : Dim::compare(x->b, y->b);
}

/// Graded lexicographic, highest degree first: a monomial order, which division relies on.
int compare_monomials(const std::vector<AtomPtr>& x, const std::vector<AtomPtr>& y) {
  if (x.size() != y.size()) return x.size() > y.size() ? -1 : 1;
  for (size_t i = 0; i < x.size(); ++i) {
    const int order = compare_atoms(x[i], y[i]);
    if (order != 0) return order;
  }
  return 0;
}

bool atom_less(const AtomPtr& x, const AtomPtr& y) { return compare_atoms(x, y) < 0; }

/// x without the atoms of y; nothing when y is not part of x. Both sorted.
std::optional<std::vector<AtomPtr>> divide_monomials(const std::vector<AtomPtr>& x,
                                                     const std::vector<AtomPtr>& y) {
  if (!std::includes(x.begin(), x.end(), y.begin(), y.end(), atom_less)) return std::nullopt;
  std::vector<AtomPtr> rest;
  std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(rest), atom_less);
  return rest;
}

Dim atom_dim(Atom atom) {
  for (const Dim* side : {&atom.a, &atom.b}) {
    for (const Term& term : side->terms()) {
      for (const AtomPtr& inner : term.atoms) {
        atom.depth = std::max(atom.depth, inner->depth + 1);
        atom.size += inner->size;
      }
    }
  }
  if (atom.depth > kMaxDepth || atom.size > kMaxSize) too_large();
  return Dim::from_terms(0, {{1, {std::make_shared<const Atom>(std::move(atom))}}});
}

Dim atom_dim(Kind kind, const Dim& a, const Dim& b) {
  Atom atom;
  atom.kind = kind;
  atom.a = a;
  atom.b = b;
  return atom_dim(std::move(atom));
}

int64_t leading_coefficient(const Dim& d) {
  return d.is_constant() ? d.constant_term() : d.terms()[0].coefficient;
}

struct Division {
  Dim quotient, remainder;
};

/// a = quotient·b + remainder with reduced coefficients; the leading coefficient of b is positive.
Division divide(const Dim& a, const Dim& b) {
  constexpr int kMaxSteps = 4096;
  const int64_t lead = leading_coefficient(b);
  const std::vector<AtomPtr> lead_atoms =
      b.is_constant() ? std::vector<AtomPtr>{} : b.terms()[0].atoms;
  Division result{Dim(), a};
  size_t i = 0;
  for (int step = 0; i < result.remainder.terms().size(); ++step) {
    if (step > kMaxSteps) too_large();
    const Term term = result.remainder.terms()[i];
    const int64_t q = math::floor_div(term.coefficient, lead);
    std::optional<std::vector<AtomPtr>> rest = divide_monomials(term.atoms, lead_atoms);
    if (q == 0 || !rest) {
      ++i;
      continue;
    }
    const Dim part = rest->empty() ? Dim(q) : Dim::from_terms(0, {{q, *rest}});
    result.quotient = result.quotient + part;
    result.remainder = result.remainder - part * b;
    if (term.coefficient % lead != 0) ++i;  // its rest stays in place
  }
  if (b.is_constant()) {
    const int64_t q = math::floor_div(result.remainder.constant_term(), lead);
    result.quotient = result.quotient + Dim(q);
    result.remainder = result.remainder - Dim(q) * b;
  }
  return result;
}

/// Greatest common divisor of all coefficients of d, with or without the constant term.
int64_t content(const Dim& d, bool with_constant) {
  uint64_t g = 0;
  for (const Term& term : d.terms()) g = std::gcd(g, math::magnitude(term.coefficient));
  if (with_constant) g = std::gcd(g, math::magnitude(d.constant_term()));
  return g > INT64_MAX ? 1 : static_cast<int64_t>(g);
}

/// The atoms that divide every term of d (none when there is a constant term).
std::vector<AtomPtr> common_atoms(const Dim& d) {
  if (d.terms().empty() || d.constant_term() != 0) return {};
  std::vector<AtomPtr> common = d.terms()[0].atoms;
  for (const Term& term : d.terms()) {
    std::vector<AtomPtr> both;
    std::set_intersection(common.begin(), common.end(), term.atoms.begin(), term.atoms.end(),
                          std::back_inserter(both), atom_less);
    common = std::move(both);
  }
  return common;
}

/// d divided by an integer and by atoms that divide every term; the constant is rounded down.
Dim cancel(const Dim& d, int64_t g, const std::vector<AtomPtr>& atoms) {
  int64_t constant = math::floor_div(d.constant_term(), g);
  std::vector<Term> terms;
  for (const Term& term : d.terms()) {
    std::vector<AtomPtr> rest = *divide_monomials(term.atoms, atoms);
    if (rest.empty()) {
      constant = math::add(constant, term.coefficient / g);
    } else {
      terms.push_back({term.coefficient / g, std::move(rest)});
    }
  }
  return Dim::from_terms(constant, std::move(terms));
}

struct Common {
  int64_t factor = 1;
  std::vector<AtomPtr> atoms;
  bool trivial() const { return factor == 1 && atoms.empty(); }
};

/// What numerator and denominator of a division share.
Common common_factor(const Dim& a, const Dim& b) {
  Common common;
  // floor((g·x + k) / (g·c)) = floor((x + floor(k/g)) / c) needs a positive c.
  const int64_t ga = content(a, !b.is_constant());
  common.factor = std::max<int64_t>(1, std::gcd(ga, content(b, true)));
  const std::vector<AtomPtr> in_a = common_atoms(a);
  const std::vector<AtomPtr> in_b = common_atoms(b);
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                        std::back_inserter(common.atoms), atom_less);
  return common;
}

/// r/c with a part y/d of r under a division of its own: (y/d + z)/c = (y + d·z)/(c·d).
std::optional<Dim> merge_nested_division(const Dim& r, int64_t c) {
  for (size_t i = 0; i < r.terms().size(); ++i) {
    const Term& term = r.terms()[i];
    if (term.coefficient != 1 || term.atoms.size() != 1) continue;
    const Atom& atom = *term.atoms[0];
    if (atom.kind != Kind::floor_div || !atom.b.is_constant()) continue;
    int64_t product = 0;
    if (__builtin_mul_overflow(c, atom.b.constant(), &product)) continue;
    std::vector<Term> others = r.terms();
    others.erase(others.begin() + static_cast<int64_t>(i));
    const Dim rest = Dim::from_terms(r.constant_term(), std::move(others));
    return Dim::floor_div(atom.a + atom.b * rest, Dim(product));
  }
  return std::nullopt;
}

void require_divisor(const Dim& b) {
  if (b == Dim(0)) throw CompileError("a dimension is divided by zero");
}

/// Operands of nested min or max of one kind, as a flat list.
void flatten_extremum(Kind kind, const Dim& d, std::vector<Dim>& operands) {
  if (d.terms().size() == 1 && d.terms()[0].atoms.size() == 1 && d.terms()[0].coefficient > 0 &&
      d.terms()[0].atoms[0]->kind == kind) {
    const Atom& atom = *d.terms()[0].atoms[0];
    for (const Dim* side : {&atom.a, &atom.b}) {
      flatten_extremum(kind, Dim(d.terms()[0].coefficient) * *side + Dim(d.constant_term()),
                       operands);
    }
    return;
  }
  if (operands.size() >= kMaxTerms) too_large();
  operands.push_back(d);
}

/// The canonical min or max: operands that differ by a constant are merged, then a constant and a
/// common factor are pulled out, so that max(2*N + 1, 5) is max(N, 2)*2 + 1.
Dim extremum(Kind kind, const Dim& a, const Dim& b) {
  std::vector<Dim> operands;
  flatten_extremum(kind, a, operands);
  flatten_extremum(kind, b, operands);
  std::sort(operands.begin(), operands.end());
  std::vector<Dim> kept;
  for (const Dim& d : operands) {
    const bool same = !kept.empty() && (d - kept.back()).is_constant();
    if (!same) kept.push_back(d);
    // compare() puts equal terms side by side with ascending constants.
    else if (kind == Kind::max)
      kept.back() = d;
  }
  if (kept.size() == 1) return kept[0];
  const Dim shift = kept[kept[0].is_constant() ? 1 : 0].constant_term();
  int64_t g = 0;
  for (Dim& d : kept) {
    d = d - shift;
    g = std::gcd(g, content(d, true));
  }
  Dim result;
  for (size_t i = 0; i < kept.size(); ++i) {
    const Dim reduced = cancel(kept[i], g, {});
    result = i == 0 ? reduced : atom_dim(kind, result, reduced);
  }
  return result * Dim(g) + shift;
}

}  // namespace

Dim Dim::symbol(std::string name) {
  BC_CHECK(!name.empty(), "a dimension symbol needs a name");
  Atom atom;
  atom.name = std::move(name);
  return atom_dim(std::move(atom));
}

Dim Dim::from_terms(int64_t constant, std::vector<Term> terms) {
  for (Term& term : terms) {
    BC_CHECK(!term.atoms.empty(), "a term without atoms belongs to the constant");
    if (term.atoms.size() > kMaxDegree) too_large();
    std::sort(term.atoms.begin(), term.atoms.end(), atom_less);
  }
  std::sort(terms.begin(), terms.end(),
            [](const Term& x, const Term& y) { return compare_monomials(x.atoms, y.atoms) < 0; });
  Dim result;
  result.constant_ = constant;
  int64_t size = 0;
  for (size_t i = 0; i < terms.size();) {
    Term sum = terms[i];
    for (++i; i < terms.size() && compare_monomials(sum.atoms, terms[i].atoms) == 0; ++i) {
      sum.coefficient = math::add(sum.coefficient, terms[i].coefficient);
    }
    if (sum.coefficient == 0) continue;
    for (const AtomPtr& atom : sum.atoms) size += atom->size;
    result.terms_.push_back(std::move(sum));
  }
  if (result.terms_.size() > kMaxTerms || size > kMaxSize) too_large();
  return result;
}

int64_t Dim::constant() const {
  BC_CHECK(is_constant(), "dimension {} is not constant", to_string());
  return constant_;
}

Dim operator+(const Dim& a, const Dim& b) {
  const int64_t constant = math::add(a.constant_, b.constant_);
  if (b.is_constant() || a.is_constant()) {
    Dim sum = b.is_constant() ? a : b;
    sum.constant_ = constant;
    return sum;
  }
  std::vector<Term> terms = a.terms_;
  terms.insert(terms.end(), b.terms_.begin(), b.terms_.end());
  return Dim::from_terms(constant, std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    Dim difference = a;
    difference.constant_ = math::subtract(a.constant_, b.constant_);
    return difference;
  }
  std::vector<Term> terms = a.terms_;
  for (Term term : b.terms_) {
    term.coefficient = math::subtract(0, term.coefficient);
    terms.push_back(std::move(term));
  }
  return Dim::from_terms(math::subtract(a.constant_, b.constant_), std::move(terms));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return math::multiply(a.constant_, b.constant_);
  if ((a.terms_.size() + 1) * (b.terms_.size() + 1) > 16 * kMaxTerms) too_large();
  std::vector<Term> terms;
  for (const Term& x : a.terms_) {
    if (b.constant_ != 0) terms.push_back({math::multiply(x.coefficient, b.constant_), x.atoms});
    for (const Term& y : b.terms_) {
      Term product{math::multiply(x.coefficient, y.coefficient), x.atoms};
      product.atoms.insert(product.atoms.end(), y.atoms.begin(), y.atoms.end());
      terms.push_back(std::move(product));
    }
  }
  for (const Term& y : b.terms_) {
    if (a.constant_ != 0) terms.push_back({math::multiply(a.constant_, y.coefficient), y.atoms});
  }
  return Dim::from_terms(math::multiply(a.constant_, b.constant_), std::move(terms));
}

Dim Dim::floor_div(const Dim& a, const Dim& b) {
  require_divisor(b);
  if (leading_coefficient(b) < 0) return floor_div(Dim(0) - a, Dim(0) - b);
  const auto [quotient, r] = divide(a, b);
  if (r == Dim(0) || (b.is_constant() && r.is_constant())) return quotient;
  const Common common = common_factor(r, b);
  if (!common.trivial()) {
    return quotient + floor_div(cancel(r, common.factor, common.atoms),
                                cancel(b, common.factor, common.atoms));
  }
  if (b.is_constant()) {
    if (std::optional<Dim> merged = merge_nested_division(r, b.constant())) {
      return quotient + *merged;
    }
  }
  return quotient + atom_dim(Kind::floor_div, r, b);
}

Dim Dim::ceil_div(const Dim& a, const Dim& b) {
  require_divisor(b);
  if (leading_coefficient(b) < 0) return ceil_div(Dim(0) - a, Dim(0) - b);
  if (b.is_constant()) return floor_div(a + b - Dim(1), b);
  return Dim(0) - floor_div(Dim(0) - a, b);
}

Dim Dim::mod(const Dim& a, const Dim& b) {
  require_divisor(b);
  if (b.is_constant()) return a - b * floor_div(a, b);
  if (leading_coefficient(b) < 0) return Dim(0) - mod(Dim(0) - a, Dim(0) - b);
  const Dim r = divide(a, b).remainder;
  if (r == Dim(0)) return r;
  const Common common = common_factor(r, b);
  if (!common.trivial()) {
    const Dim factor =
        common.atoms.empty() ? Dim(common.factor) : from_terms(0, {{common.factor, common.atoms}});
    return factor *
           mod(cancel(r, common.factor, common.atoms), cancel(b, common.factor, common.atoms));
  }
  return atom_dim(Kind::mod, r, b);
}

Dim Dim::min(const Dim& a, const Dim& b) { return extremum(Kind::min, a, b); }
Dim Dim::max(const Dim& a, const Dim& b) { return extremum(Kind::max, a, b); }

int Dim::compare(const Dim& a, const Dim& b) {
  for (size_t i = 0; i < a.terms_.size() && i < b.terms_.size(); ++i) {
    const int order = compare_monomials(a.terms_[i].atoms, b.terms_[i].atoms);
    if (order != 0) return order;
    const int64_t x = a.terms_[i].coefficient;
    const int64_t y = b.terms_[i].coefficient;
    if (x != y) return x < y ? -1 : 1;
  }
  if (a.terms_.size() != b.terms_.size()) return a.terms_.size() < b.terms_.size() ? -1 : 1;
  if (a.constant_ != b.constant_) return a.constant_ < b.constant_ ? -1 : 1;
  return 0;
}

bool is_static(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_constant(); });
}

}  // namespace backcast
