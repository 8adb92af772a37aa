// Reverse-mode differentiation: adds the adjoint of a function to the module.
//   Requires: every operator between what is differentiated by and the target has a gradient.
//   Ensures: the original functions are untouched; the adjoint begins with the forward nodes, holds
//   nothing for what is off the path, and consists of core operators (and calls), so that it can be
//   simplified, compiled and differentiated again.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

struct DifferentiateOptions {
  /// What to differentiate by: parameters by name, other values by the name of their location or by
  /// `%number` as printed. Each a floating-point tensor or a tuple of such. Empty: all parameters.
  std::vector<std::string> wrt;
  /// Which element of a tuple result is the target: a floating-point scalar, unless seeded.
  int64_t target_index = 0;
  /// The adjoint takes the target's cotangent as its last parameter; the target has any shape.
  bool seeded = false;
  /// False: the result is the tuple of adjoints alone, and what only the target needs is dropped.
  bool keep_result = true;
  /// True: a value that the target does not depend on is an error. False: its adjoint is zeros.
  bool strict = false;
  std::string name;  // of the new function; empty: `<function>_adjoint`
};

/// Adds `<function>_adjoint`, which takes the function's parameters and gives (original result,
/// (adjoint of each wrt)). CompileError for what cannot be: no such function, a target that is a
/// tuple, not scalar or not floating-point, an index out of range, a wrt that does not exist, is
/// named twice or is not floating-point, an operator without gradient (naming operator and node).
Module differentiate(const Module& module, const std::string& function,
                     const DifferentiateOptions& options = {});

/// Adds `<function>_vjp`: the parameters, then one cotangent per floating-point tensor of the
/// result; gives the tuple of the adjoints of the parameters `wrt` (empty: the floating-point
/// ones).
Module add_vjp(const Module& module, const std::string& function,
               const std::vector<std::string>& wrt = {});

/// Adds `<function>_jvp`: the parameters, then one tangent per floating-point tensor among the
/// parameters `wrt`; gives (result, tangents of its floating-point tensors). Forward mode is the
/// gradient of the gradient with respect to its cotangent, in which it is linear.
Module add_jvp(const Module& module, const std::string& function,
               const std::vector<std::string>& wrt = {});

/// Adds `<function>_hvp` of a scalar function: the parameters, then one tangent per floating-point
/// tensor among `wrt`; gives (gradient, Hessian times tangents).
Module add_hvp(const Module& module, const std::string& function,
               const std::vector<std::string>& wrt = {});

}  // namespace backcast
