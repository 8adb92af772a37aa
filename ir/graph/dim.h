// A dimension is an integer expression over named symbols, kept canonical, so that equal dimensions
// compare equal: a sum of integer coefficients times products of atoms, an atom being a symbol or
// one of floordiv, mod, min, max of two dimensions.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace backcast {

/// Inclusive range of a symbol or of a dimension.
struct DimRange {
  int64_t min = 1;
  int64_t max = INT64_MAX;
  friend bool operator==(const DimRange&, const DimRange&) = default;
};

using SymbolRanges = std::map<std::string, DimRange>;
using SymbolValues = std::map<std::string, int64_t>;

class Dim {
 public:
  struct Atom;  // symbol or op(a, b); see dim.cpp
  using AtomPtr = std::shared_ptr<const Atom>;
  struct Term {  // coefficient · Π atoms (sorted)
    int64_t coefficient = 0;
    std::vector<AtomPtr> atoms;
  };

  Dim() = default;                          // zero
  Dim(int64_t value) : constant_(value) {}  // NOLINT: literals read as dimensions
  static Dim symbol(std::string name);      // any non-empty name
  /// Sums the terms in any order; brings them into canonical form.
  static Dim from_terms(int64_t constant, std::vector<Term> terms);

  bool is_constant() const { return terms_.empty(); }
  /// The value of a constant dimension; InternalError otherwise.
  int64_t constant() const;

  /// These throw CompileError on 64-bit overflow, on division by the constant zero and when an
  /// expression grows beyond any sensible size.
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  static Dim floor_div(const Dim& a, const Dim& b);  // exact when b divides every coefficient of a
  static Dim ceil_div(const Dim& a, const Dim& b);
  static Dim mod(const Dim& a, const Dim& b);  // sign of the divisor; a - a/c*c for a constant c
  static Dim min(const Dim& a, const Dim& b);
  static Dim max(const Dim& a, const Dim& b);

  friend bool operator==(const Dim& a, const Dim& b) { return compare(a, b) == 0; }
  friend bool operator<(const Dim& a, const Dim& b) { return compare(a, b) < 0; }
  /// A total order on canonical forms (no arithmetic meaning).
  static int compare(const Dim& a, const Dim& b);

  int64_t evaluate(const SymbolValues& values) const;  // CompileError for an unbound symbol
  /// Smallest and largest value over the ranges (conservative; INT64_MIN and INT64_MAX mean
  /// unbounded). A symbol without a range counts as 1 or more.
  DimRange range(const SymbolRanges& ranges) const;
  Dim substitute(const std::map<std::string, Dim>& replacement) const;
  void collect_symbols(std::set<std::string>& symbols) const;

  /// `N*49+1`, `(H+1)/2`, `max(N, 1)`; parse() reads it back.
  std::string to_string() const;
  static std::optional<Dim> parse(std::string_view text);

  int64_t constant_term() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }

 private:
  int64_t constant_ = 0;
  std::vector<Term> terms_;  // sorted, no zero coefficients
};

/// The inner structure of a dimension, for those who lower it to code.
struct Dim::Atom {
  enum class Kind : uint8_t { symbol, floor_div, mod, min, max };
  Kind kind = Kind::symbol;
  std::string name;  // of a symbol
  Dim a, b;
  int64_t depth = 1;  // of nesting and
  int64_t size = 1;   // number of atoms, both bounded
};

using Dims = std::vector<Dim>;
/// Whether every extent is a number.
bool is_static(const Dims& dims);

}  // namespace backcast
