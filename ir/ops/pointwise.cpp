// See pointwise.h.
#include "ir/ops/pointwise.h"

#include <algorithm>
#include <iterator>

#include "ir/ops/ops.h"

namespace backcast::ops {

bool is_pointwise(const OpDef& op) {
  static const OpDef* const pointwise[] = {
      &ops::neg,          &ops::abs,    &ops::sign,    &ops::sqrt,       &ops::exp,
      &ops::log,          &ops::sin,    &ops::cos,     &ops::tan,        &ops::asin,
      &ops::acos,         &ops::atan,   &ops::sinh,    &ops::cosh,       &ops::asinh,
      &ops::acosh,        &ops::atanh,  &ops::tanh,    &ops::erf,        &ops::relu,
      &ops::floor,        &ops::ceil,   &ops::sigmoid, &ops::round_even, &ops::cast,
      &ops::add,          &ops::sub,    &ops::mul,     &ops::div,        &ops::mod,
      &ops::rem,          &ops::pow,    &ops::min,     &ops::max,        &ops::bit_not,
      &ops::bit_and,      &ops::bit_or, &ops::bit_xor, &ops::shift_left, &ops::shift_right,
      &ops::compare,      &ops::select, &ops::clamp,   &ops::is_nan,     &ops::is_inf,
      &ops::stop_gradient};
  return std::find(std::begin(pointwise), std::end(pointwise), &op) != std::end(pointwise);
}

}  // namespace backcast::ops
