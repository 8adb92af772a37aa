// Conversions of the interpreter's machine.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/graph/element_type.h"
#include "ir/loop/machine.h"

namespace backcast::loop::machine {
namespace {

// How a slot's bytes are to be read: these have no C++ type of their own.
struct Bool {
  uint8_t value;
};
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

float widened(Half h) { return f32_from_f16(h.bits); }
float widened(Brain b) { return f32_from_bf16(b.bits); }
bool widened(Bool b) { return b.value != 0; }
template <class T>
T widened(T value) {
  return value;
}

/// Truncates; values out of range saturate and NaN gives 0, to have a defined result at all.
template <class To, class From>
To to_integer(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(value)) return 0;
    const From truncated = std::trunc(value);
    if (truncated >= std::ldexp(From{1}, std::numeric_limits<To>::digits)) {
      return std::numeric_limits<To>::max();
    }
    if (truncated < static_cast<From>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
    return static_cast<To>(truncated);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(value != From{0})};
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Brain>) {
    constexpr bool kHalf = std::is_same_v<To, Half>;
    if constexpr (std::is_same_v<From, float>) {
      return {kHalf ? f16_from_f32(value) : bf16_from_f32(value)};
    } else {
      const double wide = static_cast<double>(value);
      return {kHalf ? f16_from_f64(wide) : bf16_from_f64(wide)};
    }
  } else if constexpr (std::is_integral_v<To>) {
    return to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
const Instruction* run_cast(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    From from;
    std::memcpy(&from, f.slots + i->a + lane, sizeof(From));
    const To to = converted<To>(widened(from));
    std::memcpy(f.slots + i->to + lane, &to, sizeof(To));
  }
  return i + 1;
}

template <class F>
Run with_storage_type(Scalar scalar, F&& f) {
  switch (scalar) {
    case Scalar::boolean:
      return f(Bool{});
    case Scalar::f16:
      return f(Half{});
    case Scalar::bf16:
      return f(Brain{});
    case Scalar::index:
      return f(int64_t{});
    default:
      break;
  }
  return visit_compute_type(element_of(scalar), [&](auto value) -> Run {
    if constexpr (std::is_same_v<decltype(value), bool>) {
      return nullptr;
    } else {
      return f(value);
    }
  });
}

}  // namespace

Run cast_of(Scalar from, Scalar to) {
  return with_storage_type(from, [to](auto a) {
    return with_storage_type(to, [](auto b) -> Run { return run_cast<decltype(a), decltype(b)>; });
  });
}

}  // namespace backcast::loop::machine
