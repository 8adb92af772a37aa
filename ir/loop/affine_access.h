// Where the statements of a kernel touch its buffers, as sums of loop variables, and which places
// that leaves: what shows that two accesses never meet. Indices are seen as numbers in mixed radix:
// with the multiples of a modulus left out, a row that starts at channel 16 stays at channel 16.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "ir/loop/stmt.h"

namespace backcast::loop {

/// Inclusive.
struct Places {
  int64_t min = 0, max = 0;
};

/// constant + Σ coefficient · variable.
struct Affine {
  int64_t constant = 0;
  std::map<std::string, int64_t> terms;
};

/// a + scale · b.
Affine plus(Affine a, const Affine& b, int64_t scale);

struct AffineAccess {
  bool is_store = false;
  std::optional<Affine> index;  // the flat element; nothing where it is no such sum
  int64_t width = 1;            // elements from there on
};

/// The accesses of one kernel; loops or definitions.
class AffineAccesses {
 public:
  explicit AffineAccesses(const Kernel& kernel);

  /// Calls f(parameter, access) for all loads and stores of parameters within a statement, in
  /// order: of the kernel, or one whose loops are new around parts of it.
  void visit(const Stmt& stmt,
             const std::function<void(const std::string&, const AffineAccess&)>& f);

  /// What a variable runs over, lanes of a ramp included; nothing where that is not known.
  std::optional<Places> range_of(const std::string& variable) const;

  /// What the index adds up to, with the multiples of `modulus` (0: none are) and those of
  /// `skipped` left out. Requires an index.
  std::optional<Places> rest(const AffineAccess& access, int64_t modulus,
                             const std::string& skipped = "") const;

 private:
  void note_range(const std::string& variable, const Expr& begin, const Expr& extent);
  bool is_size(const Expr& e) const;
  std::optional<Affine> affine(const Expr& e) const;
  AffineAccess access_to(const Expr& index, Type type, bool is_store);
  void visit_loads(const Expr& e,
                   const std::function<void(const std::string&, const AffineAccess&)>& f);
  Expr flat(const std::string& parameter, const std::vector<Expr>& indices) const;

  const Kernel& kernel_;
  std::map<std::string, Places> ranges_;  // of loop variables and axes
  std::map<std::string, Affine> values_;  // of lets
};

/// The same places within a period of `modulus` (0: as they are); nothing where a period ends among
/// them.
std::optional<Places> within_period(Places places, int64_t modulus);

}  // namespace backcast::loop
