// See winograd_choice.h.
#include "passes/lower/winograd_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "passes/lower/winograd_transform.h"

namespace backcast {
namespace {

/// Cycles per operation on a register.
struct Costs {
  double lanes = 1;
  double load = 0.5, store = 1, operation = 0.5;
  double mac = 0.5, direct_mac = 0.5;  // of the transformed layer and of the layer as it is
  double latency = 8;                  // accumulators that keep the units busy
};

Costs costs_of(const WinogradConv& conv, const TargetInfo& target) {
  Costs c;
  const int bytes = static_cast<int>(byte_size(loop::element_of(conv.scalar)));
  if (conv.is_exact()) {
    // A word of two products takes an instruction and its share of two loads; bytes that are
    // multiplied directly are taken apart before that.
    const bool pairs = conv.word > 1;
    return {1, 2, 2, 1.3, pairs ? 1.0 : 2.4, pairs ? 1.6 : 2.6, 1};
  }
  if (target.vector_bits > 0) {
    c.lanes = target.vector_lanes(bytes);
    const double units = std::max(1, target.fma_units);
    c.operation = 1 / units;
    c.mac = c.direct_mac = 1.05 / units;
    c.latency = target.fma_latency * units;
  } else {  // a load for each product, no two instructions at once
    c.load = 1.5;
    c.store = 1.5;
    c.operation = 1.2;
    c.mac = c.direct_mac = 2.4;
    c.latency = 1;
  }
  return c;
}

double registers(int64_t elements, const Costs& costs) {
  return std::ceil(static_cast<double>(elements) / costs.lanes);
}

/// Cycles to bring so many bytes in once, out of the cache that they fit in beside other data.
double traffic(double bytes, double resident, const TargetInfo& target) {
  if (target.vector_bits == 0) return 0;
  const double l1 = static_cast<double>(target.l1_bytes), l2 = static_cast<double>(target.l2_bytes);
  constexpr double kSecond = 48, kNearlyFull = 24, kBeyond = 6;  // bytes per cycle
  if (resident <= l1 * 0.75) return 0;
  return bytes / (resident <= l2 * 0.5 ? kSecond : resident <= l2 ? kNearlyFull : kBeyond);
}

/// Products of a dimension that are not with padding.
int64_t taps_inside(const WinogradSide& side) {
  int64_t count = 0;
  for (int64_t o = 0; o < side.extent; ++o) {
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t at = o + k + side.shift;
      count += at >= side.first && at < side.end;
    }
  }
  return count;
}

int64_t batches(const WinogradConv& conv) {
  return conv.batches.is_constant() ? conv.batches.constant() : 1;
}

double form_cycles(const WinogradConv& conv, const WinogradForm& form, const TargetInfo& target) {
  const Costs c = costs_of(conv, target);
  const double tiles = static_cast<double>(form.block_tiles());
  const double planes = static_cast<double>(form.frequencies());
  const double in = registers(conv.spectrum_elements(), c), out = registers(conv.features, c);
  const int a = frequencies(form.m);
  const double operations = form.m == 2 ? 4 : 12, back = form.m == 2 ? 4 : 10;
  const double outputs = form.m * form.m;
  const double halves = conv.word > 1 ? 4 * planes * c.operation : 0;  // apart, together
  const double input =
      tiles * in * (planes * (c.load + c.store) + 2 * a * operations * c.operation + halves);
  const double output =
      tiles * out *
      (planes * c.load + (a + form.m) * back * c.operation + outputs * (c.store + 2 * c.operation));
  const double starved = std::max(1.0, c.latency / (tiles * out));
  const double product =
      planes * tiles * out *
      (static_cast<double>(conv.channels) * c.mac * starved + 2 * c.operation + c.store);
  const double bytes = static_cast<double>(byte_size(loop::element_of(conv.spectrum())));
  const double scratch = static_cast<double>(form.scratch_bytes(conv));
  const double weights =
      bytes * planes * static_cast<double>(conv.spectrum_elements() * conv.features);
  constexpr double kCalls = 60;  // of three kernels
  const double block = input + product + output + 2 * traffic(scratch, scratch, target) +
                       traffic(weights, weights, target) + kCalls;
  return block * static_cast<double>(form.blocks() * batches(conv));
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> result;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) result.push_back(d);
  }
  return result;
}

/// The same numbers on every machine: uniform in [-1, 1).
class Numbers {
 public:
  double next() {
    state_ = state_ * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return static_cast<double>(static_cast<int64_t>(state_) >> 11) / 4503599627370496.0;
  }

 private:
  uint64_t state_ = UINT64_C(0x9e3779b97f4a7c15);
};

/// Uniform in [-1, 1), of integers any byte.
template <class T>
T draw(Numbers& numbers, const WinogradConv& conv) {
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
        double taps[kMostFrequencies * kMostFrequencies];
        transform_taps(conv, weights, m, f, c, taps);
        for (int i = 0; i < a_ * a_; ++i) filters_.push_back(static_cast<T>(taps[i]));
        for (int i = 0; i < 9; ++i) taps_.push_back(static_cast<T>(weights.at(f, c, i / 3, i % 3)));
      }
    }
    features_ = features;
  }

  void run(Numbers& numbers) {
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

}  // namespace

bool is_microcontroller(const TargetInfo& target) {
  return target.architecture == Architecture::thumb || target.architecture == Architecture::riscv32;
}

WinogradError measure_error(const WinogradConv& conv, const WinogradWeights& weights, int m,
                            bool use_fma) {
  constexpr int kTiles = 16;
  Numbers numbers;
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

WinogradCandidate best_form(const WinogradConv& conv, int m, const TargetInfo& target) {
  const int64_t down = (conv.rows.extent + m - 1) / m;
  const int64_t across = (conv.columns.extent + m - 1) / m;
  WinogradCandidate best;
  best.cycles = std::numeric_limits<double>::infinity();
  if (is_microcontroller(target)) {
    // As few tiles as a register tile of the product takes, or at most twice as many.
    const int64_t tiles_at_once = conv.is_exact() ? 2 : 4;
    int64_t columns = 1;
    for (const int64_t d : divisors(across)) {
      if (columns < tiles_at_once && d <= 2 * tiles_at_once) columns = d;
    }
    best.form = winograd_form(conv, m, 1, columns, target);
    best.cycles = form_cycles(conv, best.form, target);
    return best;
  }
  for (const int64_t rows : divisors(down)) {
    const WinogradForm form = winograd_form(conv, m, rows, across, target);
    const double cycles = form_cycles(conv, form, target);
    if (cycles < best.cycles) best = {form, cycles};
  }
  return best;
}

double direct_cycles(const WinogradConv& conv, const TargetInfo& target) {
  const Costs c = costs_of(conv, target);
  const double out = registers(conv.features, c);
  const double taps = static_cast<double>(taps_inside(conv.rows) * taps_inside(conv.columns));
  const double outputs = static_cast<double>(conv.rows.extent * conv.columns.extent);
  const double bytes = static_cast<double>(byte_size(loop::element_of(conv.scalar)));
  const double weights = bytes * 9 * static_cast<double>(conv.channels * conv.features);
  const double sums = taps * static_cast<double>(conv.channels) * out * c.direct_mac;
  const double rest = outputs * out * (c.store + 4 * c.operation);
  return (sums + rest) * static_cast<double>(batches(conv)) + traffic(weights, weights, target);
}

}  // namespace backcast
