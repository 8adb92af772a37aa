// The canonical form of index arithmetic: an integer plus integer multiples of products of terms, a
// term being whatever is no sum: a variable, a quotient, a minimum, a load. Internal to ir/loop.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/loop/expr.h"

namespace backcast::loop {

/// A total order on expressions, by structure.
int compare(const Expr& a, const Expr& b);

struct IndexProduct {
  int64_t coefficient = 0;
  std::vector<Expr> factors;  // sorted
};

/// Arithmetic wraps in 64 bits, as index arithmetic does.
struct IndexSum {
  int64_t constant = 0;
  std::vector<IndexProduct> terms;  // sorted by factors, no zero coefficients

  bool is_constant() const { return terms.empty(); }
  bool is_single_term() const { return constant == 0 && terms.size() == 1; }
};

IndexSum add(const IndexSum& a, const IndexSum& b, int64_t scale = 1);  // a + scale * b
IndexSum scaled(const IndexSum& a, int64_t factor);
IndexSum multiply(const IndexSum& a, const IndexSum& b);
IndexSum plus_constant(IndexSum a, int64_t value);
int compare_factors(const IndexProduct& a, const IndexProduct& b);

/// A scalar index expression as a sum; what is no sum becomes a term as it stands.
IndexSum sum_of(const Expr& e);

/// x/c*c + x%c becomes x.
IndexSum join_quotients(IndexSum sum);

/// Back to an expression: terms in the order of `depth` (small first: what is fixed in inner loops
/// stays together), negative terms after positive ones where possible, the constant last.
Expr expr_of(const IndexSum& sum, const std::function<int(const Expr&)>& depth);

}  // namespace backcast::loop
