// What is known about index values at a place in a kernel: intervals and symbolic bounds of
// variables, and conditions that hold there. Internal to ir/loop.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/loop/index_sum.h"

namespace backcast::loop {

/// Inclusive; INT64_MIN and INT64_MAX mean unbounded.
struct Interval {
  int64_t min = INT64_MIN;
  int64_t max = INT64_MAX;
};

class Knowledge {
 public:
  /// A variable with an interval only.
  void bind(const std::string& name, Interval range);
  /// A loop variable in begin .. begin + extent, inside the loop (so extent >= 1).
  void bind_loop(const std::string& name, const Expr& begin, const Expr& extent);
  /// A variable equal to an expression.
  void bind_equal(const std::string& name, const Expr& value);
  void unbind(const std::string& name);

  /// Takes a condition, or its negation, as given until forgotten; returns the former count.
  size_t assume(const Expr& condition, bool truth);
  size_t assumptions() const { return facts_.size(); }
  void forget_to(size_t count) { facts_.resize(count); }

  Interval range(const Expr& e) const;  // of a scalar index expression
  Interval range(const IndexSum& sum) const;
  bool proves_nonnegative(const IndexSum& sum) const;
  /// 1: true, 0: false, -1: undecided.
  int decide(Op comparison, const IndexSum& a, const IndexSum& b) const;

  /// Whether a cast from integers to integers changes none of those that there may be.
  bool keeps_values(const Expr& cast) const;
  /// Position of the innermost binding in an expression; -1 for none.
  int depth(const Expr& e) const;

 private:
  struct Variable {
    Interval range;
    std::vector<IndexSum> lower, upper;  // each holds
    int depth = 0;
  };

  void assume_nonnegative(IndexSum sum);
  bool prove(const IndexSum& sum, int& budget) const;
  bool prove_by_fact(const IndexSum& sum) const;
  /// Of an integer of any type, in all lanes.
  Interval range_of_integer(const Expr& e) const;
  bool prove_without(const IndexSum& sum, const Expr& term, int& budget) const;

  std::unordered_map<std::string, Variable> variables_;
  std::vector<IndexSum> facts_;  // each >= 0
  int next_depth_ = 0;
};

}  // namespace backcast::loop
