// is_inf: y = whether x is +inf (if `positive`) or -inf (if `negative`); a bool.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

Value evaluate_is_inf(const EvalContext& context) {
  const IsInfAttrs& attrs = context.node.attrs.as<IsInfAttrs>();
  return evaluate_predicate<kFloat>(context.tensor(0), [&](double x) {
    return std::isinf(x) && (x > 0 ? attrs.positive : attrs.negative);
  });
}

}  // namespace

const OpDef is_inf = {
    .name = "is_inf",
    .documentation = "Whether x is one of the chosen infinities, as a bool.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = IsInfAttrs{},
    .infer = infer_predicate<kFloat>,
    .evaluate = evaluate_is_inf,
    .gradient = zero_gradient("a truth value"),
};

}  // namespace backcast::ops
