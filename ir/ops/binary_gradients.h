// Gradients that two operators of two operands share.
#pragma once

#include <vector>

#include "ir/graph/gradient.h"
#include "ir/ops/op_attrs.h"

namespace backcast::ops {

/// Of the larger or smaller of two: the operand that compares `better` gets the cotangent, equal
/// ones share it.
std::vector<Adjoint> gradient_of_extremum(GradientContext& context, Comparison better);

/// Of a - b · q, q being the quotient rounded down or toward zero.
std::vector<Adjoint> gradient_of_remainder(GradientContext& context);

}  // namespace backcast::ops
