// One function differentiated in reverse inside a builder: the forward nodes are copied, then every
// node on the way from `active` values to a seeded one has its rule applied, last first.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/gradient.h"

namespace backcast {

class ReverseSweep {
 public:
  /// All outlive the sweep. `arguments` stand for the function's parameters.
  ReverseSweep(Builder& builder, const Function& function, GradientServices& services,
               const std::vector<ValueId>& arguments);

  /// Copies what `needed` values of the function depend on.
  void copy_forward(const std::vector<ValueId>& needed);
  /// The copy of a forward value.
  ValueId copy_of(ValueId old) const { return now_[static_cast<size_t>(old.index)]; }

  void differentiate_by(ValueId old) { wrt_.push_back(old); }
  /// Adds to the adjoint of a forward value.
  void seed(ValueId old, const Adjoint& cotangent);
  /// CompileError for an operator without gradient on the way.
  void run();
  const Adjoint& adjoint(ValueId old) const { return adjoints_[static_cast<size_t>(old.index)]; }

 private:
  std::vector<char> active_values() const;
  void visit(ValueId old, const std::vector<char>& active);

  Builder& builder_;
  const Function& function_;
  GradientServices& services_;
  std::vector<ValueId> now_;
  std::vector<ValueId> wrt_;
  std::vector<Adjoint> adjoints_;
};

/// Whether the type has a floating-point tensor in it.
bool has_float(const Type& type);

}  // namespace backcast
