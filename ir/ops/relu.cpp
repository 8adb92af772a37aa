// relu: y = max(x, 0). A NaN stays NaN. The derivative at 0 is taken as 0.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Relu {
  template <class T>
  T operator()(T x) const {
    return x < T{0} ? T{0} : x;
  }
};

}  // namespace

const OpDef relu = {
    .name = "relu",
    .documentation = "The rectifier, max(x, 0); NaN stays NaN.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Relu>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
