// See weights.h.
#include "passes/winograd/weights.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/winograd/transform.h"

namespace backcast {

WinogradWeights::WinogradWeights(const WinogradConv& conv, const loop::Kernel& layer,
                                 Literal values)
    : values_(std::move(values)) {
  const loop::Expr flat =
      loop::flat_index(layer.find(conv.factor)->shape, conv.factor_access->args);
  std::map<std::string, int64_t> zeros;
  for (const loop::Axis& axis : conv.definition.axes) zeros[axis.name] = 0;
  for (const loop::Axis& axis : conv.definition.reduce_axes) zeros[axis.name] = 0;
  origin_ = *evaluate(flat, zeros);
  const auto step = [&](const std::string& axis) {
    return axis.empty() ? 0 : *coefficient(flat, axis);
  };
  feature_ = step(conv.feature);
  channel_ = step(conv.channel);
  row_ = step(conv.rows.kernel_axis);
  column_ = step(conv.columns.kernel_axis);
}

WinogradWeights::WinogradWeights(const WinogradConv& conv)
    : feature_(conv.channels * 9), channel_(9), row_(3), column_(1) {
  RandomNumbers numbers;
  std::vector<double> values(static_cast<size_t>(conv.features * conv.channels * 9));
  for (double& value : values) value = numbers.next();
  values_ = Literal::from_doubles(ElementType::f64, {conv.features, conv.channels, 3, 3}, values);
}

int weight_scale(const WinogradConv& conv) {
  return conv.is_exact() ? 4 : 1;  // halves in two dimensions
}

bool sums_fit(const WinogradConv& conv, const WinogradWeights& weights) {
  constexpr int m = 2, kFrequencies = (m + 2) * (m + 2);
  // Four bytes make up an element of the spectrum, nine products a result.
  const double value = 4 * (conv.stored == loop::Scalar::u8 ? 255 : 128), together = 9;
  for (int64_t f = 0; f < conv.features; ++f) {
    double sums[kFrequencies] = {};
    for (int64_t c = 0; c < conv.channels; ++c) {
      double taps[kFrequencies];
      transform_taps(conv, weights, m, f, c, taps);
      for (int i = 0; i < kFrequencies; ++i) {
        if (std::abs(taps[i]) > 0x7fff) return false;
        sums[i] += std::abs(taps[i]);
      }
    }
    if (*std::max_element(std::begin(sums), std::end(sums)) * value * together > 0x7fffffff) {
      return false;
    }
  }
  return true;
}

void transform_taps(const WinogradConv& conv, const WinogradWeights& weights, int m,
                    int64_t feature, int64_t channel, double* values) {
  double taps[9];
  for (int i = 0; i < 9; ++i) {
    taps[i] = weight_scale(conv) * weights.at(feature, channel, i / 3, i % 3);
  }
  NumberOps<double> ops;
  both_ways(3, frequencies(m), taps, values, ops,
            [&](const double* g, double* u, auto& o) { weight_transform(m, g, u, o); });
}

namespace {

/// Channels c and c + 2 of four are the halves of a word, as words.h takes bytes apart.
Literal in_words(const std::vector<double>& values, int64_t planes, const WinogradConv& conv) {
  std::vector<double> words(values.size() / 2);
  const auto half = [&](int64_t plane, int64_t c, int64_t f) {
    const int64_t at = (plane * conv.channels + c) * conv.features + f;
    return static_cast<uint32_t>(static_cast<int64_t>(values[static_cast<size_t>(at)]));
  };
  size_t next = 0;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t w = 0; w < conv.channels / 2; ++w) {
      const int64_t c = w / 2 * 4 + w % 2;
      for (int64_t f = 0; f < conv.features; ++f) {
        const uint32_t word = (half(plane, c, f) & 0xffff) | half(plane, c + 2, f) << 16;
        words[next++] = static_cast<int32_t>(word);
      }
    }
  }
  return Literal::from_doubles(ElementType::i32, {planes, conv.channels / 2, conv.features}, words);
}

}  // namespace

Literal transformed_weights(const WinogradConv& conv, const WinogradWeights& weights, int m) {
  const int planes = frequencies(m) * frequencies(m);
  const int64_t plane = conv.channels * conv.features;
  std::vector<double> values(static_cast<size_t>(planes * plane));
  for (int64_t c = 0; c < conv.channels; ++c) {
    for (int64_t f = 0; f < conv.features; ++f) {
      double taps[kMostFrequencies * kMostFrequencies];
      transform_taps(conv, weights, m, f, c, taps);
      for (int i = 0; i < planes; ++i) {
        values[static_cast<size_t>(i * plane + c * conv.features + f)] = taps[i];
      }
    }
  }
  if (conv.word > 1) return in_words(values, planes, conv);
  return Literal::from_doubles(loop::element_of(conv.spectrum()),
                               {planes, conv.channels, conv.features}, values);
}

loop::Kernel weight_kernel(const WinogradConv& conv, const loop::Kernel& layer,
                           const WinogradForm& form, bool use_fma) {
  using loop::Expr;
  loop::Definition definition;
  std::map<std::string, Expr> place;
  const auto axis = [&](const std::string& of_layer, const std::string& name, int64_t extent) {
    if (of_layer.empty()) return Expr(0);
    definition.axes.push_back({name, Expr(extent)});
    return place[of_layer] = loop::var(name);
  };
  const Expr channel = axis(conv.channel, "c", conv.channels);
  const Expr feature = axis(conv.feature, "o", conv.features);
  Expr taps[9], values[kMostFrequencies * kMostFrequencies];
  for (int i = 0; i < 9; ++i) {
    place[conv.rows.kernel_axis] = Expr(i / 3);
    place[conv.columns.kernel_axis] = Expr(i % 3);
    taps[i] = loop::simplify(loop::substitute(conv.factor_access, place));
  }
  ExprOps ops{{conv.scalar, 1}, use_fma};
  both_ways(3, frequencies(form.m), taps, values, ops,
            [&](const Expr* g, Expr* u, auto& o) { weight_transform(form.m, g, u, o); });
  for (int i = 0; i < form.frequencies(); ++i) {
    definition.outputs.push_back({kFilter, {Expr(i), channel, feature}, values[i]});
  }
  loop::Kernel kernel;
  kernel.locs = layer.locs;
  kernel.buffers.push_back(*layer.find(conv.factor));
  kernel.buffers.back().mode = loop::AccessMode::read;
  kernel.buffers.push_back(matrices_param(kFilter, conv, form, loop::AccessMode::write));
  kernel.body = loop::define(std::move(definition));
  return kernel;
}

}  // namespace backcast
