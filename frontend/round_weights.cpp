#include "frontend/round_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/graph/error.h"

namespace backcast {
namespace {

// Of the mean of the diagonal, added to it: calls that do not show all directions leave some open.
constexpr double kDamping = 0.01;

/// Parts of the largest weight that the integers' range may end at.
constexpr double kRanges[] = {1.0, 0.92, 0.84, 0.76, 0.68, 0.6, 0.5};

constexpr size_t kRows = 32;  // of a factor, at once

/// In partial sums, which need not wait for each other.
double dot(const double* a, const double* b, size_t count) {
  double sums[4] = {};
  size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    for (size_t i = 0; i < 4; ++i) sums[i] += a[k + i] * b[k + i];
  }
  for (; k < count; ++k) sums[0] += a[k] * b[k];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/// The order in which a channel's weights are rounded, from the last to the first, and L and D of
/// L D Lᵀ, the moments in that order: what is left of an error in each after those in front of it
/// have made up for it is D.
class Feedback {
 public:
  /// No moments: `count` weights of equal effect.
  explicit Feedback(size_t count) : order_(count), rest_(count, 1) {
    std::iota(order_.begin(), order_.end(), size_t{0});
  }

  explicit Feedback(const Moments& moments) : Feedback(moments.size) {
    const size_t n = moments.size;
    double mean = 0;
    for (size_t i = 0; i < n; ++i) mean += moments.sums[i * n + i] / static_cast<double>(n);
    if (!(mean > 0) || !std::isfinite(mean)) return;
    std::ranges::stable_sort(order_, {}, [&](size_t i) { return moments.sums[i * n + i]; });
    factor(moments, kDamping * mean);
    for (size_t j = 0; j < n; ++j) {
      const double diagonal = factor_[j * n + j];
      rest_[j] = diagonal * diagonal;
      for (size_t i = j; i < n; ++i) factor_[i * n + j] /= diagonal;
    }
  }

  /// Rounds a channel's weights to multiples of a scale; the error of its results.
  double round(const std::vector<double>& weights, double scale, double low, double high,
               std::vector<double>& steps) const {
    const size_t n = order_.size();
    std::vector<double> owed(n, 0);
    double error = 0;
    for (size_t r = n; r-- > 0;) {
      const size_t i = order_[r];
      const double wanted = weights[i] + owed[r];
      steps[i] = std::clamp(std::nearbyint(wanted / scale), low, high);
      const double off = wanted - steps[i] * scale;
      error += rest_[r] * off * off;
      if (factor_.empty()) continue;
      const double* const row = &factor_[r * n];
      const double difference = weights[i] - steps[i] * scale;
      for (size_t c = 0; c < r; ++c) owed[c] += difference * row[c];
    }
    return error;
  }

 private:
  /// The lower triangle C of C Cᵀ, the moments with `damping` on their diagonal. Rows are taken
  /// some at a time, which share what they read of those before.
  void factor(const Moments& moments, double damping) {
    const size_t n = moments.size;
    factor_.resize(n * n);
    for (size_t first = 0; first < n; first += kRows) {
      const size_t end = std::min(first + kRows, n);
      for (size_t j = 0; j < end; ++j) {
        const double* const other = &factor_[j * n];
        for (size_t i = std::max(first, j); i < end; ++i) {
          double* const row = &factor_[i * n];
          const double moment = moments.sums[order_[i] * n + order_[j]];
          const double rest = moment - dot(row, other, j);
          row[j] = i == j ? std::sqrt(std::max(rest + damping, damping)) : rest / other[j];
        }
      }
    }
  }

  std::vector<size_t> order_;
  std::vector<double> rest_;    // D
  std::vector<double> factor_;  // L, rows of n; empty: the identity
};

}  // namespace

RoundedWeights round_weights(const Channels& weights, int bits,
                             const std::vector<double>& least_scales,
                             const std::vector<Moments>& groups) {
  const double low = -std::ldexp(1, bits - 1), high = -low - 1;
  const size_t channels = weights.count();
  std::vector<std::vector<size_t>> places(channels);
  for (size_t i = 0; i < weights.values.size(); ++i) places[weights.of(i)].push_back(i);
  const size_t count = places.empty() ? 0 : places[0].size();
  std::vector<Feedback> feedback;
  for (const Moments& moments : groups) {
    BC_CHECK(moments.size == count, "{} moments of {} weights", moments.size, count);
    feedback.emplace_back(moments);
  }
  if (feedback.empty()) feedback.emplace_back(count);

  RoundedWeights result{std::vector<double>(channels), std::vector<double>(weights.values.size())};
  std::vector<double> own(count), steps(count), best(count);
  double signal = 0, noise = 0;
  for (size_t c = 0; c < channels; ++c) {
    const Feedback& own_feedback = feedback[c * feedback.size() / channels];
    double largest = 0;
    for (size_t k = 0; k < count; ++k) {
      own[k] = weights.values[places[c][k]];
      largest = std::max(largest, std::abs(own[k]));
    }
    double least = -1;
    for (const double part : kRanges) {
      double scale = std::max(part * largest / high, least_scales[c]);
      scale = scale > 0 ? static_cast<double>(static_cast<float>(scale)) : 1;
      const double error = own_feedback.round(own, scale, low, high, steps);
      if (least >= 0 && error >= least) continue;
      least = error;
      result.scales[c] = scale;
      best = steps;
    }
    for (size_t k = 0; k < count; ++k) result.steps[places[c][k]] = best[k];
    noise += least;
    signal += own_feedback.round(own, 1, 0, 0, steps);  // all of it is off
  }
  result.noise = signal > 0 ? noise / signal : 0;
  return result;
}

}  // namespace backcast
