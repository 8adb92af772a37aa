// A graph pass of one's own: every relu becomes gelu(x) = x/2 · (1 + erf(x/√2)), written in core
// operators, so that fusion, gradients and both emitters take it from there.
#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "driver/compiler.h"
#include "ir/graph/builder.h"
#include "ir/graph/text.h"
#include "ir/ops/ops.h"

namespace {

using backcast::Builder, backcast::Function, backcast::Module, backcast::Node, backcast::Rewriter,
    backcast::TensorType, backcast::ValueId;
namespace ops = backcast::ops;

ValueId filled(Builder& b, const TensorType& type, double value) {
  return b.emit(ops::broadcast, {b.scalar(type.element, value)},
                backcast::BroadcastAttrs{type.shape, {}});
}

ValueId gelu(Builder& b, ValueId x) {
  const TensorType type = b.tensor_type(x);
  ValueId scaled = b.emit(ops::mul, {x, filled(b, type, 1 / std::sqrt(2.0))});
  ValueId weight = b.emit(ops::add, {b.emit(ops::erf, {scaled}), filled(b, type, 1)});
  return b.emit(ops::mul, {b.emit(ops::mul, {x, filled(b, type, 0.5)}), weight});
}

/// A pass makes a new module: the old one stays as it was.
Module gelu_instead_of_relu(const Module& module) {
  Module result = module;
  for (const auto& [name, from] : module.functions) {
    Rewriter rewriter(module, from);
    for (int64_t i = 0; i < from.size(); ++i) {
      const ValueId old(i);
      const Node& node = from.node(old);
      if (node.op == &ops::relu) {
        rewriter.builder().set_loc(node.loc);
        rewriter.map(old, gelu(rewriter.builder(), rewriter[node.operands[0]]));
      } else {
        rewriter.copy(old);
      }
    }
    result.functions[name] = rewriter.finish();
  }
  return result;
}

}  // namespace

/// gelu_instead_of_relu MODEL.onnx DIR: compiles the changed model for this machine and prints the
/// graph after the pass.
int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: gelu_instead_of_relu MODEL.onnx DIR\n");
    return 1;
  }
  try {
    backcast::CompileRequest request;
    request.model = argv[1];
    request.pipeline.extra_graph_passes = {{"gelu_instead_of_relu", gelu_instead_of_relu}};
    request.pipeline.print_after = {"gelu_instead_of_relu"};
    request.pipeline.log = &std::cout;
    backcast::CompiledModel model = backcast::compile_model(request);
    backcast::write_files(argv[2], backcast::emit_files(model, backcast::Emit::lib));
  } catch (const backcast::CompileError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
