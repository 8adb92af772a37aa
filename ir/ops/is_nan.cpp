// is_nan: y = whether x is not a number; a bool.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

Value evaluate_is_nan(const EvalContext& context) {
  return evaluate_predicate<kFloat>(context.tensor(0), [](double x) { return std::isnan(x); });
}

}  // namespace

const OpDef is_nan = {
    .name = "is_nan",
    .documentation = "Whether x is not a number, as a bool.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_predicate<kFloat>,
    .evaluate = evaluate_is_nan,
    .gradient = zero_gradient("a truth value"),
};

}  // namespace backcast::ops
