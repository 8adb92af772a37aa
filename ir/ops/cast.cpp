// cast: the same number in another element type. Float to integer truncates toward zero, or rounds
// to nearest even where asked to, and saturates, NaN gives 0; integer to integer wraps around;
// anything to bool is x != 0; to a float rounds once to the nearest, halves to even.
#include <limits>

#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

template <class T>
T saturated(double x, Rounding rounding) {
  if (std::isnan(x)) return T{0};
  const double whole = rounding == Rounding::nearest_even ? std::nearbyint(x) : std::trunc(x);
  // 2^digits is exact in double, the maximum of a 64-bit type is not.
  if (whole >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
    return std::numeric_limits<T>::max();
  }
  if (whole < static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(whole);
}

/// An integer as a double rounded to odd: bits that get lost leave the last kept bit set, so that
/// rounding once more, to a narrower type, rounds correctly.
template <class T>
double rounded_to_odd(T x) {
  const bool negative = x < T{0};
  uint64_t magnitude = static_cast<uint64_t>(x);
  if (negative) magnitude = ~magnitude + 1;
  constexpr uint64_t kLost = (uint64_t{1} << 11) - 1;
  if (magnitude >> 53 != 0 && (magnitude & kLost) != 0)
    magnitude = (magnitude & ~kLost) | (kLost + 1);
  const double value = static_cast<double>(magnitude);
  return negative ? -value : value;
}

template <class From, class To>
typename To::Stored convert(typename From::Value x, Rounding rounding) {
  using T = typename To::Value;
  if constexpr (To::kKind == kBool) {
    return To::store(x != typename From::Value{0});
  } else if constexpr (To::kKind == kFloat) {
    if constexpr (From::kKind == kInteger && !std::is_same_v<typename To::Stored, double>) {
      return To::store(rounded_to_odd(x));
    }
    return To::store(static_cast<double>(x));
  } else if constexpr (From::kKind == kFloat) {
    return To::store(saturated<T>(x, rounding));
  } else {
    return To::store(static_cast<T>(x));
  }
}

Type infer_cast(const InferContext& context) {
  return TensorType{context.attrs.as<CastAttrs>().to, context.tensor(0).shape};
}

Value evaluate_cast(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  const CastAttrs& attrs = context.node.attrs.as<CastAttrs>();
  const ElementType target = attrs.to;
  if (target == x.element()) return x;
  ResultBuffer result(target, x.shape());
  const int64_t count = result.count();
  visit_codec(x.element(), [&](auto from_codec) {
    visit_codec(target, [&](auto to_codec) {
      using From = decltype(from_codec);
      using To = decltype(to_codec);
      const typename From::Stored* from = x.data<typename From::Stored>();
      typename To::Stored* to = result.data<typename To::Stored>();
      for (int64_t i = 0; i < count; ++i)
        to[i] = convert<From, To>(From::load(from[i]), attrs.rounding);
    });
  });
  return result.finish();
}

std::vector<Adjoint> gradient_of_cast(GradientContext& context) {
  const ElementType from = context.type(0).element;
  if (!is_float(from)) return {};
  return {backcast::cast(Val(context.builder, context.seed()), from)};
}

}  // namespace

const OpDef cast = {
    .name = "cast",
    .documentation =
        "The same numbers in another element type: floats truncate (or round to the nearest even, "
        "where `rounding` says so) and saturate to integers, "
        "integers wrap around, x != 0 is a bool, and floats round to the nearest even.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = CastAttrs{},
    .infer = infer_cast,
    .evaluate = evaluate_cast,
    .gradient = gradient_of_cast,
};

}  // namespace backcast::ops
