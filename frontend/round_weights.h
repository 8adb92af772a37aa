// Weights as integers of few bits: each is rounded to where the layer's results, not the weight
// itself, are nearest to what they were.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/quantised_parts.h"

namespace backcast {

/// Sums of x xᵀ over all x that the `size` weights of a channel are multiplied by: [size, size].
struct Moments {
  size_t size = 0;
  std::vector<double> sums;
};

struct RoundedWeights {
  std::vector<double> scales;  // of channels, as files have them
  std::vector<double> steps;   // integers, in the order of the weights
  double noise = 0;            // squares of what results are off, as a share of their own
};

/// Integers of `bits` bits. Weights are rounded one after another, and what one is off is made up
/// for by those behind it as far as what they are multiplied by goes together (GPTQ, Frantar et
/// al., 2022, in the form of LDLQ, Chee et al., 2023). Of several scales the one with the least
/// error of results stays; none is below `least_scales`. Channels are split evenly among the
/// groups; without any, each weight is rounded by itself.
RoundedWeights round_weights(const Channels& weights, int bits,
                             const std::vector<double>& least_scales,
                             const std::vector<Moments>& groups);

}  // namespace backcast
