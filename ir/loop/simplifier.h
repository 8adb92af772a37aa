// The expression half of simplify(). Internal to ir/loop.
#pragma once

#include <unordered_map>

#include "ir/loop/bounds.h"

namespace backcast::loop {

/// Simplifies expressions under what is known at a place.
class Simplifier {
 public:
  Expr run(const Expr& e);
  Knowledge& knowledge() { return knowledge_; }
  /// Call after every change of the knowledge: what was simplified before may simplify further.
  void changed() { done_.clear(); }

 private:
  Expr run_node(const Expr& e);
  Expr run_binary(const Expr& e);
  Expr run_conjunction(const Expr& e, const Expr& a);
  Expr run_if(const Expr& e);
  Expr run_under(const Expr& e, const Expr& condition, bool truth);
  IndexSum collect(const Expr& e);
  Expr quotient(const Expr& a, const Expr& b);
  Expr remainder(const Expr& a, const Expr& b);
  Expr extremum(Op op, const Expr& a, const Expr& b);
  Expr comparison(Op op, const Expr& a, const Expr& b);
  Expr vector_arithmetic(Op op, const Expr& a, const Expr& b);
  Expr materialize(const IndexSum& sum) const;

  Knowledge knowledge_;
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> done_;  // node → {itself, result}
};

}  // namespace backcast::loop
