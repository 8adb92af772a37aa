// Factors that are lanes of a register: where an instruction takes one, a load serves as many steps
// of the sum as there are lanes.
#include <algorithm>

#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Axis;
using loop::Scalar;

namespace {

// Of what instructions multiply by a lane: those of 16 bits are multiplied into sums of 32.
constexpr Scalar kFactors[] = {Scalar::f32, Scalar::i32, Scalar::i16};

}  // namespace

/// Whether neighbouring steps of the innermost reduction loop read neighbouring elements, each for
/// a whole register.
bool Chooser::takes_lanes(const Access& access) const {
  return access.in_reduction && !mentions(access.flat, schedule_.vector_axis) &&
         coefficient(access.flat, reduce_axes().back().name) == 1 &&
         std::count(std::begin(kFactors), std::end(kFactors), kernel_.find(access.buffer)->element);
}

/// How many steps of the innermost reduction loop share a load of their factors; 1: none.
int32_t Chooser::steps_to_join() const {
  const bool multiplies =
      lanes_ > 1 && (scalar_ == Scalar::f32 || scalar_ == Scalar::i32) && target_.lane_factors;
  if (!multiplies || !schedule_.unrolled.empty() || window_taps_ > 1) return 1;
  const Axis innermost = reduce_axes().back();
  const int64_t steps = extent(innermost.name);
  if (conditional_on(innermost.name) || steps % lanes_ != 0 || steps == lanes_) return 1;
  const bool any = std::any_of(accesses_.begin(), accesses_.end(),
                               [&](const Access& a) { return takes_lanes(a); });
  return any ? lanes_ : 1;
}

/// Registers that what is loaded for an instruction waits in.
int64_t Chooser::waiting_loads() const {
  // Where factors are lanes, broadcasts are what compilers load long before.
  constexpr int64_t kBroadcasts = 4;
  if (lanes_ > 1 && target_.lane_factors) return kBroadcasts;
  return target_.loads_apart() ? 2 : 1;
}

}  // namespace backcast
