// Derivatives of a model by its inputs as entry points beside `run`: `--derivative vjp|jvp|hvp`.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/attributes.h"
#include "ir/graph/module.h"

namespace backcast {

enum class DerivativeKind { vjp, jvp, hvp };
BACKCAST_ENUM_NAMES(DerivativeKind, "vjp", "jvp", "hvp");

struct DerivativeRequest {
  std::vector<std::string> kinds;
  std::vector<std::string> wrt;  // inputs; none: all of floating point
};

/// The module with an entry point per kind, named after it, that takes the inputs of `main`, then
///   vjp: a cotangent per floating-point output; gives gradient_<input> of each wrt;
///   jvp: a tangent per wrt; gives the outputs, then tangent_<output> of the floating-point ones;
///   hvp: a tangent per wrt; gives gradient_<input> and product_<input> of each wrt (`main` gives a
///   scalar).
/// wrt are in the order of the inputs. CompileError for an unknown kind or input, and for what
/// cannot be differentiated.
Module add_derivatives(Module module, const DerivativeRequest& request);

}  // namespace backcast
