// parameter: an input of the function. Its type is given, not inferred, and whoever evaluates a
// function supplies its value.
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

Type infer_parameter(const InferContext&) {
  BC_CHECK(false, "the type of a parameter is given, not inferred");
  return {};
}

Value evaluate_parameter(const EvalContext&) {
  BC_CHECK(false, "a parameter is not evaluated; the caller supplies its value");
  return {};
}

}  // namespace

const OpDef parameter = {
    .name = "parameter",
    .documentation = "An input of the function.",
    .min_operands = 0,
    .max_operands = 0,
    .default_attrs = ParameterAttrs{},
    .infer = infer_parameter,
    .evaluate = evaluate_parameter,
    .gradient = zero_gradient("no operands"),
};

}  // namespace backcast::ops
