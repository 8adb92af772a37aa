// Reductions and running reductions.
#include "tests/ops/gradient_cases.h"

namespace backcast {

GradientCases reduction_gradients() {
  return {
      {&ops::reduce, "sum", {spread({2, 3})}, ReduceAttrs{Reduction::sum, {1}}},
  };
}

}  // namespace backcast
