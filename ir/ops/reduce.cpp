// reduce: sum, product, maximum, minimum or bits over axes, which disappear.
#include "ir/ops/pointwise.h"
#include "ir/ops/reduction.h"

namespace backcast::ops {
namespace {

Type infer_reduce(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const ReduceAttrs& attrs = c.attrs.as<ReduceAttrs>();
  require_axes(attrs.axes, x.rank());
  require_reducible(attrs.kind, x.element);
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    bool reduced = false;
    for (int64_t axis : attrs.axes) reduced = reduced || axis == static_cast<int64_t>(d);
    if (!reduced) result.shape.push_back(x.shape[d]);
  }
  return result;
}

Value evaluate_reduce(const EvalContext& c) {
  const ReduceAttrs& attrs = c.node.attrs.as<ReduceAttrs>();
  const Literal& x = c.tensor(0);
  TensorWriter out = result_writer(c);
  std::vector<int64_t> to = row_major_strides(out.shape()), strides(x.shape().size(), 0);
  size_t next = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    bool reduced = false;
    for (int64_t axis : attrs.axes) reduced = reduced || axis == static_cast<int64_t>(d);
    if (!reduced) strides[d] = to[next++];
  }
  visit_compute_type(x.element(), [&]<class T>(T) {
    std::vector<Running<T>> running(static_cast<size_t>(out.count()), Running<T>(attrs.kind));
    int64_t i = 0;
    for (Odometer at(x.shape()); !at.done(); at.next()) {
      running[static_cast<size_t>(at.flat(strides))].add(element<T>(x, i++));
    }
    for (int64_t k = 0; k < out.count(); ++k) out.set(k, running[static_cast<size_t>(k)].value());
  });
  return out.finish();
}

}  // namespace

const OpDef reduce = {
    .name = "reduce",
    .documentation = "sum, product, maximum, minimum or bits over axes, which disappear.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ReduceAttrs{},
    .infer = infer_reduce,
    .evaluate = evaluate_reduce};

}  // namespace backcast::ops
