#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

const TensorType& tensor_operand(const InferContext& c, size_t i) {
  require(c.operands[i].is_tensor(), "operand {} is a tuple", i);
  return c.operands[i].tensor();
}

const TensorType& equal_operands(const InferContext& c) {
  const TensorType& a = tensor_operand(c, 0);
  const TensorType& b = tensor_operand(c, 1);
  require(a == b, "operands differ: {} and {}", to_string(a), to_string(b));
  return a;
}

bool has_bits(ElementType e) { return is_integer(e) || e == ElementType::boolean; }

}  // namespace

Type infer_same(const InferContext& c) { return tensor_operand(c, 0); }

Type infer_same_float(const InferContext& c) {
  const TensorType& x = tensor_operand(c, 0);
  require(is_float(x.element), "needs a float operand, not {}", to_string(x));
  return x;
}

Type infer_same_number(const InferContext& c) {
  const TensorType& x = tensor_operand(c, 0);
  require(x.element != ElementType::boolean, "needs numbers, not {}", to_string(x));
  return x;
}

Type infer_same_bits(const InferContext& c) {
  const TensorType& x = tensor_operand(c, 0);
  require(has_bits(x.element), "needs integers or bools, not {}", to_string(x));
  return x;
}

Type infer_binary_any(const InferContext& c) { return equal_operands(c); }

Type infer_binary(const InferContext& c) {
  const TensorType& a = equal_operands(c);
  require(a.element != ElementType::boolean, "needs numbers, not {}", to_string(a));
  return a;
}

Type infer_binary_bits(const InferContext& c) {
  const TensorType& a = equal_operands(c);
  require(has_bits(a.element), "needs integers or bools, not {}", to_string(a));
  return a;
}

Type infer_binary_integer(const InferContext& c) {
  const TensorType& a = equal_operands(c);
  require(is_integer(a.element), "needs integers, not {}", to_string(a));
  return a;
}

}  // namespace backcast::ops
