// dot_general: y[batch…, m…, n…] = Σ_k a[batch, m, k] · b[batch, k, n], where batch and contracted
// dimensions lie wherever the attributes say and the free ones keep their order. Floats accumulate
// in double, integers wrap around in their type.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

/// The dimensions of a side that are neither batch nor contracted.
Ints free_dimensions(int64_t rank, const Ints& batch, const Ints& contract) {
  Ints free;
  for (int64_t d = 0; d < rank; ++d) {
    const bool taken = std::find(batch.begin(), batch.end(), d) != batch.end() ||
                       std::find(contract.begin(), contract.end(), d) != contract.end();
    if (!taken) free.push_back(d);
  }
  return free;
}

Ints joined(Ints a, const Ints& b, const Ints& c = {}) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

void check_pairs(const InferContext& context, const Ints& lhs, const Ints& rhs,
                 std::string_view what) {
  const TensorType& a = context.tensor(0);
  const TensorType& b = context.tensor(1);
  if (lhs.size() != rhs.size()) {
    fail("there are {} {} dimensions on the left and {} on the right", lhs.size(), what,
         rhs.size());
  }
  for (size_t i = 0; i < lhs.size(); ++i) {
    const Dim& left = a.shape[static_cast<size_t>(lhs[i])];
    const Dim& right = b.shape[static_cast<size_t>(rhs[i])];
    if (!(left == right)) {
      fail("{} dimension {} of {} and {} of {} differ", what, lhs[i], to_string(a), rhs[i],
           to_string(b));
    }
  }
}

Type infer_dot_general(const InferContext& context) {
  const DotGeneralAttrs& attrs = context.attrs.as<DotGeneralAttrs>();
  const TensorType& a = require_kind(context, 0, kNumeric);
  require_same_element(context, 1, 0);
  const TensorType& b = context.tensor(1);
  require_axes(joined(attrs.lhs_batch, attrs.lhs_contract), a.rank(), "the left dimension");
  require_axes(joined(attrs.rhs_batch, attrs.rhs_contract), b.rank(), "the right dimension");
  check_pairs(context, attrs.lhs_batch, attrs.rhs_batch, "batch");
  check_pairs(context, attrs.lhs_contract, attrs.rhs_contract, "contracted");
  TensorType result{a.element, {}};
  const auto append = [&](const TensorType& side, const Ints& dims) {
    for (const int64_t d : dims) result.shape.push_back(side.shape[static_cast<size_t>(d)]);
  };
  append(a, attrs.lhs_batch);
  append(a, free_dimensions(a.rank(), attrs.lhs_batch, attrs.lhs_contract));
  append(b, free_dimensions(b.rank(), attrs.rhs_batch, attrs.rhs_contract));
  return result;
}

/// All elements in row-major order of the dimensions `order`.
template <class Codec>
std::unique_ptr<typename Codec::Value[]> arranged(const Literal& x, const Ints& order) {
  const std::vector<int64_t> from = row_major_strides(x.shape());
  std::vector<int64_t> extents, strides;
  for (const int64_t d : order) {
    extents.push_back(x.shape()[static_cast<size_t>(d)]);
    strides.push_back(from[static_cast<size_t>(d)]);
  }
  std::unique_ptr<typename Codec::Value[]> values =
      make_array<typename Codec::Value>(x.element_count());
  const typename Codec::Stored* stored = x.data<typename Codec::Stored>();
  int64_t next = 0;
  Walk<1> walk(extents, {strides});
  walk.each({0}, [&](const auto& at) { values[next++] = Codec::load(stored[at[0]]); });
  return values;
}

int64_t product(const Literal& x, const Ints& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= x.shape()[static_cast<size_t>(d)];
  return count;
}

/// y[m, n] += a[m, k] · b[k, n], row-major; y is zero at first.
template <class T>
void multiply(const T* a, const T* b, T* y, int64_t rows, int64_t depth, int64_t columns) {
  for (int64_t m = 0; m < rows; ++m, y += columns) {
    for (int64_t k = 0; k < depth; ++k) {
      const T factor = a[m * depth + k];
      const T* row = b + k * columns;
      for (int64_t n = 0; n < columns; ++n) y[n] = wrapping_add(y[n], wrapping_mul(factor, row[n]));
    }
  }
}

Value evaluate_dot_general(const EvalContext& context) {
  const DotGeneralAttrs& attrs = context.node.attrs.as<DotGeneralAttrs>();
  const Literal& a = context.tensor(0);
  const Literal& b = context.tensor(1);
  ResultBuffer result(a.element(), context.result_shape());
  if (a.element_count() == 0 || b.element_count() == 0) return result.finish();  // sums of nothing
  const Ints lhs_free =
      free_dimensions(static_cast<int64_t>(a.shape().size()), attrs.lhs_batch, attrs.lhs_contract);
  const Ints rhs_free =
      free_dimensions(static_cast<int64_t>(b.shape().size()), attrs.rhs_batch, attrs.rhs_contract);
  const int64_t batches = product(a, attrs.lhs_batch);
  const int64_t rows = product(a, lhs_free);
  const int64_t depth = product(a, attrs.lhs_contract);
  const int64_t columns = product(b, rhs_free);
  visit_codec_of<kNumeric>(a.element(), [&](auto codec) {
    using Codec = decltype(codec);
    using T = typename Codec::Value;
    const auto left = arranged<Codec>(a, joined(attrs.lhs_batch, lhs_free, attrs.lhs_contract));
    const auto right = arranged<Codec>(b, joined(attrs.rhs_batch, attrs.rhs_contract, rhs_free));
    const std::unique_ptr<T[]> sums = make_array<T>(result.count());
    std::fill_n(sums.get(), result.count(), T{0});
    for (int64_t i = 0; i < batches; ++i) {
      multiply(left.get() + i * rows * depth, right.get() + i * depth * columns,
               sums.get() + i * rows * columns, rows, depth, columns);
    }
    encode<Codec>(sums.get(), result);
  });
  return result.finish();
}

/// One side of the product: its batch, contracted and free dimensions.
struct Side {
  Ints batch, contract, free;
};

/// The numbers first, first + 1, …, one per entry of `like`.
Ints counted_from(size_t first, const Ints& like) {
  Ints numbers;
  for (size_t i = 0; i < like.size(); ++i) numbers.push_back(static_cast<int64_t>(first + i));
  return numbers;
}

/// The adjoint of the operand whose dimensions are `wanted`; `theirs` is the other operand, whose
/// free dimensions start at dimension `other_start` of the result.
/// Contracting the cotangent with the other operand over its free dimensions leaves the batch, the
/// wanted free and the contracted dimensions; of the two orders of operands the one is taken that
/// lays them out as they should be, if there is one.
Val adjoint_of_side(const Val& seed, const Side& wanted, const Val& theirs, const Side& other,
                    size_t other_start) {
  const Ints seed_batch = counted_from(0, wanted.batch);
  const Ints seed_contract = counted_from(other_start, other.free);
  // The contracted dimensions of `wanted` in the order in which they lie in the other operand.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 0; i < other.contract.size(); ++i) {
    pairs.emplace_back(other.contract[i], wanted.contract[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  Ints contracted;
  for (const auto& [theirs_dim, wanted_dim] : pairs) contracted.push_back(wanted_dim);
  const Ints seed_first = joined(wanted.batch, wanted.free, contracted);
  const Ints seed_last = joined(wanted.batch, contracted, wanted.free);
  if (std::is_sorted(seed_last.begin(), seed_last.end())) {
    return theirs.emit(ops::dot_general, {seed},
                       DotGeneralAttrs{other.batch, seed_batch, other.free, seed_contract});
  }
  const Val product =
      seed.emit(ops::dot_general, {theirs},
                DotGeneralAttrs{seed_batch, other.batch, seed_contract, other.free});
  Ints permutation(seed_first.size());
  for (size_t i = 0; i < seed_first.size(); ++i) {
    permutation[static_cast<size_t>(seed_first[i])] = static_cast<int64_t>(i);
  }
  return backcast::transpose(product, permutation);
}

std::vector<Adjoint> gradient_of_dot_general(GradientContext& context) {
  const DotGeneralAttrs& attrs = context.node.attrs.as<DotGeneralAttrs>();
  const Val seed(context.builder, context.seed());
  const Val a(context.builder, context.operand(0)), b(context.builder, context.operand(1));
  const Side left{attrs.lhs_batch, attrs.lhs_contract,
                  free_dimensions(a.rank(), attrs.lhs_batch, attrs.lhs_contract)};
  const Side right{attrs.rhs_batch, attrs.rhs_contract,
                   free_dimensions(b.rank(), attrs.rhs_batch, attrs.rhs_contract)};
  const size_t left_start = left.batch.size(), right_start = left_start + left.free.size();
  std::vector<Adjoint> result(2);
  if (context.wanted[0]) {
    result[0] = adjoint_of_side(seed, left, b, right, right_start);
  }
  if (context.wanted[1]) {
    result[1] = adjoint_of_side(seed, right, a, left, left_start);
  }
  return result;
}

}  // namespace

const OpDef dot_general = {
    .name = "dot_general",
    .documentation =
        "Products summed over the contracted dimensions, for each batch index; the "
        "result has the batch dimensions, the left free ones, the right free ones.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = DotGeneralAttrs{},
    .infer = infer_dot_general,
    .evaluate = evaluate_dot_general,
    .gradient = gradient_of_dot_general,
};

}  // namespace backcast::ops
