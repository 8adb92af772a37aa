// Operators that move elements.
#include "tests/ops/gradient_cases.h"

namespace backcast {

GradientCases shape_gradients() {
  return {
      {&ops::broadcast,
       "new and stretched dimensions",
       {spread({1, 3})},
       BroadcastAttrs{{2, 4, 3}, {1, 2}}},
  };
}

}  // namespace backcast
