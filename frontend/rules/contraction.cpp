// Matrix products: MatMul, Gemm. Einsum has a file of its own.
#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {

std::optional<Ints> ints_of(const NodeContext& n, std::string_view attribute, size_t input) {
  if (n.has_attr(attribute)) return n.attr_ints(attribute);
  if (n.has(input)) return n.ints(input);
  return std::nullopt;
}

ValueId gemm(NodeContext& n) {
  if (n.rank(0) != 2 || n.rank(1) != 2) n.fail("A and B have to be matrices");
  const int64_t trans_a = n.attr_int("transA", 0), trans_b = n.attr_int("transB", 0);
  const double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  ValueId y = n.e.dot(n.input(0), n.input(1), {{}, {}, {trans_a ? 0 : 1}, {trans_b ? 1 : 0}});
  if (alpha != 1) y = n.e.mul(y, alpha);
  if (n.has(2)) {
    ValueId c = n.input(2);
    if (beta != 1) c = n.e.mul(c, beta);
    y = n.e.add(y, n.e.broadcast_to(c, n.e.shape(y)));
  }
  return y;
}

ValueId matmul(NodeContext& n, ValueId a, ValueId b) {
  Emitter& e = n.e;
  if (e.rank(a) == 0 || e.rank(b) == 0) n.fail("the operands must not be scalars");
  if (e.rank(b) <= 2) {
    // Every leading axis of `a` is a row: no batch dimension is needed.
    return e.dot(a, b, {{}, {}, {e.rank(a) - 1}, {e.rank(b) == 1 ? 0 : e.rank(b) - 2}});
  }
  const bool vector = e.rank(a) == 1;
  if (vector) a = e.unsqueeze(a, 0);
  const auto batch = [&](ValueId x) {
    Shape shape = e.shape(x);
    shape.resize(shape.size() - 2);
    return shape;
  };
  const Shape common = broadcast_shapes(batch(a), batch(b));
  const auto stretch = [&](ValueId x) {
    Shape shape = common;
    const int64_t rank = e.rank(x);
    shape.push_back(e.extent(x, rank - 2));
    shape.push_back(e.extent(x, rank - 1));
    return e.broadcast_to(x, shape);
  };
  a = stretch(a);
  b = stretch(b);
  const int64_t rank = e.rank(a);
  const Ints axes = counting(rank - 2);
  const ValueId y = e.dot(a, b, {axes, axes, {rank - 1}, {rank - 2}});
  if (!vector) return y;
  Shape shape = e.shape(y);
  shape.erase(shape.end() - 2);
  return e.reshape(y, shape);
}

namespace {

void matmul(NodeContext& n) { n.result(matmul(n, n.input(0), n.input(1))); }

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"MatMul", 7, kNew, 2, 2, matmul},
    {"Gemm", 7, kNew, 2, 3, [](NodeContext& n) { n.result(gemm(n)); },
     "alpha:f beta:f transA:i transB:i"},
    {"Einsum", 12, kNew, 1, -1, import_einsum, "equation:s"},
};

}  // namespace

std::span<const OperatorRule> contraction_rules() { return kRules; }

}  // namespace backcast
