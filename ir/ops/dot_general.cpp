// dot_general: contraction of two tensors: batch dimensions, then the free ones of a, then those
// of b.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_dot_general(const InferContext& c) {
  const DotGeneralAttrs& attrs = c.attrs.as<DotGeneralAttrs>();
  const TensorType& a = c.tensor(0);
  const TensorType& b = c.tensor(1);
  require(a.element == b.element && a.element != ElementType::boolean, "operands are {} and {}",
          to_string(a), to_string(b));
  require(attrs.lhs_batch.size() == attrs.rhs_batch.size() &&
              attrs.lhs_contract.size() == attrs.rhs_contract.size(),
          "the lists of dimensions differ in length");
  Ints lhs = attrs.lhs_batch, rhs = attrs.rhs_batch;
  lhs.insert(lhs.end(), attrs.lhs_contract.begin(), attrs.lhs_contract.end());
  rhs.insert(rhs.end(), attrs.rhs_contract.begin(), attrs.rhs_contract.end());
  require_axes(lhs, a.rank());
  require_axes(rhs, b.rank());
  TensorType result{a.element, {}};
  std::vector<char> used_a(a.shape.size(), 0), used_b(b.shape.size(), 0);
  for (size_t i = 0; i < lhs.size(); ++i) {
    size_t l = static_cast<size_t>(lhs[i]), r = static_cast<size_t>(rhs[i]);
    require(a.shape[l] == b.shape[r], "dimension {} of {} and {} of {} differ", l, to_string(a), r,
            to_string(b));
    used_a[l] = used_b[r] = 1;
    if (i < attrs.lhs_batch.size()) result.shape.push_back(a.shape[l]);
  }
  for (size_t d = 0; d < a.shape.size(); ++d) {
    if (!used_a[d]) result.shape.push_back(a.shape[d]);
  }
  for (size_t d = 0; d < b.shape.size(); ++d) {
    if (!used_b[d]) result.shape.push_back(b.shape[d]);
  }
  return result;
}

/// Flat offsets of every position along some dimensions, in row-major order of the list.
std::vector<int64_t> offsets(const Literal& x, const Ints& dims) {
  std::vector<int64_t> all = row_major_strides(x.shape()), shape, strides;
  for (int64_t d : dims) {
    shape.push_back(x.shape()[static_cast<size_t>(d)]);
    strides.push_back(all[static_cast<size_t>(d)]);
  }
  std::vector<int64_t> result;
  for (Odometer at(shape); !at.done(); at.next()) result.push_back(at.flat(strides));
  return result;
}

Ints free_dims(size_t rank, const Ints& batch, const Ints& contract) {
  std::vector<char> used(rank, 0);
  for (int64_t d : batch) used[static_cast<size_t>(d)] = 1;
  for (int64_t d : contract) used[static_cast<size_t>(d)] = 1;
  Ints result;
  for (size_t d = 0; d < rank; ++d) {
    if (!used[d]) result.push_back(static_cast<int64_t>(d));
  }
  return result;
}

template <class T>
void contract(const EvalContext& c, TensorWriter& out) {
  const DotGeneralAttrs& attrs = c.node.attrs.as<DotGeneralAttrs>();
  const Literal& a = c.tensor(0);
  const Literal& b = c.tensor(1);
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  std::vector<int64_t> batch_a = offsets(a, attrs.lhs_batch), batch_b = offsets(b, attrs.rhs_batch);
  std::vector<int64_t> k_a = offsets(a, attrs.lhs_contract), k_b = offsets(b, attrs.rhs_contract);
  std::vector<int64_t> rows =
      offsets(a, free_dims(a.shape().size(), attrs.lhs_batch, attrs.lhs_contract));
  std::vector<int64_t> columns =
      offsets(b, free_dims(b.shape().size(), attrs.rhs_batch, attrs.rhs_contract));
  std::vector<T> va(static_cast<size_t>(a.element_count())),
      vb(static_cast<size_t>(b.element_count()));
  for (size_t i = 0; i < va.size(); ++i) va[i] = element<T>(a, static_cast<int64_t>(i));
  for (size_t i = 0; i < vb.size(); ++i) vb[i] = element<T>(b, static_cast<int64_t>(i));
  int64_t i = 0;
  for (size_t n = 0; n < batch_a.size(); ++n) {
    for (int64_t row : rows) {
      for (int64_t column : columns) {
        Sum sum = 0;
        for (size_t k = 0; k < k_a.size(); ++k) {
          sum += static_cast<Sum>(va[static_cast<size_t>(batch_a[n] + row + k_a[k])]) *
                 static_cast<Sum>(vb[static_cast<size_t>(batch_b[n] + column + k_b[k])]);
        }
        out.set(i++, sum);
      }
    }
  }
}

Value evaluate_dot_general(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  visit_compute_type(c.tensor(0).element(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) contract<T>(c, out);
  });
  return out.finish();
}

}  // namespace

const OpDef dot_general = {
    .name = "dot_general",
    .documentation =
        "contraction of two tensors: batch dimensions, then the free ones of a, then those of b.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = DotGeneralAttrs{},
    .infer = infer_dot_general,
    .evaluate = evaluate_dot_general};

}  // namespace backcast::ops
