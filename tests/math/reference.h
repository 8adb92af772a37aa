// What the math functions should return, from the host's libm in a wider format, and errors in ULP.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace backcast::testing {

/// Functions of one argument by name without type. Wide: double for f32, long double for f64.
template <class Wide>
using Reference = Wide (*)(Wide);

template <class Wide>
Wide reference_sigmoid(Wide x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

template <class Wide>
const std::map<std::string, Reference<Wide>>& references() {
  static const std::map<std::string, Reference<Wide>> table = {
      {"exp", std::exp},     {"expm1", std::expm1}, {"log", std::log},
      {"log1p", std::log1p}, {"sin", std::sin},     {"cos", std::cos},
      {"tan", std::tan},     {"asin", std::asin},   {"acos", std::acos},
      {"atan", std::atan},   {"sinh", std::sinh},   {"cosh", std::cosh},
      {"asinh", std::asinh}, {"acosh", std::acosh}, {"atanh", std::atanh},
      {"tanh", std::tanh},   {"erf", std::erf},     {"sigmoid", reference_sigmoid<Wide>},
  };
  return table;
}

/// sin, cos and tan are specified for this range of arguments only.
inline bool in_domain(const std::string& name, double x) {
  const bool angle = name == "sin" || name == "cos" || name == "tan";
  return !angle || !(std::fabs(x) > 1e5) || std::isinf(x);
}

/// |got - want| in units of the last place that `want` has in Real. Two NaN agree, a lone one is
/// infinitely wrong; infinity counts as the next power of two, so overflow is judged like the rest.
template <class Real, class Wide>
double ulp_error(Real got, Wide want) {
  using Limits = std::numeric_limits<Real>;
  if (std::isnan(want) || std::isnan(got)) {
    return std::isnan(want) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  }
  const Wide beyond = std::ldexp(Wide{1}, Limits::max_exponent);
  const auto capped = [&](Wide v) { return std::max(-beyond, std::min(beyond, v)); };
  const Wide difference = std::fabs(capped(got) - capped(want));
  if (difference == 0) return 0;
  const int lowest = Limits::min_exponent - Limits::digits;
  int exponent = lowest;
  if (want != 0) {
    exponent = std::max(
        lowest, std::min(std::ilogb(want), Limits::max_exponent - 1) - (Limits::digits - 1));
  }
  return static_cast<double>(std::ldexp(difference, -exponent));
}

template <class Real>
struct Pairs {
  std::vector<Real> x, y;
  void add(Real a, Real b) { x.push_back(a), y.push_back(b); }
};

/// Arguments of pow whose results cover the whole range evenly; a third of the bases close to one.
template <class Real>
Pairs<Real> pow_arguments(int64_t count) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> unit(-1, 1);
  const double range = std::numeric_limits<Real>::max_exponent;
  const double shapes[] = {1, 9, 25};
  Pairs<Real> pairs;
  for (int64_t i = 0; i < count; ++i) {
    const Real x = static_cast<Real>(std::exp2(range * std::pow(unit(random), shapes[i % 3])));
    if (!(x > 0) || std::isinf(x) || x == 1) continue;
    pairs.add(x, static_cast<Real>(1.2 * range * unit(random) / std::log2(x)));
  }
  return pairs;
}

}  // namespace backcast::testing
