#include "driver/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace backcast {
namespace {

/// In units of the tolerance; NaN equals NaN.
double error_of(double actual, double expected, double rtol, double atol) {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (actual == expected) return 0;
  const double error = std::fabs(actual - expected) / (atol + rtol * std::fabs(expected));
  return std::isinf(actual) || std::isinf(expected) || std::isnan(error) ? INFINITY : error;
}

}  // namespace

ComparedOutput compare(const Literal& actual, const Literal& expected, double rtol, double atol) {
  if (actual.element() != expected.element() || actual.shape() != expected.shape()) {
    return {
        false, INFINITY,
        fmt::format("is {}, expected {}", to_string(actual.type()), to_string(expected.type()))};
  }
  ComparedOutput result;
  const bool exact = !is_float(actual.element());
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const double error = exact ? (actual.as_int(i) == expected.as_int(i) ? 0 : INFINITY)
                               : error_of(actual.as_double(i), expected.as_double(i), rtol, atol);
    result.worst = std::max(result.worst, error);
    if (error <= 1 || !result.passed) continue;
    result.passed = false;
    result.message = exact ? fmt::format("element {} is {}, expected {}", i, actual.as_int(i),
                                         expected.as_int(i))
                           : fmt::format("element {} is {}, expected {}", i, actual.as_double(i),
                                         expected.as_double(i));
  }
  return result;
}

ComparedOutput compare(const std::vector<Literal>& actual, const std::vector<Literal>& expected,
                       double rtol, double atol) {
  if (actual.size() != expected.size()) {
    return {false, INFINITY,
            fmt::format("{} outputs, expected {}", actual.size(), expected.size())};
  }
  ComparedOutput result;
  for (size_t i = 0; i < actual.size(); ++i) {
    const ComparedOutput one = compare(actual[i], expected[i], rtol, atol);
    result.worst = std::max(result.worst, one.worst);
    if (one.passed || !result.passed) continue;
    result.passed = false;
    result.message = fmt::format("output {} {}", i, one.message);
  }
  return result;
}

}  // namespace backcast
