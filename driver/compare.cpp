#include "driver/compare.h"

#include <fmt/format.h>

#include <cmath>

namespace backcast {

Comparison compare(const Literal& actual, const Literal& expected, double rtol, double atol) {
  Comparison result;
  if (actual.element() != expected.element() || actual.shape() != expected.shape()) {
    result.passed = false;
    result.message =
        fmt::format("is {}, expected {}", to_string(actual.type()), to_string(expected.type()));
    return result;
  }
  bool exact = !is_float(actual.element());
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    double error = 0;
    if (exact) {
      error = actual.as_int(i) == expected.as_int(i) ? 0 : INFINITY;
    } else {
      double a = actual.as_double(i), e = expected.as_double(i);
      if (std::isnan(a) || std::isnan(e)) {
        error = std::isnan(a) && std::isnan(e) ? 0 : INFINITY;
      } else if (a != e) {
        error = std::isinf(a) || std::isinf(e) ? INFINITY
                                               : std::fabs(a - e) / (atol + rtol * std::fabs(e));
      }
    }
    if (error > 1 && result.passed) {
      result.passed = false;
      result.message =
          fmt::format("element {}: {}, expected {}", i, actual.as_double(i), expected.as_double(i));
    }
    result.worst = std::max(result.worst, error);
  }
  return result;
}

}  // namespace backcast
