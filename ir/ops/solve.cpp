// solve: x[…, n, m] with a[…, n, n] · x = b, by elimination with partial pivoting (the first row of
// those with the largest magnitude). Computes in double. A singular matrix divides by zero: the
// result holds infinities or NaNs, and nothing traps.
#include <algorithm>
#include <cmath>

#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_solve(const InferContext& context) {
  const TensorType& a = context.tensor(0);
  if (a.element != ElementType::f32 && a.element != ElementType::f64) {
    fail("operand 0 must be an f32 or f64 tensor and is {}", to_string(a));
  }
  require_same_element(context, 1, 0);
  const TensorType& b = context.tensor(1);
  if (a.rank() < 2 || b.rank() != a.rank()) {
    fail("the operands must be matrices with equally many batch dimensions and are {} and {}",
         to_string(a), to_string(b));
  }
  const size_t rows = a.shape.size() - 2, columns = rows + 1;
  if (!(a.shape[rows] == a.shape[columns])) {
    fail("operand 0 must be square and is {}", to_string(a));
  }
  for (size_t d = 0; d <= rows; ++d) {
    if (a.shape[d] == b.shape[d]) continue;
    fail("dimension {} of {} and {} differ", d, to_string(a), to_string(b));
  }
  return b;
}

/// a and b, n rows each, become a triangle and the solution.
void eliminate(double* a, double* b, int64_t n, int64_t m) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + k * n + n, a + pivot * n);
      std::swap_ranges(b + k * m, b + k * m + m, b + pivot * m);
    }
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (int64_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      for (int64_t j = 0; j < m; ++j) b[i * m + j] -= factor * b[k * m + j];
    }
  }
  for (int64_t k = n; k-- > 0;) {
    for (int64_t c = 0; c < m; ++c) {
      double sum = b[k * m + c];
      for (int64_t j = k + 1; j < n; ++j) sum -= a[k * n + j] * b[j * m + c];
      b[k * m + c] = sum / a[k * n + k];
    }
  }
}

Value evaluate_solve(const EvalContext& context) {
  ResultBuffer result(context.tensor(1).element(), context.result_shape());
  if (result.count() == 0) return result.finish();
  const int64_t m = result.shape().back();
  const int64_t n = result.shape()[result.shape().size() - 2];
  const auto solve_all = [&]<class Codec>(Codec) {
    const std::unique_ptr<double[]> a = decode<Codec>(context.tensor(0));
    const std::unique_ptr<double[]> b = decode<Codec>(context.tensor(1));
    for (int64_t i = 0; i < result.count() / (n * m); ++i) {
      eliminate(a.get() + i * n * n, b.get() + i * n * m, n, m);
    }
    encode<Codec>(b.get(), result);
  };
  if (context.tensor(0).element() == ElementType::f32) {
    solve_all(F32Codec{});
  } else {
    solve_all(F64Codec{});
  }
  return result.finish();
}

/// b̄ = a⁻ᵀ x̄ and ā = -b̄ xᵀ.
std::vector<Adjoint> gradient_of_solve(GradientContext& context) {
  const Val seed(context.builder, context.seed());
  const Val a(context.builder, context.operand(0)), x(context.builder, context.result);
  const int64_t rank = a.rank();
  Ints permutation, batch;
  for (int64_t d = 0; d < rank; ++d) permutation.push_back(d);
  std::swap(permutation[static_cast<size_t>(rank - 2)], permutation[static_cast<size_t>(rank - 1)]);
  for (int64_t d = 0; d < rank - 2; ++d) batch.push_back(d);
  const Val of_b = backcast::transpose(a, permutation).emit(ops::solve, {seed});
  std::vector<Adjoint> result(2);
  if (context.wanted[1]) result[1] = of_b;
  if (context.wanted[0]) {
    result[0] =
        -of_b.emit(ops::dot_general, {x}, DotGeneralAttrs{batch, batch, {rank - 1}, {rank - 1}});
  }
  return result;
}

}  // namespace

const OpDef solve = {
    .name = "solve",
    .documentation =
        "The solution x of a x = b for square matrices a, by elimination with partial "
        "pivoting; infinities or NaNs where a is singular.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_solve,
    .evaluate = evaluate_solve,
    .gradient = gradient_of_solve,
};

}  // namespace backcast::ops
