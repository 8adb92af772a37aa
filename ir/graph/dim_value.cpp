// What a dimension is worth: evaluation, range analysis, substitution.
#include <algorithm>
#include <array>

#include "ir/graph/dim.h"
#include "ir/graph/dim_math.h"

namespace backcast {
namespace {

using Atom = Dim::Atom;
using Kind = Atom::Kind;
using Term = Dim::Term;
using Wide = __int128;

constexpr int64_t kNever = INT64_MIN;  // as a lower bound: unbounded
constexpr int64_t kEver = INT64_MAX;   // as an upper bound: unbounded

bool infinite(int64_t bound) { return bound == kNever || bound == kEver; }

int64_t saturate(Wide value) {
  if (value >= kEver) return kEver;
  if (value <= kNever) return kNever;
  return static_cast<int64_t>(value);
}

int64_t bound_product(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? kEver : kNever;
  return saturate(Wide{a} * b);
}

DimRange range_sum(DimRange a, DimRange b) {
  return {infinite(a.min) || infinite(b.min) ? kNever : saturate(Wide{a.min} + b.min),
          infinite(a.max) || infinite(b.max) ? kEver : saturate(Wide{a.max} + b.max)};
}

DimRange range_product(DimRange a, DimRange b) {
  const std::array<int64_t, 4> corners = {bound_product(a.min, b.min), bound_product(a.min, b.max),
                                          bound_product(a.max, b.min), bound_product(a.max, b.max)};
  return {*std::min_element(corners.begin(), corners.end()),
          *std::max_element(corners.begin(), corners.end())};
}

int64_t bound_quotient(int64_t a, int64_t b) {
  if (infinite(b)) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  if (infinite(a)) return (a < 0) == (b < 0) ? kEver : kNever;
  return b == -1 ? saturate(-Wide{a}) : math::floor_div(a, b);
}

/// floor(a / b) is monotone in each operand where b keeps its sign: the corners decide.
DimRange range_quotient(DimRange a, DimRange b) {
  DimRange result{kEver, kNever};
  for (const int64_t divisor : {b.min, b.max, int64_t{-1}, int64_t{1}}) {
    if (divisor == 0 || divisor < b.min || divisor > b.max) continue;
    for (const int64_t dividend : {a.min, a.max}) {
      const int64_t quotient = bound_quotient(dividend, divisor);
      result.min = std::min(result.min, quotient);
      result.max = std::max(result.max, quotient);
    }
  }
  return result.min > result.max ? DimRange{kNever, kEver} : result;
}

DimRange range_mod(DimRange a, DimRange b) {
  if (a.min >= 0 && b.min > a.max) return a;
  DimRange result{b.min < 0 ? (b.min == kNever ? kNever : b.min + 1) : 0,
                  b.max > 0 ? (b.max == kEver ? kEver : b.max - 1) : 0};
  if (a.min >= 0 && b.min > 0) result.max = std::min(result.max, a.max);
  return result;
}

DimRange range_of(const Dim& d, const SymbolRanges& ranges, int refinements);

DimRange range_of_atom(const Atom& atom, const SymbolRanges& ranges, int refinements) {
  if (atom.kind == Kind::symbol) {
    const SymbolRanges::const_iterator found = ranges.find(atom.name);
    return found == ranges.end() ? DimRange{} : found->second;
  }
  const DimRange a = range_of(atom.a, ranges, refinements);
  const DimRange b = range_of(atom.b, ranges, refinements);
  switch (atom.kind) {
    case Kind::floor_div:
      return range_quotient(a, b);
    case Kind::mod:
      return range_mod(a, b);
    case Kind::min:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Kind::max:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Kind::symbol:
      break;
  }
  return {kNever, kEver};
}

DimRange intersect(DimRange a, DimRange b) {
  const DimRange both{std::max(a.min, b.min), std::min(a.max, b.max)};
  return both.min <= both.max ? both : a;
}

/// Bounds d through (x - (c-1))/c <= floor(x/c) <= x/c, which lets x cancel against other terms:
/// N - N/2*2 lies in 0..1. Unbounded when that says nothing.
DimRange relaxed_range(const Dim& d, const SymbolRanges& ranges, int refinements) {
  int64_t scale = 1;
  const auto divisor_of = [](const Term& term) -> int64_t {
    const Atom& atom = *term.atoms[0];
    const bool fits =
        term.atoms.size() == 1 && atom.kind == Kind::floor_div && atom.b.is_constant();
    return fits ? atom.b.constant_term() : 0;
  };
  for (const Term& term : d.terms()) {
    const int64_t c = divisor_of(term);
    if (c != 0 && scale % c != 0) scale = math::multiply(scale, c);
  }
  if (scale == 1) return {kNever, kEver};
  Dim scaled = math::multiply(d.constant_term(), scale);
  int64_t below = 0;
  int64_t above = 0;
  for (const Term& term : d.terms()) {
    const int64_t c = divisor_of(term);
    const int64_t factor = math::multiply(term.coefficient, c ? scale / c : scale);
    if (c == 0) {
      scaled = scaled + Dim::from_terms(0, {{factor, term.atoms}});
      continue;
    }
    scaled = scaled + Dim(factor) * term.atoms[0]->a;
    const int64_t slack = math::multiply(factor, c - 1);
    (slack > 0 ? below : above) = math::subtract(slack > 0 ? below : above, slack);
  }
  const DimRange r = range_of(scaled, ranges, refinements);
  return {
      r.min == kNever
          ? kNever
          : math::subtract(0, math::floor_div(math::subtract(0, math::add(r.min, below)), scale)),
      r.max == kEver ? kEver : math::floor_div(math::add(r.max, above), scale)};
}

/// Bounds d through min(a, b) <= a and max(a, b) >= a, which lets a cancel against other terms:
/// N - min(N, 3) is not negative.
DimRange extremum_range(const Dim& d, const SymbolRanges& ranges, int refinements) {
  DimRange result{kNever, kEver};
  for (const Term& term : d.terms()) {
    const Atom& atom = *term.atoms[0];
    const bool is_min = atom.kind == Kind::min;
    if (term.atoms.size() != 1 || !(is_min || atom.kind == Kind::max)) continue;
    const bool is_above = is_min == (term.coefficient > 0);  // what takes its place, than d
    for (const Dim* side : {&atom.a, &atom.b}) {
      const Dim other = d - Dim::from_terms(0, {term}) + Dim(term.coefficient) * *side;
      const DimRange r = range_of(other, ranges, refinements);
      if (is_above) {
        result.max = std::min(result.max, r.max);
      } else {
        result.min = std::max(result.min, r.min);
      }
    }
  }
  return result;
}

DimRange range_of(const Dim& d, const SymbolRanges& ranges, int refinements) {
  DimRange sum{d.constant_term(), d.constant_term()};
  bool divides = false, chooses = false;
  for (const Term& term : d.terms()) {
    DimRange product{term.coefficient, term.coefficient};
    for (const Dim::AtomPtr& atom : term.atoms) {
      product = range_product(product, range_of_atom(*atom, ranges, refinements));
      divides |= atom->kind == Kind::floor_div;
      chooses |= atom->kind == Kind::min || atom->kind == Kind::max;
    }
    sum = range_sum(sum, product);
  }
  if (divides && d.terms().size() > 1 && refinements > 0) {
    try {
      sum = intersect(sum, relaxed_range(d, ranges, refinements - 1));
    } catch (const CompileError&) {  // the scaled expression overflows: nothing to gain
    }
  }
  if (chooses && d.terms().size() > 1 && refinements > 0) {
    try {
      sum = intersect(sum, extremum_range(d, ranges, refinements - 1));
    } catch (const CompileError&) {
    }
  }
  return sum;
}

int64_t evaluate_atom(const Atom& atom, const SymbolValues& values) {
  if (atom.kind == Kind::symbol) {
    const SymbolValues::const_iterator found = values.find(atom.name);
    if (found == values.end()) {
      throw CompileError("the value of dimension symbol \"" + atom.name + "\" is not known");
    }
    return found->second;
  }
  const int64_t a = atom.a.evaluate(values);
  const int64_t b = atom.b.evaluate(values);
  switch (atom.kind) {
    case Kind::floor_div:
      return math::floor_div(a, b);
    case Kind::mod:
      return math::floor_mod(a, b);
    case Kind::min:
      return std::min(a, b);
    case Kind::max:
      return std::max(a, b);
    case Kind::symbol:
      break;
  }
  return 0;
}

Dim substitute_atom(const Dim::AtomPtr& atom, const std::map<std::string, Dim>& replacement) {
  if (atom->kind == Kind::symbol) {
    const std::map<std::string, Dim>::const_iterator found = replacement.find(atom->name);
    return found == replacement.end() ? Dim::from_terms(0, {{1, {atom}}}) : found->second;
  }
  const Dim a = atom->a.substitute(replacement);
  const Dim b = atom->b.substitute(replacement);
  switch (atom->kind) {
    case Kind::floor_div:
      return Dim::floor_div(a, b);
    case Kind::mod:
      return Dim::mod(a, b);
    case Kind::min:
      return Dim::min(a, b);
    case Kind::max:
      return Dim::max(a, b);
    case Kind::symbol:
      break;
  }
  return {};
}

}  // namespace

int64_t Dim::evaluate(const SymbolValues& values) const {
  int64_t sum = constant_;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    for (const AtomPtr& atom : term.atoms) {
      product = math::multiply(product, evaluate_atom(*atom, values));
    }
    sum = math::add(sum, product);
  }
  return sum;
}

DimRange Dim::range(const SymbolRanges& ranges) const {
  constexpr int kRefinements = 3;  // each may double the work of one level of nesting
  return range_of(*this, ranges, kRefinements);
}

Dim Dim::substitute(const std::map<std::string, Dim>& replacement) const {
  if (replacement.empty() || terms_.empty()) return *this;
  Dim sum = constant_;
  for (const Term& term : terms_) {
    Dim product = term.coefficient;
    for (const AtomPtr& atom : term.atoms) product = product * substitute_atom(atom, replacement);
    sum = sum + product;
  }
  return sum;
}

void Dim::collect_symbols(std::set<std::string>& symbols) const {
  for (const Term& term : terms_) {
    for (const AtomPtr& atom : term.atoms) {
      if (atom->kind == Kind::symbol) {
        symbols.insert(atom->name);
      } else {
        atom->a.collect_symbols(symbols);
        atom->b.collect_symbols(symbols);
      }
    }
  }
}

}  // namespace backcast
