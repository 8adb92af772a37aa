// parameter: an input of the function; its type is given, not inferred.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_parameter(const InferContext&) {
  throw CompileError("the type of a parameter cannot be inferred");
}

Value evaluate_parameter(const EvalContext&) {
  BC_CHECK(false, "parameters are bound by the caller");
}

}  // namespace

const OpDef parameter = {
    .name = "parameter",
    .documentation = "an input of the function; its type is given, not inferred.",
    .min_operands = 0,
    .max_operands = 0,
    .default_attrs = ParameterAttrs{},
    .infer = infer_parameter,
    .evaluate = evaluate_parameter};

}  // namespace backcast::ops
