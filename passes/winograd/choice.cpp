// See choice.h.
#include "passes/winograd/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/winograd/transform.h"

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
    if (target.halves_vectors) {
      for (double* cycles : {&c.load, &c.store, &c.operation, &c.mac, &c.direct_mac}) *cycles *= 2;
      c.latency /= 2;
    }
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

/// Cycles of the stages of a form.
class FormCycles {
 public:
  FormCycles(const WinogradConv& conv, const WinogradForm& form, const TargetInfo& target)
      : conv_(conv), form_(form), target_(target), c_(costs_of(conv, target)) {}

  double run() const {
    constexpr double kCalls = 60;  // of three kernels
    const bool gradient = conv_.of == WinogradOf::weights;
    const double scratch = static_cast<double>(form_.scratch_bytes(conv_));
    const double block = input() + (gradient ? gradient_stages() : result_stages()) +
                         2 * traffic(scratch, scratch, target_) + kCalls;
    const int64_t blocks = form_.blocks() * batches(conv_) / form_.block_images;
    return once() + block * static_cast<double>(blocks);
  }

 private:
  double input() const {
    const double operations = form_.m == 2 ? 4 : 12;
    const double halves = conv_.word > 1 ? 4 * planes_ * c_.operation : 0;  // apart, together
    return tiles_ * in_ *
           (planes_ * (c_.load + c_.store) + 2 * a_ * operations * c_.operation + halves);
  }

  double result_stages() const {
    const double starved = std::max(1.0, c_.latency / (tiles_ * out_));
    const double product =
        planes_ * tiles_ * out_ * (channels_ * c_.mac * starved + 2 * c_.operation + c_.store);
    const double back =
        tiles_ * out_ *
        (planes_ * c_.load + small_transform() + outputs_ * (c_.store + 2 * c_.operation));
    return product + back + traffic(matrices_, matrices_, target_);
  }

  double gradient_stages() const {
    const double starved = std::max(1.0, c_.latency / (channels_ * out_));
    const double product =
        planes_ * channels_ * out_ * (tiles_ * c_.mac * starved + c_.load + c_.store);
    const double there =
        tiles_ * out_ * (outputs_ * c_.load + small_transform() + planes_ * c_.store);
    return product + there + 2 * traffic(matrices_, matrices_, target_);
  }

  /// Weights that are not constant are transformed in every call, gradients back.
  double once() const {
    if (conv_.constant_weights) return 0;
    const bool gradient = conv_.of == WinogradOf::weights;
    const double operations = form_.m == 2 ? 28 : gradient ? 90 : 75;
    const double moves =
        gradient ? planes_ * c_.load + 9 * (c_.load + c_.store) : 9 * c_.load + planes_ * c_.store;
    return channels_ * out_ * (moves + operations * c_.operation) +
           2 * traffic(matrices_, matrices_, target_);
  }

  /// From or to m × m outputs.
  double small_transform() const { return (a_ + form_.m) * (form_.m == 2 ? 4 : 10) * c_.operation; }

  const WinogradConv& conv_;
  const WinogradForm& form_;
  const TargetInfo& target_;
  const Costs c_;
  const int a_ = frequencies(form_.m);
  const double tiles_ = static_cast<double>(form_.block_tiles());
  const double planes_ = static_cast<double>(form_.frequencies());
  const double outputs_ = form_.m * form_.m;
  const double channels_ = static_cast<double>(conv_.channels);
  const double in_ = registers(conv_.spectrum_elements(), c_);
  const double out_ = registers(conv_.features, c_);
  /// Bytes of a matrix of channels and features for each frequency.
  const double matrices_ =
      planes_ * static_cast<double>(byte_size(loop::element_of(conv_.spectrum())) *
                                    conv_.spectrum_elements() * conv_.features);
};

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> result;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) result.push_back(d);
  }
  return result;
}

/// The part of the time that a thread with most of the pieces takes.
double longest_share(int64_t pieces, int64_t threads) {
  return static_cast<double>((pieces + threads - 1) / threads) / static_cast<double>(pieces);
}

/// The form in pieces for so many threads: as few as keep these busy for the shortest time.
WinogradForm in_pieces(const WinogradConv& conv, WinogradForm form, int64_t threads) {
  if (conv.of == WinogradOf::weights || form.blocks_across() > 1) return form;
  const int64_t images = conv.batches.is_constant() ? batches(conv) / form.block_images : 1;
  const int64_t rows = form.tile_rows / form.block_rows;
  double shortest = 1;  // of the whole
  for (const bool of_images : {true, false}) {
    const int64_t blocks = of_images ? images : rows;
    for (const int64_t pieces : divisors(blocks)) {
      const double share = longest_share(pieces, threads);
      if (share >= shortest) continue;
      shortest = share;
      form.pieces = pieces;
      form.piece_blocks = blocks / pieces;
      form.pieces_of_images = of_images;
    }
  }
  return form;
}

}  // namespace

WinogradCandidate best_form(const WinogradConv& conv, int m, int64_t threads,
                            const TargetInfo& target) {
  const int64_t down = (conv.rows.extent + m - 1) / m;
  const int64_t across = (conv.columns.extent + m - 1) / m;
  WinogradCandidate best;
  best.cycles = std::numeric_limits<double>::infinity();
  if (target.is_microcontroller()) {
    // Scratch is kept small: as few tiles as a register tile of the product takes, or at most twice
    // as many.
    const int64_t tiles_at_once = conv.is_exact() ? 2 : 4;
    int64_t columns = 1;
    for (const int64_t d : divisors(across)) {
      if (columns < tiles_at_once && d <= 2 * tiles_at_once) columns = d;
    }
    best.form = winograd_form(conv, m, 1, 1, columns, target);
    best.cycles = FormCycles(conv, best.form, target).run();
    return best;
  }
  const auto consider = [&](int64_t images, int64_t rows, double least_gain) {
    WinogradForm form = winograd_form(conv, m, images, rows, across, target);
    double cycles = FormCycles(conv, form, target).run();
    form = in_pieces(conv, form, threads);
    cycles *= longest_share(form.pieces, threads);
    if (cycles < best.cycles * (1 - least_gain)) best = {form, cycles};
  };
  for (const int64_t rows : divisors(down)) consider(1, rows, 0);
  constexpr double kWorthRoom = 0.12;  // a share of the time, by a model that flatters it
  for (const int64_t images : divisors(batches(conv))) {
    if (images > 1) consider(images, down, kWorthRoom);
  }
  return best;
}

double direct_cycles(const WinogradConv& conv, int64_t threads, const TargetInfo& target) {
  const Costs c = costs_of(conv, target);
  const double out = registers(conv.features, c);
  const double taps = static_cast<double>(taps_inside(conv.rows) * taps_inside(conv.columns));
  const double outputs = static_cast<double>(conv.rows.extent * conv.columns.extent);
  const double bytes = static_cast<double>(byte_size(loop::element_of(conv.scalar)));
  const double weights = bytes * 9 * static_cast<double>(conv.channels * conv.features);
  const double sums = taps * static_cast<double>(conv.channels) * out * c.direct_mac;
  const double rest = outputs * out * (c.store + 4 * c.operation);
  const double whole = (sums + rest) * static_cast<double>(batches(conv));
  return whole / static_cast<double>(threads) + traffic(weights, weights, target);
}

}  // namespace backcast
