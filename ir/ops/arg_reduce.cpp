// arg_reduce: the i64 position of the maximum or minimum along `axis`, which disappears; the first
// of equals, or with `last` the last one. The first NaN wins against every number, as in numpy.
#include "ir/ops/ops.h"
#include "ir/ops/rows_along.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

Type infer_arg_reduce(const InferContext& context) {
  const ArgReduceAttrs& attrs = context.attrs.as<ArgReduceAttrs>();
  const TensorType& x = context.tensor(0);
  if (attrs.kind != Reduction::max && attrs.kind != Reduction::min) {
    fail("arg_reduce finds max or min, not {}", enum_name(attrs.kind));
  }
  require_axis(attrs.axis, x.rank(), "axis");
  if (x.shape[static_cast<size_t>(attrs.axis)] == Dim(0)) {
    fail("dimension {} of {} is empty and has no {}", attrs.axis, to_string(x),
         enum_name(attrs.kind));
  }
  TensorType result{ElementType::i64, x.shape};
  result.shape.erase(result.shape.begin() + attrs.axis);
  return result;
}

template <class T>
bool is_better(const ArgReduceAttrs& attrs, T value, T best) {
  if (best != best) return false;
  if (value != value) return true;
  if (value == best) return attrs.last;
  return attrs.kind == Reduction::max ? best < value : value < best;
}

Value evaluate_arg_reduce(const EvalContext& context) {
  const ArgReduceAttrs& attrs = context.node.attrs.as<ArgReduceAttrs>();
  const Literal& x = context.tensor(0);
  ResultBuffer result(ElementType::i64, context.result_shape());
  if (result.count() == 0) return result.finish();
  if (x.element_count() == 0) fail("an empty dimension has no {}", enum_name(attrs.kind));
  const RowsAlong rows(x.shape(), attrs.axis);
  visit_codec(x.element(), [&](auto codec) {
    using Codec = decltype(codec);
    const typename Codec::Stored* from = x.data<typename Codec::Stored>();
    rows.each([&](int64_t row, int64_t first) {
      int64_t where = 0;
      typename Codec::Value best = Codec::load(from[first]);
      for (int64_t i = 1; i < rows.extent; ++i) {
        const typename Codec::Value value = Codec::load(from[first + i * rows.stride]);
        if (!is_better(attrs, value, best)) continue;
        best = value;
        where = i;
      }
      result.data<int64_t>()[row] = where;
    });
  });
  return result.finish();
}

}  // namespace

const OpDef arg_reduce = {
    .name = "arg_reduce",
    .documentation =
        "The position of the first (or last) maximum or minimum along `axis`, which "
        "disappears; the first NaN wins against every number.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ArgReduceAttrs{},
    .infer = infer_arg_reduce,
    .evaluate = evaluate_arg_reduce,
    .gradient = zero_gradient("positions"),
};

}  // namespace backcast::ops
