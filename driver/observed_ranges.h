// The ranges of values over some calls of a model: all that there was, or what 8 bits are best
// spent on.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/quantise.h"

namespace backcast {

/// Widens the range by a value; a NaN stays.
void widen(ObservedRange& range, double value);

/// How often values were where within a range.
class Histogram {
 public:
  explicit Histogram(ObservedRange range);
  void add(double value);
  /// The part of the range, zero included, of which 255 steps have the least square error: what is
  /// cut off at either end, and a twelfth of a step's square for each of the others. Zeros cost
  /// nothing, they are among the steps.
  ObservedRange least_error() const;

 private:
  struct Bin {
    double count = 0, sum = 0, squares = 0;
  };
  double error(size_t begin, size_t end) const;
  double edge(size_t bin) const;

  ObservedRange range_;
  std::vector<Bin> bins_;
  std::vector<Bin> sums_;  // of all bins in front of each
};

}  // namespace backcast
