// cumulative: running sum or product along an axis.
#include "ir/ops/pointwise.h"
#include "ir/ops/reduction.h"

namespace backcast::ops {
namespace {

Type infer_cumulative(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const CumulativeAttrs& attrs = c.attrs.as<CumulativeAttrs>();
  require_axis(attrs.axis, x.rank());
  require(attrs.kind == Reduction::sum || attrs.kind == Reduction::prod,
          "kind must be sum or prod");
  require(x.element != ElementType::boolean, "needs numbers, not {}", to_string(x));
  return x;
}

Value evaluate_cumulative(const EvalContext& c) {
  const CumulativeAttrs& attrs = c.node.attrs.as<CumulativeAttrs>();
  const Literal& x = c.tensor(0);
  TensorWriter out = result_writer(c);
  size_t axis = static_cast<size_t>(attrs.axis);
  std::vector<int64_t> strides = row_major_strides(x.shape()), outer = x.shape();
  int64_t extent = outer[axis];
  outer[axis] = 1;
  visit_compute_type(x.element(), [&]<class T>(T) {
    for (Odometer at(outer); !at.done(); at.next()) {
      Running<T> running(attrs.kind);
      for (int64_t k = 0; k < extent; ++k) {
        int64_t i = at.flat(strides) + (attrs.reverse ? extent - 1 - k : k) * strides[axis];
        if (attrs.exclusive) out.set(i, running.value());
        running.add(element<T>(x, i));
        if (!attrs.exclusive) out.set(i, running.value());
      }
    }
  });
  return out.finish();
}

}  // namespace

const OpDef cumulative = {.name = "cumulative",
                          .documentation = "running sum or product along an axis.",
                          .min_operands = 1,
                          .max_operands = 1,
                          .default_attrs = CumulativeAttrs{},
                          .infer = infer_cumulative,
                          .evaluate = evaluate_cumulative};

}  // namespace backcast::ops
