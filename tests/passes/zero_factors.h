// What tests of sums that leave out factors of zero share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/target/target_info.h"
#include "passes/pipeline.h"

namespace backcast {

/// How a small first cache makes AVX2's code leave out zeros.
enum class Form { none, rows, blocks };

inline TargetInfo small_caches(TargetInfo target, int64_t l1_bytes = 12 << 10) {
  target.l1_bytes = l1_bytes;
  return target;
}

inline PipelineResult compile(const Module& module, const TargetInfo& target,
                              bool skip_zeros = true) {
  PipelineOptions options;
  options.round_trip = true;
  options.passes.schedule.skip_zeros = skip_zeros;
  return run_pipeline(module, target, options);
}

/// Which elements a rectifier makes zero: about half, all of them, none; special: half, -0 and an
/// infinity among the others.
enum class Factors { mixed, none, all, special };

/// The values with the signs that `kind` asks for.
inline Literal rectifiable(const Literal& values, Factors kind) {
  std::vector<double> result(static_cast<size_t>(values.element_count()));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = values.as_double(static_cast<int64_t>(i));
    if (kind == Factors::none) result[i] = -std::fabs(result[i]);
    if (kind == Factors::all) result[i] = std::fabs(result[i]) + 0.01;
  }
  if (kind == Factors::special && !result.empty()) {
    result.front() = -0.0;
    result.back() = std::numeric_limits<double>::infinity();
  }
  return Literal::from_doubles(values.element(), values.shape(), result);
}

/// Equal where not finite, near where finite.
inline void expect_like(const Literal& found, const Literal& expected, double tolerance) {
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const double wanted = expected.as_double(i), value = found.as_double(i);
    ASSERT_EQ(std::isnan(value), std::isnan(wanted)) << i;
    if (std::isnan(wanted)) continue;
    if (std::isinf(wanted)) {
      ASSERT_EQ(value, wanted) << i;
    } else {
      ASSERT_NEAR(value, wanted, tolerance * std::max(1.0, std::fabs(wanted))) << i;
    }
  }
}

}  // namespace backcast
