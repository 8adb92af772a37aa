// Sums that leave out what a factor of zero adds: behind a rectifier, y[m, n] = Σ x[m, k]·w[k, n]
// needs only the rows of w where x[m, k] is not zero. Vector comparisons set a bit for each such k,
// and the sum goes from one bit to the next: no step waits for a branch that nobody can predict.
// Every row m has bits of its own, so that tiles of rows give way to rows one at a time, whose
// weights have to come from the first cache. Gradients of weights, Σ x[k, m]·y[k, n], have a bit
// for every k, too: vectors of words gather those of several m.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/target/target_info.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// A sum, its loops cut as need be, and how it leaves out zeros.
struct SkippingNest {
  loop::Definition definition;
  NestSchedule schedule;
  double part = 1;  // of the cycles that taking every step takes
};

struct SkippingContext {
  const TargetInfo& target;
  /// Of all constants of the program, which displace one another from caches.
  int64_t program_bytes = 0;
  /// Are about half of a parameter's elements zero?
  std::function<bool(const std::string&)> is_rectified;
  /// Need a parameter's infinities and NaNs, which zero does not take out of a sum, not be minded?
  std::function<bool(const std::string&)> is_finite;
  std::function<NestSchedule(const loop::Definition&, const TileLimits&)> choose;
  /// Cycles in which a schedule's operands are rearranged at run time.
  std::function<double(const loop::Definition&, const NestSchedule&)> rearranging;
  /// Of the definition when every step is taken.
  std::function<double()> cycles;
};

/// How a sum of products leaves out zeros, if it can and is expected to gain by it.
///   Ensures: the same sums, maybe in another order.
std::optional<SkippingNest> choose_nonzero_steps(const loop::Definition& definition,
                                                 const loop::Kernel& kernel,
                                                 const SkippingContext& context);

}  // namespace backcast
