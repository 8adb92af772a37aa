// Elementwise operators in a few lines each: a shape rule and an evaluation per number of operands,
// made from a function object on numbers (bool, an integer type, or double for every float type).
#pragma once

#include <cmath>

#include "ir/ops/element_codec.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {

/// a - b · trunc(a / b); an integer divisor of zero gives 0.
template <class T>
T remainder_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0) return T{0};
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return T{0};  // the lowest integer % -1 traps
    }
    return static_cast<T>(a % b);
  }
}

/// The operand's type.
template <unsigned kinds>
Type infer_unary(const InferContext& context) {
  return require_kind(context, 0, kinds);
}

/// bool in the operand's shape.
template <unsigned kinds>
Type infer_predicate(const InferContext& context) {
  return TensorType{ElementType::boolean, require_kind(context, 0, kinds).shape};
}

/// Two operands of one type, which is the result's.
template <unsigned kinds>
Type infer_binary(const InferContext& context) {
  require_kind(context, 0, kinds);
  require_same_type(context, 1, 0);
  return context.tensor(0);
}

/// result[i] = F(x[i])
template <unsigned kinds, class F>
Value evaluate_unary(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  ResultBuffer result(x.element(), x.shape());
  visit_codec_of<kinds>(x.element(), [&](auto codec) {
    using Codec = decltype(codec);
    const typename Codec::Stored* from = x.data<typename Codec::Stored>();
    typename Codec::Stored* to = result.data<typename Codec::Stored>();
    const int64_t count = result.count();
    for (int64_t i = 0; i < count; ++i) {
      to[i] = Codec::store(static_cast<typename Codec::Value>(F{}(Codec::load(from[i]))));
    }
  });
  return result.finish();
}

/// result[i] = predicate(x[i]), a bool
template <unsigned kinds, class F>
Value evaluate_predicate(const Literal& x, const F& predicate) {
  ResultBuffer result(ElementType::boolean, x.shape());
  visit_codec_of<kinds>(x.element(), [&](auto codec) {
    using Codec = decltype(codec);
    const typename Codec::Stored* from = x.data<typename Codec::Stored>();
    uint8_t* to = result.data<uint8_t>();
    const int64_t count = result.count();
    for (int64_t i = 0; i < count; ++i) to[i] = predicate(Codec::load(from[i])) ? 1 : 0;
  });
  return result.finish();
}

/// result[i] = F(a[i], b[i])
template <unsigned kinds, class F>
Value evaluate_binary(const EvalContext& context) {
  const Literal& a = context.tensor(0);
  const Literal& b = context.tensor(1);
  ResultBuffer result(a.element(), a.shape());
  visit_codec_of<kinds>(a.element(), [&](auto codec) {
    using Codec = decltype(codec);
    const typename Codec::Stored* from_a = a.data<typename Codec::Stored>();
    const typename Codec::Stored* from_b = b.data<typename Codec::Stored>();
    typename Codec::Stored* to = result.data<typename Codec::Stored>();
    const int64_t count = result.count();
    for (int64_t i = 0; i < count; ++i) {
      const typename Codec::Value value =
          static_cast<typename Codec::Value>(F{}(Codec::load(from_a[i]), Codec::load(from_b[i])));
      to[i] = Codec::store(value);
    }
  });
  return result.finish();
}

}  // namespace backcast::ops
