// The plain evaluator, which judges the compiler: slow, readable, and shared with no lowering.
#pragma once

#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// Runs a function. `arguments` match its parameters; symbols are bound from the arguments' shapes
/// and, where shapes do not determine them, from `symbols`. CompileError when an argument does not
/// fit its parameter or a symbol leaves its range.
Value evaluate(const Module& module, const Function& function, const std::vector<Value>& arguments,
               const SymbolValues& symbols = {});

/// Evaluates one node on given operand values (constant folding).
Value evaluate_node(const Module& module, const Node& node, const std::vector<Value>& operands,
                    const SymbolValues& symbols = {});

/// Binds symbols so that `type` has the shape `actual`; false when it cannot.
bool bind_symbols(const TensorType& type, const std::vector<int64_t>& actual,
                  SymbolValues& symbols);

}  // namespace backcast
