// Gathering, scattering and sorting.
#include "tests/ops/gradient_cases.h"

namespace backcast {

GradientCases indexing_gradients() {
  return {
      {&ops::arg_reduce, "passes nothing", {spread({2, 3})}, {}, R"(
func @main(%x: f64[2,3]) -> (i64[2], f64[2,3]) {
  %0 = arg_reduce %x {kind=max, axis=1, last=false}
  %1 = mul %x, %x
  %2 = tuple %0, %1
  return %2
})"},
  };
}

}  // namespace backcast
