// See observed_ranges.h.
#include "driver/observed_ranges.h"

#include <algorithm>
#include <cmath>

namespace backcast {
namespace {

constexpr size_t kBins = 2048;
constexpr size_t kEnds = 96;  // candidates for either end
constexpr double kSteps = 255;

}  // namespace

void widen(ObservedRange& range, double value) {
  range.low = value >= range.low ? range.low : value;
  range.high = value <= range.high ? range.high : value;
}

Histogram::Histogram(ObservedRange range) : range_(range), bins_(kBins) {}

double Histogram::edge(size_t bin) const {
  return range_.low + (range_.high - range_.low) * static_cast<double>(bin) / kBins;
}

void Histogram::add(double value) {
  const double width = range_.high - range_.low;
  if (value == 0 || !(width > 0) || !std::isfinite(width)) return;
  const double place = (value - range_.low) / width * kBins;
  Bin& bin = bins_[static_cast<size_t>(std::clamp<double>(place, 0, kBins - 1))];
  bin.count += 1;
  bin.sum += value;
  bin.squares += value * value;
}

double Histogram::error(size_t begin, size_t end) const {
  const double low = edge(begin), high = edge(end);
  const auto distance = [](const Bin& bin, double from) {
    return bin.squares - 2 * from * bin.sum + from * from * bin.count;
  };
  const Bin &below = sums_[begin], &to_end = sums_[end], &all = sums_.back();
  const Bin above{all.count - to_end.count, all.sum - to_end.sum, all.squares - to_end.squares};
  const double step = (high - low) / kSteps;
  return distance(below, low) + distance(above, high) +
         (to_end.count - below.count) * step * step / 12;
}

ObservedRange Histogram::least_error() const {
  const double width = range_.high - range_.low;
  if (!(width > 0) || !std::isfinite(width)) return range_;
  Histogram sums = *this;
  sums.sums_.assign(1, {});
  for (const Bin& bin : bins_) {
    Bin next = sums.sums_.back();
    next.count += bin.count, next.sum += bin.sum, next.squares += bin.squares;
    sums.sums_.push_back(next);
  }
  const double at_zero = std::clamp(-range_.low / width * kBins, 0.0, static_cast<double>(kBins));
  const size_t first = static_cast<size_t>(at_zero), last = static_cast<size_t>(std::ceil(at_zero));
  ObservedRange best = range_;
  double least = sums.error(0, kBins);
  for (size_t i = 0; i <= kEnds; ++i) {
    const size_t begin = first * i / kEnds;
    for (size_t k = 0; k <= kEnds; ++k) {
      const size_t end = kBins - (kBins - last) * k / kEnds;
      if (begin >= end) continue;
      const double error = sums.error(begin, end);
      if (error >= least) continue;
      least = error;
      best = {std::min(0.0, edge(begin)), std::max(0.0, edge(end))};
    }
  }
  return best;
}

}  // namespace backcast
