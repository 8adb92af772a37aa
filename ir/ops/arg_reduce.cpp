// arg_reduce: i64 position of the first (or last) maximum or minimum along an axis, which
// disappears.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_arg_reduce(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const ArgReduceAttrs& attrs = c.attrs.as<ArgReduceAttrs>();
  require_axis(attrs.axis, x.rank());
  require(attrs.kind == Reduction::max || attrs.kind == Reduction::min, "kind must be max or min");
  TensorType result{ElementType::i64, x.shape};
  result.shape.erase(result.shape.begin() + attrs.axis);
  return result;
}

Value evaluate_arg_reduce(const EvalContext& c) {
  const ArgReduceAttrs& attrs = c.node.attrs.as<ArgReduceAttrs>();
  const Literal& x = c.tensor(0);
  TensorWriter out = result_writer(c);
  size_t axis = static_cast<size_t>(attrs.axis);
  std::vector<int64_t> strides = row_major_strides(x.shape());
  std::vector<int64_t> rows = strides;
  rows.erase(rows.begin() + attrs.axis);
  visit_compute_type(x.element(), [&]<class T>(T) {
    int64_t i = 0;
    for (Odometer at(out.shape()); !at.done(); at.next()) {
      int64_t base = at.flat(rows), best = 0;
      for (int64_t k = 1; k < x.shape()[axis]; ++k) {
        T value = element<T>(x, base + k * strides[axis]);
        T held = element<T>(x, base + best * strides[axis]);
        bool better = attrs.kind == Reduction::max ? value > held : value < held;
        better = better || (attrs.last && value == held) || (value != value && held == held);
        if (better) best = k;
      }
      out.set(i++, best);
    }
  });
  return out.finish();
}

}  // namespace

const OpDef arg_reduce = {
    .name = "arg_reduce",
    .documentation =
        "i64 position of the first (or last) maximum or minimum along an axis, which disappears.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ArgReduceAttrs{},
    .infer = infer_arg_reduce,
    .evaluate = evaluate_arg_reduce};

}  // namespace backcast::ops
