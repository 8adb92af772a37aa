// top_k: the k largest or smallest elements along `axis`, best first, and their i64 positions, as a
// tuple. Of equal elements the lower position comes first; NaN counts as larger than any number.
#include <algorithm>
#include <numeric>

#include "ir/ops/adjoint.h"
#include "ir/ops/ops.h"
#include "ir/ops/rows_along.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_top_k(const InferContext& context) {
  const TopKAttrs& attrs = context.attrs.as<TopKAttrs>();
  const TensorType& x = context.tensor(0);
  require_axis(attrs.axis, x.rank(), "axis");
  const SymbolRanges& ranges = context.module.symbols;
  const Dim& extent = x.shape[static_cast<size_t>(attrs.axis)];
  if (always_negative(attrs.k, ranges) || always_negative(extent - attrs.k, ranges)) {
    fail("k = {} does not lie between 0 and dimension {} of {}", attrs.k.to_string(), attrs.axis,
         to_string(x));
  }
  TensorType values = x;
  values.shape[static_cast<size_t>(attrs.axis)] = attrs.k;
  return Type::tuple({values, TensorType{ElementType::i64, values.shape}});
}

template <class T>
bool comes_before(T a, T b, bool largest) {
  const bool a_is_nan = a != a;
  const bool b_is_nan = b != b;
  if (a_is_nan || b_is_nan) return a_is_nan != b_is_nan && a_is_nan == largest;
  return largest ? b < a : a < b;
}

Value evaluate_top_k(const EvalContext& context) {
  const TopKAttrs& attrs = context.node.attrs.as<TopKAttrs>();
  const Literal& x = context.tensor(0);
  const int64_t k = attrs.k.evaluate(context.symbols);
  const RowsAlong rows(x.shape(), attrs.axis);
  if (k < 0 || k > rows.extent) {
    fail("k = {} does not lie between 0 and dimension {} of {}", k, attrs.axis,
         to_string(x.type()));
  }
  std::vector<int64_t> shape = x.shape();
  shape[static_cast<size_t>(attrs.axis)] = k;
  ResultBuffer values(x.element(), shape);
  ResultBuffer positions(ElementType::i64, shape);
  std::vector<int64_t> order(values.count() == 0 ? 0 : static_cast<size_t>(rows.extent));
  visit_codec(x.element(), [&](auto codec) {
    using Codec = decltype(codec);
    const typename Codec::Stored* from = x.data<typename Codec::Stored>();
    typename Codec::Stored* to = values.data<typename Codec::Stored>();
    if (order.empty()) return;
    rows.each([&](int64_t row, int64_t first) {
      const auto value = [&](int64_t i) { return Codec::load(from[first + i * rows.stride]); };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t i, int64_t j) {
        if (comes_before(value(i), value(j), attrs.largest)) return true;
        return !comes_before(value(j), value(i), attrs.largest) && i < j;
      });
      const int64_t result_first = row / rows.stride * k * rows.stride + row % rows.stride;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = result_first + i * rows.stride;
        to[at] = from[first + order[static_cast<size_t>(i)] * rows.stride];
        positions.data<int64_t>()[at] = order[static_cast<size_t>(i)];
      }
    });
  });
  return Value::make_tuple({values.finish(), positions.finish()});
}

/// The cotangent of the values goes back to where they came from; no two came from one place.
std::vector<Adjoint> gradient_of_top_k(GradientContext& context) {
  const Adjoint& values = context.cotangent.elements.at(0);
  if (values.is_zero()) return {};
  const TensorType x = context.type(0);
  ScatterAttrs attrs;
  attrs.combiner = Combiner::add;
  attrs.index_vector_dim = x.rank();
  attrs.inserted_window_dims =
      attrs.scatter_dims_to_operand_dims = {context.node.attrs.as<TopKAttrs>().axis};
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d == attrs.inserted_window_dims[0]) continue;
    attrs.input_batching_dims.push_back(d);
    attrs.indices_batching_dims.push_back(d);
  }
  const Val zeros(context.builder, emit_zeros(context.builder, x));
  const ValueId positions = context.builder.emit(ops::get, {context.result}, GetAttrs{1});
  return {zeros.emit(ops::scatter, {positions, *values.value}, attrs)};
}

}  // namespace

const OpDef top_k = {
    .name = "top_k",
    .documentation =
        "A tuple of the k largest or smallest elements along `axis`, best first, and "
        "their positions; of equal elements the first comes first.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = TopKAttrs{},
    .infer = infer_top_k,
    .evaluate = evaluate_top_k,
    .gradient = gradient_of_top_k,
};

}  // namespace backcast::ops
