// A module that the tests of this folder share.
#pragma once

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"

namespace backcast {

inline Loc loc(const std::string& node) { return {node, "Test", Origin::imported}; }

/// @main(x: f32[N,2]) = @double(relu(x)) + x, where @double(y: f32[N,2]) = y + y, and N in 1..8.
inline Module doubling_module() {
  Module module;
  module.symbols["N"] = {1, 8};
  const Type type = TensorType{ElementType::f32, {Dim::symbol("N"), 2}};
  Builder callee(module, "double");
  const ValueId y = callee.parameter("y", type);
  callee.set_loc(loc("twice"));
  const ValueId sum = callee.emit(ops::add, {y, y});
  module.functions["double"] = callee.finish(sum);

  Builder main(module, "main");
  const ValueId x = main.parameter("x", type);
  main.set_loc(loc("act"));
  const ValueId active = main.emit(ops::relu, {x});
  const ValueId doubled = main.emit(ops::call, {active}, CallAttrs{{"double"}});
  main.set_loc(loc("skip"));
  const ValueId result = main.emit(ops::add, {doubled, x});
  module.functions["main"] = main.finish(result, {"y"});
  return module;
}

}  // namespace backcast
