// composite: a call with a well-known name, which says what the function computes ("softmax"). Its
// meaning is the body; lowering may claim the name and compute the same in a better way.
#include "ir/ops/call_rules.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

Type infer_composite(const InferContext& context) {
  const CompositeAttrs& attrs = context.attrs.as<CompositeAttrs>();
  if (attrs.name.empty()) fail("a composite needs a name; a call without one is a call");
  return infer_application(context, attrs.function);
}

Value evaluate_composite(const EvalContext& context) {
  return evaluate_application(context, context.node.attrs.as<CompositeAttrs>().function);
}

}  // namespace

const OpDef composite = {
    .name = "composite",
    .documentation =
        "A call with a well-known name; its meaning is the function, which lowering may replace by "
        "something better of the same name.",
    .min_operands = 0,
    .max_operands = -1,
    .default_attrs = CompositeAttrs{},
    .infer = infer_composite,
    .evaluate = evaluate_composite,
};

}  // namespace backcast::ops
