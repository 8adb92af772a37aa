// Gradient of ai.onnx.preview.training: the derivative of a value that the graph has computed so
// far. The part of the graph between the two becomes a function of its own, whose
// vector-Jacobian product is called.
#pragma once

#include <vector>

#include "frontend/import.h"
#include "ir/graph/builder.h"

namespace backcast {

struct GradientNode {
  std::vector<ValueId> xs, zs;  // what `y` is seen as a function of; it is derived by `xs`
  ValueId y;
  std::vector<ValueId> at;  // where: a value for each of xs and zs
};

/// The derivative of the sum of y's elements by each of xs. `module` is the builder's. Other
/// parameters of the graph that y depends on keep their values. CompileError with the builder's
/// location when a type does not fit, y has no derivative, or nobody can differentiate.
std::vector<ValueId> import_gradient(Module& module, Builder& builder, const GradientNode& node,
                                     const Differentiator& differentiate);

}  // namespace backcast
