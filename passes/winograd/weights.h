// Weights of a layer computed by minimal filtering: constants are transformed at compile time,
// those that are trained by a kernel of their own. Internal to the pass `winograd`.
#pragma once

#include <cstdint>

#include "ir/graph/literal.h"
#include "passes/winograd/tiles.h"

namespace backcast {

/// The same numbers on every machine: uniform in [-1, 1).
class RandomNumbers {
 public:
  double next() {
    state_ = state_ * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return static_cast<double>(static_cast<int64_t>(state_) >> 11) / 4503599627370496.0;
  }

 private:
  uint64_t state_ = UINT64_C(0x9e3779b97f4a7c15);
};

/// The operand's literal, by the axes of the definition; empty for the gradient of one.
class WinogradWeights {
 public:
  WinogradWeights() = default;
  WinogradWeights(const WinogradConv& conv, const loop::Kernel& layer, Literal values);
  /// Random numbers in place of weights that are not constant.
  explicit WinogradWeights(const WinogradConv& conv);
  double at(int64_t feature, int64_t channel, int64_t row, int64_t column) const {
    return values_.as_double(origin_ + feature * feature_ + channel * channel_ + row * row_ +
                             column * column_);
  }

 private:
  Literal values_;
  int64_t origin_ = 0, feature_ = 0, channel_ = 0, row_ = 0, column_ = 0;
};

/// What transformed weights are multiplied by, so that those of integers are integers; products,
/// once they are transformed back, are multiples of it.
int weight_scale(const WinogradConv& conv);
/// Whether sums of bytes times these weights, scaled, fit in i32 at every stage.
bool sums_fit(const WinogradConv& conv, const WinogradWeights& weights);
/// Of one feature and channel, scaled: (m + 2)² values, row-major, computed in double.
void transform_taps(const WinogradConv& conv, const WinogradWeights& weights, int m,
                    int64_t feature, int64_t channel, double* values);
/// [frequency, channel, feature], computed in double; of the spectrum's type and with as many
/// channels an element.
Literal transformed_weights(const WinogradConv& conv, const WinogradWeights& weights, int m);
/// The kernel that computes the same of weights that are not constant, which it reads; it writes
/// kFilter. A definition, so that the weights may lie in whatever order pays.
loop::Kernel weight_kernel(const WinogradConv& conv, const loop::Kernel& layer,
                           const WinogradForm& form, bool use_fma);

inline constexpr const char* kFilter = "filter";

}  // namespace backcast
