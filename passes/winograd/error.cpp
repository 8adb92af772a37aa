// See error.h.
#include "passes/winograd/error.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "passes/winograd/transform.h"

namespace backcast {
namespace {

/// Uniform in [-1, 1), of integers any byte.
template <class T>
T draw(RandomNumbers& numbers, const WinogradConv& conv) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(numbers.next());
  const double lowest = conv.stored == loop::Scalar::u8 ? 0 : -128;
  return static_cast<T>(std::floor((numbers.next() + 1) * 128) + lowest);
}

/// One tile, for all channels and some features, both ways and exactly.
template <class T, class Wide>
class Trial {
 public:
  Trial(const WinogradConv& conv, const WinogradWeights& weights, int m, bool use_fma)
      : conv_(conv),
        channels_(conv.channels),
        m_(m),
        a_(frequencies(m)),
        scale_(static_cast<T>(weight_scale(conv))),
        ops_{use_fma} {
    constexpr int64_t kFeatures = 8;
    const int64_t features = std::min(conv.features, kFeatures);
    for (int64_t n = 0; n < features; ++n) {
      const int64_t f = n * conv.features / features;
      for (int64_t c = 0; c < channels_; ++c) {
        for (int i = 0; i < 9; ++i) taps_.push_back(static_cast<T>(weights.at(f, c, i / 3, i % 3)));
        if (conv.constant_weights) {
          double values[kMostFrequencies * kMostFrequencies];
          transform_taps(conv, weights, m, f, c, values);
          for (int i = 0; i < a_ * a_; ++i) filters_.push_back(static_cast<T>(values[i]));
        } else {
          T values[kMostFrequencies * kMostFrequencies];
          both_ways(3, a_, taps_.data() + taps_.size() - 9, values, ops_,
                    [&](const T* g, T* u, auto& ops) { weight_transform(m, g, u, ops); });
          filters_.insert(filters_.end(), values, values + a_ * a_);
        }
      }
    }
    features_ = features;
  }

  void run(RandomNumbers& numbers) {
    const size_t plane = static_cast<size_t>(a_ * a_);
    std::vector<T> patch(plane * size_t(channels_)), spectrum(patch.size());
    for (T& value : patch) value = draw<T>(numbers, conv_);
    for (int64_t c = 0; c < channels_; ++c) {
      both_ways(a_, a_, patch.data() + size_t(c) * plane, spectrum.data() + size_t(c) * plane, ops_,
                [&](const T* d, T* t, auto& ops) { input_transform(m_, d, t, ops); });
    }
    for (int64_t f = 0; f < features_; ++f) compare(f, patch, spectrum);
  }

  WinogradError error() const {
    if (largest_ == 0) return {};
    const double largest = static_cast<double>(largest_);
    return {static_cast<double>(direct_) / largest, static_cast<double>(transformed_) / largest};
  }

 private:
  void compare(int64_t f, const std::vector<T>& patch, const std::vector<T>& spectrum) {
    const size_t plane = static_cast<size_t>(a_ * a_);
    const T* filter = filters_.data() + size_t(f * channels_) * plane;
    const T* taps = taps_.data() + size_t(f * channels_) * 9;
    T products[kMostFrequencies * kMostFrequencies] = {};
    for (int64_t c = 0; c < channels_; ++c) {
      for (size_t i = 0; i < plane; ++i) {
        const size_t at = size_t(c) * plane + i;
        products[i] = ops_.multiply_add(spectrum[at], filter[at], products[i]);
      }
    }
    T results[16];
    both_ways(a_, m_, products, results, ops_,
              [&](const T* p, T* y, auto& ops) { output_transform(m_, p, y, ops); });
    for (int i = 0; i < m_ * m_; ++i) {
      Wide exact = 0;
      T sum = 0;
      for (int k = 0; k < 9; ++k) {
        const size_t at = size_t((i / m_ + k / 3) * a_ + i % m_ + k % 3);
        for (int64_t c = 0; c < channels_; ++c) {
          const T x = patch[size_t(c) * plane + at], w = taps[c * 9 + k];
          exact += static_cast<Wide>(x) * static_cast<Wide>(w);
          sum = ops_.multiply_add(x, w, sum);
        }
      }
      largest_ = std::max(largest_, std::abs(exact));
      direct_ = std::max(direct_, std::abs(static_cast<Wide>(sum) - exact));
      transformed_ =
          std::max(transformed_, std::abs(static_cast<Wide>(results[i] / scale_) - exact));
    }
  }

  const WinogradConv& conv_;
  int64_t channels_, features_ = 0;
  int m_, a_;
  T scale_;
  NumberOps<T> ops_;
  std::vector<T> filters_, taps_;  // [feature, channel, …]
  Wide largest_ = 0, direct_ = 0, transformed_ = 0;
};

/// Some tiles, for some channels and features, summed both ways and exactly.
template <class T, class Wide>
class GradientTrial {
 public:
  GradientTrial(int m, bool use_fma) : m_(m), a_(frequencies(m)), ops_{use_fma} {}

  WinogradError run() {
    constexpr int kPairs = 16;
    RandomNumbers numbers;
    for (int i = 0; i < kPairs; ++i) pair(numbers);
    return {static_cast<double>(direct_ / largest_), static_cast<double>(transformed_ / largest_)};
  }

 private:
  void pair(RandomNumbers& numbers) {
    constexpr int kTiles = 64, kPatch = kMostFrequencies * kMostFrequencies;
    T products[kPatch] = {}, direct[9] = {}, result[9];
    Wide exact[9] = {};
    for (int tile = 0; tile < kTiles; ++tile) {
      T patch[kPatch], outputs[kPatch], spectrum[kPatch], gradients[kPatch];
      for (int i = 0; i < a_ * a_; ++i) patch[i] = static_cast<T>(numbers.next());
      for (int i = 0; i < m_ * m_; ++i) outputs[i] = static_cast<T>(numbers.next());
      both_ways(a_, a_, patch, spectrum, ops_,
                [&](const T* d, T* t, auto& ops) { input_transform(m_, d, t, ops); });
      both_ways(m_, a_, outputs, gradients, ops_,
                [&](const T* y, T* s, auto& ops) { output_gradient_transform(m_, y, s, ops); });
      for (int i = 0; i < a_ * a_; ++i) {
        products[i] = ops_.multiply_add(spectrum[i], gradients[i], products[i]);
      }
      for (int k = 0; k < 9; ++k) {
        for (int i = 0; i < m_ * m_; ++i) {
          const T x = patch[(i / m_ + k / 3) * a_ + i % m_ + k % 3];
          direct[k] = ops_.multiply_add(x, outputs[i], direct[k]);
          exact[k] += static_cast<Wide>(x) * static_cast<Wide>(outputs[i]);
        }
      }
    }
    both_ways(a_, 3, products, result, ops_,
              [&](const T* p, T* g, auto& ops) { weight_gradient_transform(m_, p, g, ops); });
    for (int k = 0; k < 9; ++k) {
      largest_ = std::max(largest_, std::abs(exact[k]));
      direct_ = std::max(direct_, std::abs(static_cast<Wide>(direct[k]) - exact[k]));
      transformed_ = std::max(transformed_, std::abs(static_cast<Wide>(result[k]) - exact[k]));
    }
  }

  int m_, a_;
  NumberOps<T> ops_;
  Wide largest_ = 0, direct_ = 0, transformed_ = 0;
};

}  // namespace

WinogradError measure_error(const WinogradConv& conv, const WinogradWeights& weights, int m,
                            bool use_fma) {
  if (conv.of == WinogradOf::weights) {
    if (conv.scalar == loop::Scalar::f64)
      return GradientTrial<double, long double>(m, use_fma).run();
    return GradientTrial<float, double>(m, use_fma).run();
  }
  constexpr int kTiles = 16;
  RandomNumbers numbers;
  const auto tried = [&](auto trial) {
    for (int i = 0; i < kTiles; ++i) trial.run(numbers);
    return trial.error();
  };
  if (conv.is_exact()) return tried(Trial<int32_t, int64_t>(conv, weights, m, false));
  if (conv.scalar == loop::Scalar::f64) {
    return tried(Trial<double, long double>(conv, weights, m, use_fma));
  }
  return tried(Trial<float, double>(conv, weights, m, use_fma));
}

}  // namespace backcast
