// Small helpers for operators: what their shape rules and evaluations ask for all the time.
#include "ir/graph/op.h"

#include "ir/graph/module.h"

namespace backcast {

Value Value::make_tuple(std::vector<Value> elements) {
  Value value;
  value.elements = std::move(elements);
  value.is_tuple = true;
  return value;
}

const TensorType& InferContext::tensor(size_t i) const {
  if (i >= operands.size()) {
    throw CompileError(fmt::format("operand {} is missing; there are {}", i, operands.size()));
  }
  if (!operands[i].is_tensor()) {
    throw CompileError(
        fmt::format("operand {} must be a tensor and is a tuple, {}", i, operands[i].to_string()));
  }
  return operands[i].tensor();
}

std::vector<int64_t> EvalContext::evaluate(const Dims& dims) const {
  std::vector<int64_t> values;
  values.reserve(dims.size());
  for (const Dim& d : dims) values.push_back(d.evaluate(symbols));
  return values;
}

std::vector<int64_t> EvalContext::result_shape() const {
  return evaluate(node.type.tensor().shape);
}

}  // namespace backcast
