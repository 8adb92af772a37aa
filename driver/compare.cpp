#include "driver/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace backcast {
namespace {

/// In units of the tolerance; NaN equals NaN.
double error_of(double actual, double expected, const Tolerance& allowed) {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (actual == expected) return 0;
  const double error =
      std::fabs(actual - expected) / (allowed.absolute + allowed.relative * std::fabs(expected));
  return std::isinf(actual) || std::isinf(expected) || std::isnan(error) ? INFINITY : error;
}

/// The same of integers, `steps` of which are allowed.
double error_of(int64_t actual, int64_t expected, int64_t steps) {
  if (actual == expected) return 0;
  if (steps == 0) return INFINITY;
  return std::fabs(static_cast<double>(actual - expected)) / static_cast<double>(steps);
}

}  // namespace

ComparedOutput compare(const Literal& actual, const Literal& expected, const Tolerance& tolerance) {
  if (actual.element() != expected.element() || actual.shape() != expected.shape()) {
    return {
        false, INFINITY,
        fmt::format("is {}, expected {}", to_string(actual.type()), to_string(expected.type()))};
  }
  ComparedOutput result;
  const ElementType element = actual.element();
  const bool exact = !is_float(element);
  const bool is_quantised = element == ElementType::i8 || element == ElementType::u8;
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const double error =
        exact ? error_of(actual.as_int(i), expected.as_int(i), is_quantised ? tolerance.steps : 0)
              : error_of(actual.as_double(i), expected.as_double(i), tolerance);
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
                       const Tolerance& tolerance) {
  if (actual.size() != expected.size()) {
    return {false, INFINITY,
            fmt::format("{} outputs, expected {}", actual.size(), expected.size())};
  }
  ComparedOutput result;
  for (size_t i = 0; i < actual.size(); ++i) {
    const ComparedOutput one = compare(actual[i], expected[i], tolerance);
    result.worst = std::max(result.worst, one.worst);
    if (one.passed || !result.passed) continue;
    result.passed = false;
    result.message = fmt::format("output {} {}", i, one.message);
  }
  return result;
}

}  // namespace backcast
