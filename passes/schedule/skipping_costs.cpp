// See skipping_costs.h. Cycles as measured on Zen 4.
#include "passes/schedule/skipping_costs.h"

#include <algorithm>

#include "passes/schedule/affine.h"

namespace backcast {

using loop::Axis;
using loop::Scalar;

namespace {

int64_t points(const std::vector<Axis>& axes) {
  int64_t n = 1;
  for (const Axis& axis : axes) n *= static_extent(axis).value_or(0);
  return n;
}

}  // namespace

Scalar mask_word(int64_t bits, const TargetInfo& target) {
  if (bits <= 8) return Scalar::u8;
  if (bits <= 16) return Scalar::u16;
  return bits <= 32 || target.pointer_bits < 64 ? Scalar::u32 : Scalar::u64;
}

int64_t SkippingCosts::steps() const { return points(definition_.reduce_axes); }

int64_t SkippingCosts::results() const {
  int64_t n = 1;
  for (const Axis& axis : definition_.axes) {
    if (axis.name != schedule_.vector_axis) n *= static_extent(axis).value_or(0);
  }
  return n;
}

int SkippingCosts::element_bytes() const {
  const Scalar scalar = definition_.accumulators[0].type.scalar;
  return static_cast<int>(byte_size(loop::element_of(scalar)));
}

int64_t SkippingCosts::weight_bytes(int64_t steps) const {
  int64_t width = 0;
  for (const VectorSegment& s : schedule_.vector_segments) width = std::max(width, s.width());
  return steps * width * element_bytes();
}

double SkippingCosts::skipping() const {
  if (target_.vector_bits == 0) return scalar_cycles(0.5, 8, 6);
  // A branch is known to be mispredicted long before the sums under way are done.
  constexpr double kMispredicted = 6, kStep = 0.6, kVector = 2, kWord = 2;
  const int64_t bits = 8 * byte_size(loop::element_of(mask_word(rows_.count, target_)));
  const bool fused = target_.has_fma && target_.prefers_fma;
  const auto words = static_cast<double>((rows_.count + bits - 1) / bits);
  const double all = static_cast<double>(steps());
  const double runs = all / static_cast<double>(rows_.count);
  const double marking = kVector / static_cast<double>(target_.vector_lanes(element_bytes())) +
                         kWord / static_cast<double>(bits);
  double cycles = static_cast<double>(rows_.rows * rows_.count) * marking;
  if (!schedule_.block_axes.empty()) cycles += fetching();
  for (const VectorSegment& segment : schedule_.vector_segments) {
    const auto registers = static_cast<double>(segment.vectors);
    const double waiting =
        static_cast<double>(target_.fma_latency) / static_cast<double>(schedule_.chains);
    const double arithmetic = registers / static_cast<double>(units(target_)) * (fused ? 1 : 2);
    const double step = std::max({arithmetic, waiting, arriving(segment, sharing_)}) + kStep;
    const double ends = registers * static_cast<double>(2 * schedule_.blocks);
    cycles += static_cast<double>(results() * segment.count) *
              (all / 2 * step + runs * words * (kMispredicted + kWord) + ends);
  }
  return cycles;
}

double SkippingCosts::taking_all(double cycles) const {
  if (target_.vector_bits == 0) return scalar_cycles(1, 3, 0);
  if (target_.halves_vectors) cycles *= 2;
  double memory = 0;
  for (const VectorSegment& segment : schedule_.vector_segments) {
    memory += static_cast<double>(segment.count * steps()) * arriving(segment, 1);
  }
  return results() > 1 ? cycles : std::max(cycles, memory);
}

/// Cycles in which a step's weights come from behind the first cache, for so many results.
double SkippingCosts::arriving(const VectorSegment& segment, int64_t sharing) const {
  const double far = target_.vector_bits > 256 && !target_.halves_vectors ? 48 : 32;
  const bool near = results() > 1 ? weight_bytes(steps()) <= target_.l1_bytes
                                  : program_bytes_ <= target_.l1_bytes;
  const auto width = static_cast<double>(segment.width() * element_bytes());
  return near ? 0 : width / far / static_cast<double>(sharing);
}

/// Cycles in which blocks of weights are waited for when they come from behind the second cache.
double SkippingCosts::fetching() const {
  constexpr double kThird = 16, kMemory = 4;
  const int64_t bytes = steps() * schedule_.columns() * element_bytes();
  if (bytes <= target_.l2_bytes) return 0;
  return static_cast<double>(bytes) / (program_bytes_ > held(target_) ? kMemory : kThird);
}

/// Without vectors a product is a load, a multiplication and an addition. `part`: of the steps;
/// `each`: for each of these; `mark`: for each element of the factor.
double SkippingCosts::scalar_cycles(double part, double each, double mark) const {
  const Scalar scalar = definition_.accumulators[0].type.scalar;
  const bool soft = scalar == Scalar::f64 ? !target_.has_f64 : !target_.has_f32;
  const double product = soft ? 60 : 3;
  double cycles = mark * static_cast<double>(rows_.rows * rows_.count);
  for (const VectorSegment& segment : schedule_.vector_segments) {
    cycles += part * static_cast<double>(segment.count * steps()) *
              (each + product * static_cast<double>(segment.vectors));
  }
  return cycles;
}

}  // namespace backcast
