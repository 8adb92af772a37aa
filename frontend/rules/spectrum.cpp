// DFT and STFT: products with a constant matrix of cosines and sines. Lengths on devices are short,
// and one product runs at the speed of all others; gradients follow from it. MelWeightMatrix is
// such a matrix itself.
#include <cmath>
#include <numbers>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

// 2 * 4096 * 2049 * 2 numbers are 134 MB, more than any target has use for.
constexpr int64_t kLongest = 4096;

struct Transform {
  int64_t length = 0;
  int64_t parts = 1;  // 2: the input is complex
  bool inverse = false, one_sided = false;

  bool to_real() const { return inverse && one_sided; }
  int64_t half() const { return length / 2 + 1; }
  int64_t inputs() const { return to_real() ? half() : length; }
  int64_t outputs() const { return one_sided && !inverse ? half() : length; }
  int64_t output_parts() const { return to_real() ? 1 : 2; }
};

/// [inputs * parts, outputs * output parts].
ValueId matrix_of(NodeContext& n, const Transform& t, ElementType element) {
  const int64_t rows = t.inputs() * t.parts, columns = t.outputs() * t.output_parts();
  std::vector<double> values(static_cast<size_t>(rows * columns));
  const double sign = t.inverse ? 1 : -1;
  for (int64_t i = 0; i < t.inputs(); ++i) {
    // Half a spectrum stands for both: what has a mirror image counts twice.
    const bool mirrored = t.to_real() && i > 0 && 2 * i != t.length;
    const double scale = t.inverse ? (mirrored ? 2.0 : 1.0) / static_cast<double>(t.length) : 1.0;
    for (int64_t k = 0; k < t.outputs(); ++k) {
      const double turn = static_cast<double>(i * k % t.length) / static_cast<double>(t.length);
      const double real = scale * std::cos(2 * std::numbers::pi * turn);
      const double imaginary = scale * sign * std::sin(2 * std::numbers::pi * turn);
      for (int64_t p = 0; p < t.parts; ++p) {
        double* at =
            &values[static_cast<size_t>((i * t.parts + p) * columns + k * t.output_parts())];
        at[0] = p == 0 ? real : -imaginary;
        if (t.output_parts() == 2) at[1] = p == 0 ? imaginary : real;
      }
    }
  }
  return n.e.constant(Literal::from_doubles(element, {rows, columns}, values));
}

/// x: […, inputs, parts], to […, outputs, output parts].
ValueId transformed(NodeContext& n, const Transform& t, ValueId x) {
  Emitter& e = n.e;
  if (t.length < 1 || t.length > kLongest) {
    n.fail(fmt::format("a transform of {} elements is not supported; 1 to {} are", t.length,
                       kLongest));
  }
  Shape flat = e.shape(x);
  flat.resize(flat.size() - 2);
  Shape result = flat;
  flat.push_back(Dim(t.inputs() * t.parts));
  const ValueId y = matmul(n, e.reshape(x, flat), matrix_of(n, t, e.element(x)));
  result.push_back(Dim(t.outputs()));
  result.push_back(Dim(t.output_parts()));
  return e.reshape(y, result);
}

int64_t constant_extent(const NodeContext& n, const Dim& extent) {
  if (!extent.is_constant()) {
    n.fail(fmt::format("needs a known length; bind {} with --dim", extent.to_string()));
  }
  return extent.constant();
}

int64_t parts_of(const NodeContext& n, const Dim& last) {
  const int64_t parts = constant_extent(n, last);
  if (parts != 1 && parts != 2) n.fail("the last dimension has to be 1 (real) or 2 (complex)");
  return parts;
}

/// Cut, or continued by zeros, to `length` along `axis`.
ValueId fitted(NodeContext& n, ValueId x, int64_t axis, int64_t length) {
  Emitter& e = n.e;
  const int64_t extent = constant_extent(n, e.extent(x, axis));
  if (extent > length) return e.slice_axis(x, axis, 0, length);
  if (extent == length) return x;
  Dims low(static_cast<size_t>(e.rank(x)), Dim(0)), high = low;
  high[static_cast<size_t>(axis)] = Dim(length - extent);
  return e.pad(x, e.scalar(e.element(x), 0), low, high);
}

void dft(NodeContext& n) {
  Emitter& e = n.e;
  const int64_t rank = n.rank(0);
  if (rank < 2) n.fail("needs an input of rank 2 or more");
  int64_t axis = n.opset() < 20 ? n.attr_int("axis", 1) : -2;
  if (n.opset() >= 20 && n.has(2)) {
    const Ints given = n.ints(2);
    if (given.size() != 1) n.fail("input 2, the axis, has to be one number");
    axis = given[0];
  }
  axis = n.axis(axis, rank);
  if (axis == rank - 1) n.fail("the axis cannot be that of real and imaginary parts");
  Transform t;
  t.inverse = n.attr_int("inverse", 0) != 0;
  t.one_sided = n.attr_int("onesided", 0) != 0;
  t.parts = parts_of(n, n.shape(0).back());
  ValueId x = n.input(0);
  const int64_t extent = constant_extent(n, e.extent(x, axis));
  t.length = n.has(1) ? constant_extent(n, n.dim(1)) : t.to_real() ? 2 * (extent - 1) : extent;
  x = fitted(n, x, axis, t.inputs());
  Ints order = counting(rank);
  std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(rank - 2)]);
  n.result(e.transpose(transformed(n, t, e.transpose(x, order)), order));
}

void stft(NodeContext& n) {
  Emitter& e = n.e;
  const bool flat = n.rank(0) == 2;
  if (!flat && n.rank(0) != 3) n.fail("needs a signal of rank 2 or 3");
  const ValueId signal = flat ? e.unsqueeze(n.input(0), 2) : n.input(0);
  Transform t;
  t.one_sided = n.attr_int("onesided", 1) != 0;
  t.parts = parts_of(n, e.extent(signal, 2));
  const int64_t step = constant_extent(n, n.dim(1));
  if (!n.has(2) && !n.has(3)) n.fail("needs a window or the length of a frame");
  t.length = n.has(3) ? constant_extent(n, n.dim(3)) : constant_extent(n, e.extent(n.input(2), 0));
  const int64_t samples = constant_extent(n, e.extent(signal, 1));
  if (step < 1 || t.length < 1 || t.length > samples) n.fail("no frame fits into the signal");
  const int64_t frames = (samples - t.length) / step + 1;
  Ints places;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t i = 0; i < t.length; ++i) places.push_back(frame * step + i);
  }
  ValueId x = e.take(signal, e.constant(Literal::from_ints({frames, t.length}, places)), 1);
  if (n.has(2)) {
    const ValueId window = e.cast(n.input(2), e.element(x));
    if (e.rank(window) != 1 || !(e.extent(window, 0) == Dim(t.length))) {
      n.fail("the window has another length than a frame");
    }
    x = e.mul(x, e.broadcast_in(window, e.shape(x), {2}));
  }
  n.result(transformed(n, t, x));
}

double constant_number(const NodeContext& n, size_t input) {
  const std::optional<double> value = n.known_number(input);
  if (!value) {
    n.fail(
        fmt::format("input {} (\"{}\") has to be one number that is known beforehand; make it an "
                    "initializer",
                    input, n.input_name(input)));
  }
  return *value;
}

/// MelWeightMatrix-17: a triangle of height 1 per band, over the bins of a spectrum.
void mel_weight_matrix(NodeContext& n) {
  const double bands = constant_number(n, 0), length = constant_number(n, 1);
  if (!(bands >= 1 && bands <= kLongest && length >= 1 && length <= kLongest)) {
    n.fail(fmt::format("{} bands of a transform of {} elements are not supported; 1 to {} are",
                       bands, length, kLongest));
  }
  const double rate = constant_number(n, 2);
  const auto mel = [&](size_t i) { return 2595 * std::log10(1 + constant_number(n, i) / 700); };
  const double low = mel(3), step = (mel(4) - low) / (bands + 2);
  const auto edge_of = [&](int64_t i) {
    const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    return std::floor((length + 1) * hertz / rate);
  };
  const int64_t rows = static_cast<int64_t>(length) / 2 + 1, columns = static_cast<int64_t>(bands);
  // Also false where one of them is no number.
  if (!(edge_of(0) >= 0 && step >= 0 && edge_of(columns + 1) < static_cast<double>(rows))) {
    n.fail("the edges in hertz have to rise and to lie between 0 and half of the sample rate");
  }
  std::vector<double> values(static_cast<size_t>(rows * columns));
  for (int64_t band = 0; band < columns; ++band) {
    const double first = edge_of(band), peak = edge_of(band + 1), last = edge_of(band + 2);
    for (int64_t row = 0; row < rows; ++row) {
      // Either side may have no length, and the peak counts 1 in any case.
      const double at = static_cast<double>(row);
      double& value = values[static_cast<size_t>(row * columns + band)];
      if (at == peak) value = 1;
      if (at > first && at < peak) value = (at - first) / (peak - first);
      if (at > peak && at < last) value = (last - at) / (last - peak);
    }
  }
  const ElementType element = n.attr_element("output_datatype", ElementType::f32);
  n.result(n.e.constant(Literal::from_doubles(element, {rows, columns}, values)));
}

const OperatorRule kRules[] = {
    {"DFT", 17, 19, 1, 2, dft, "axis:i inverse:i onesided:i"},
    {"DFT", 20, kNewestOpset, 1, 3, dft, "inverse:i onesided:i"},
    {"STFT", 17, kNewestOpset, 2, 4, stft, "onesided:i"},
    {"MelWeightMatrix", 17, kNewestOpset, 5, 5, mel_weight_matrix, "output_datatype:i"},
};

}  // namespace

std::span<const OperatorRule> spectrum_rules() { return kRules; }

}  // namespace backcast
