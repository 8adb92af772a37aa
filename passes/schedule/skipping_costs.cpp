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

Scalar mask_word(const NonzeroRows& rows, int element_bytes, const TargetInfo& target) {
  if (!rows.of.across.empty()) return element_bytes == 8 ? Scalar::u64 : Scalar::u32;
  if (rows.count <= 8) return Scalar::u8;
  if (rows.count <= 16) return Scalar::u16;
  return rows.count <= 32 || target.pointer_bits < 64 ? Scalar::u32 : Scalar::u64;
}

int64_t joined_words(const NonzeroRows& rows, int element_bytes, const TargetInfo& target) {
  const int64_t bits = 8 * byte_size(loop::element_of(mask_word(rows, element_bytes, target)));
  return !rows.of.across.empty() && rows.count > bits ? target.pointer_bits / bits : 1;
}

int64_t SkippingCosts::steps() const { return points(definition_.reduce_axes); }

int64_t SkippingCosts::results() const {
  int64_t n = 1;
  for (const Axis& axis : definition_.axes) {
    if (axis.name != schedule_.vector_axis) n *= static_extent(axis).value_or(0);
  }
  return n / schedule_.jam;
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

bool SkippingCosts::holds_all() const {
  return steps() * schedule_.columns() * element_bytes() <= target_.l1_bytes;
}

double SkippingCosts::skipping(double marked, double rearranging) const {
  if (target_.vector_bits == 0) return scalar_cycles(0.5, 8, 6 * marked);
  // A branch is known to be mispredicted before the sums under way are done, of which there are as
  // many as arithmetic is slower than the instructions around it.
  constexpr double kMispredicted = 12, kHidden = 6, kAround = 2;
  constexpr double kStride = 0.5, kSplit = 2, kAsked = 4, kWord = 2;
  // In order, nothing of that goes on beside arithmetic, and loads not quite (step_cycles).
  const bool in_order = target_.scalar_factors;
  const double kStep = in_order ? 12 : 0.6, kVector = in_order ? 12 : 2,
               kLoads = in_order ? 1.25 : 1, kConversion = rows_.converts ? 1 : 0;
  const loop::Scalar word = mask_word(rows_, element_bytes(), target_);
  const int64_t bits = 8 * byte_size(loop::element_of(word));
  double steering = kStep;
  if (!rows_.of.across.empty()) steering += rows_.is_joint ? kStride : kSplit;
  const double marking = kVector / static_cast<double>(target_.vector_lanes(element_bytes())) +
                         kWord / static_cast<double>(bits);
  const bool fused = target_.fuses_products();
  const int64_t joined = bits * joined_words(rows_, element_bytes(), target_);
  const auto words = static_cast<double>((rows_.count + joined - 1) / joined);
  // At a border, each tap is asked for.
  const double asking = rows_.of.border * (kSplit + kAsked * static_cast<double>(schedule_.jam));
  const double parts = rows_.of.taps.empty() ? 1 : 2;
  const double all = static_cast<double>(steps());
  const double runs = all / static_cast<double>(rows_.count);
  double cycles = marked * marking + (target_.halves_vectors ? 2 : 1) * rearranging;
  if (!schedule_.block_axes.empty()) cycles += fetching();
  for (const VectorSegment& segment : schedule_.vector_segments) {
    const auto registers = static_cast<double>(segment.vectors * schedule_.jam);
    const double waiting =
        static_cast<double>(target_.fma_latency) / static_cast<double>(schedule_.chains);
    const double arithmetic = kLoads * registers / units(target_) * ((fused ? 1 : 2) + kConversion);
    const double step =
        std::max({arithmetic, waiting, arriving(segment, sharing_)}) + steering + asking;
    const double under_way = all / 2 / (runs * words) * std::max(0.0, arithmetic - kAround);
    const double mispredicted = kMispredicted - std::min(kHidden, under_way);
    const double ends = registers * static_cast<double>(2 * schedule_.blocks);
    cycles += static_cast<double>(results() * segment.count) *
              (all / 2 * step + runs * words * parts * (mispredicted + kWord) + ends);
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
  const bool near = results() > 1 ? holds_all() : program_bytes_ <= target_.l1_bytes;
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
/// `each`: for each of these; `marking`: cycles before.
double SkippingCosts::scalar_cycles(double part, double each, double marking) const {
  const Scalar scalar = definition_.accumulators[0].type.scalar;
  const bool soft = scalar == Scalar::f64 ? !target_.has_f64 : !target_.has_f32;
  const double product = soft ? 60 : 3;
  double cycles = marking;
  for (const VectorSegment& segment : schedule_.vector_segments) {
    cycles += part * static_cast<double>(segment.count * steps()) *
              (each + product * static_cast<double>(segment.vectors));
  }
  return cycles;
}

}  // namespace backcast
