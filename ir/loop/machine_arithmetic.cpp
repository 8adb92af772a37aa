// Arithmetic of the interpreter's machine: every operation on every type, exactly as expr.h says.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/graph/element_type.h"
#include "ir/loop/machine.h"

namespace backcast::loop::machine {
namespace {

template <class T>
T get(const Slot& slot) {
  T value;
  std::memcpy(&value, &slot, sizeof(T));
  return value;
}
template <class T>
void set(Slot& slot, T value) {
  std::memcpy(&slot, &value, sizeof(T));
}

template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

/// Division by zero and remainders as expr.h says for the interpreter.
template <Op op, class T>
T divide(T a, T b) {
  if (b == 0) return op == Op::div || op == Op::floor_div ? T{0} : a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) {
      const bool quotient = op == Op::div || op == Op::floor_div;
      return quotient ? static_cast<T>(0 - static_cast<uint64_t>(a)) : T{0};
    }
    const bool inexact = a % b != 0 && (a < 0) != (b < 0);
    if (op == Op::floor_div) return static_cast<T>(a / b - (inexact ? 1 : 0));
    if (op == Op::floor_mod) return static_cast<T>(a % b + (inexact ? b : 0));
  }
  return static_cast<T>(op == Op::div || op == Op::floor_div ? a / b : a % b);
}

/// Each operand as two i16; the sum wraps.
int32_t pair_product(int32_t a, int32_t b) {
  const auto low = [](int32_t word) { return static_cast<int64_t>(static_cast<int16_t>(word)); };
  const int64_t high = static_cast<int64_t>(a >> 16) * (b >> 16);
  return static_cast<int32_t>(low(a) * low(b) + high);
}

/// Four bytes of a type times four signed ones.
template <class Byte>
int32_t byte_product(int32_t a, int32_t b) {
  int32_t sum = 0;
  for (int bits = 0; bits < 32; bits += 8) {
    sum += static_cast<Byte>(a >> bits) * static_cast<int8_t>(b >> bits);
  }
  return sum;
}

/// Two bytes of a word, each as i16: `lowest` and the one two above it.
int32_t byte_pair(uint32_t word, int lowest) {
  const auto half = [word](int byte) {
    return static_cast<uint16_t>(static_cast<int8_t>(word >> (8 * byte)));
  };
  return static_cast<int32_t>(static_cast<uint32_t>(half(lowest + 2)) << 16 | half(lowest));
}

template <Op op, class T>
T integer(T a, T b) {
  const uint64_t ua = static_cast<uint64_t>(a);
  const uint64_t ub = static_cast<uint64_t>(b);
  constexpr uint64_t kWidth = 8 * sizeof(T);
  if constexpr (op == Op::add) return static_cast<T>(ua + ub);
  if constexpr (op == Op::sub) return static_cast<T>(ua - ub);
  if constexpr (op == Op::mul) return static_cast<T>(ua * ub);
  if constexpr (op >= Op::div && op <= Op::floor_mod) return divide<op, T>(a, b);
  if constexpr (op == Op::bit_and) return static_cast<T>(ua & ub);
  if constexpr (op == Op::bit_or) return static_cast<T>(ua | ub);
  if constexpr (op == Op::bit_xor) return static_cast<T>(ua ^ ub);
  if constexpr (op == Op::shl) return static_cast<T>(ub < kWidth ? ua << ub : 0);
  if constexpr (op == Op::shr) return static_cast<T>(ub < kWidth ? a >> ub : 0);
  if constexpr (op == Op::mul_high) {
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> kWidth);
  }
  if constexpr (op == Op::dot2) return pair_product(a, b);
  if constexpr (op == Op::dot4) return byte_product<uint8_t>(a, b);
  if constexpr (op == Op::dot4_signed) return byte_product<int8_t>(a, b);
  return T{0};
}

template <Op op, class T>
auto apply(T a, T b) {
  if constexpr (op == Op::min) {
    return a < b ? a : b;
  } else if constexpr (op == Op::max) {
    return a > b ? a : b;
  } else if constexpr (op == Op::eq) {
    return static_cast<uint8_t>(a == b);
  } else if constexpr (op == Op::ne) {
    return static_cast<uint8_t>(a != b);
  } else if constexpr (op == Op::lt) {
    return static_cast<uint8_t>(a < b);
  } else if constexpr (op == Op::le) {
    return static_cast<uint8_t>(a <= b);
  } else if constexpr (op == Op::gt) {
    return static_cast<uint8_t>(a > b);
  } else if constexpr (op == Op::ge) {
    return static_cast<uint8_t>(a >= b);
  } else if constexpr (std::is_integral_v<T>) {
    return integer<op, T>(a, b);
  } else if constexpr (op == Op::add) {
    return a + b;
  } else if constexpr (op == Op::sub) {
    return a - b;
  } else if constexpr (op == Op::mul) {
    return a * b;
  } else {
    return a / b;
  }
}

template <Op op, class T>
const Instruction* run_binary(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    set(f.slots[i->to + lane],
        apply<op, T>(get<T>(f.slots[i->a + lane]), get<T>(f.slots[i->b + lane])));
  }
  return i + 1;
}

template <Op op, class T>
const Instruction* run_reduction(Frame& f, const Instruction* i) {
  Slot* to = f.slots + i->to;
  for (int64_t lane = 0; lane < i->number; ++lane) to[lane] = f.slots[i->a + lane];
  for (int64_t half = i->number / 2; half >= 1; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) {
      set(to[lane], apply<op, T>(get<T>(to[lane]), get<T>(to[lane + half])));
    }
  }
  return i + 1;
}

/// Which template takes the operation.
struct BinaryRun {
  template <Op op, class T>
  static constexpr Run value = run_binary<op, T>;
};
struct ReductionRun {
  template <Op op, class T>
  static constexpr Run value = run_reduction<op, T>;
};

template <class Which, class T>
Run common_operation(Op op) {
  switch (op) {
    case Op::add:
      return Which::template value<Op::add, T>;
    case Op::sub:
      return Which::template value<Op::sub, T>;
    case Op::mul:
      return Which::template value<Op::mul, T>;
    case Op::div:
      return Which::template value<Op::div, T>;
    case Op::min:
      return Which::template value<Op::min, T>;
    case Op::max:
      return Which::template value<Op::max, T>;
    default:
      return nullptr;
  }
}

template <class Which, class T>
Run integer_operation(Op op) {
  switch (op) {
    case Op::rem:
      return Which::template value<Op::rem, T>;
    case Op::floor_div:
      return Which::template value<Op::floor_div, T>;
    case Op::floor_mod:
      return Which::template value<Op::floor_mod, T>;
    case Op::bit_and:
      return Which::template value<Op::bit_and, T>;
    case Op::bit_or:
      return Which::template value<Op::bit_or, T>;
    case Op::bit_xor:
      return Which::template value<Op::bit_xor, T>;
    case Op::shl:
      return Which::template value<Op::shl, T>;
    case Op::shr:
      return Which::template value<Op::shr, T>;
    case Op::mul_high:
      return Which::template value<Op::mul_high, T>;
    case Op::dot2:
    case Op::dot4:
    case Op::dot4_signed:
      // Elsewhere their templates must not exist: the operands are words.
      if constexpr (std::is_same_v<T, int32_t>) {
        return op == Op::dot2   ? Which::template value<Op::dot2, T>
               : op == Op::dot4 ? Which::template value<Op::dot4, T>
                                : Which::template value<Op::dot4_signed, T>;
      }
      return nullptr;
    default:
      return nullptr;
  }
}

template <class T>
Run comparison(Op op) {
  switch (op) {
    case Op::eq:
      return run_binary<Op::eq, T>;
    case Op::ne:
      return run_binary<Op::ne, T>;
    case Op::lt:
      return run_binary<Op::lt, T>;
    case Op::le:
      return run_binary<Op::le, T>;
    case Op::gt:
      return run_binary<Op::gt, T>;
    case Op::ge:
      return run_binary<Op::ge, T>;
    default:
      return nullptr;
  }
}

template <class Which, class T>
Run operation(Op op) {
  if (const Run run = common_operation<Which, T>(op)) return run;
  if constexpr (std::is_integral_v<T>) return integer_operation<Which, T>(op);
  return nullptr;
}

template <class T>
T negate(T a) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - static_cast<uint64_t>(a));
  return -a;
}

template <class T>
T magnitude(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
  if constexpr (std::is_signed_v<T>) return a < 0 ? negate(a) : a;
  return a;
}

template <Op op, class T>
auto apply_unary(T a) {
  if constexpr (op == Op::neg) {
    return negate(a);
  } else if constexpr (op == Op::abs) {
    return magnitude(a);
  } else if constexpr (op == Op::bit_not) {
    return static_cast<T>(~static_cast<uint64_t>(a));
  } else if constexpr (op == Op::even_bytes || op == Op::odd_bytes) {
    return byte_pair(static_cast<uint32_t>(a), op == Op::odd_bytes ? 1 : 0);
  } else if constexpr (op == Op::trailing_zeros) {
    return static_cast<T>(std::countr_zero(a));
  } else if constexpr (op == Op::sqrt) {
    return std::sqrt(a);
  } else if constexpr (op == Op::floor) {
    return std::floor(a);
  } else if constexpr (op == Op::ceil) {
    return std::ceil(a);
  } else if constexpr (op == Op::trunc) {
    return std::trunc(a);
  } else if constexpr (op == Op::round_even) {
    return std::nearbyint(a);
  } else if constexpr (op == Op::nearest) {
    return static_cast<int32_t>(std::nearbyint(a));
  } else {
    return static_cast<uint8_t>(std::isnan(a));
  }
}

template <Op op, class T>
const Instruction* run_unary(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    set(f.slots[i->to + lane], apply_unary<op, T>(get<T>(f.slots[i->a + lane])));
  }
  return i + 1;
}

const Instruction* run_bool_not(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    set(f.slots[i->to + lane], static_cast<uint8_t>(get<uint8_t>(f.slots[i->a + lane]) == 0));
  }
  return i + 1;
}

/// `number`: of lanes.
const Instruction* run_lane_bits(Frame& f, const Instruction* i) {
  uint64_t bits = 0;
  for (int64_t lane = 0; lane < i->number; ++lane) {
    bits |= uint64_t{get<uint8_t>(f.slots[i->a + lane]) != 0} << lane;
  }
  set(f.slots[i->to], bits);
  return i + 1;
}

template <class T>
Run unary_operation(Op op) {
  if (op == Op::neg) return run_unary<Op::neg, T>;
  if (op == Op::abs) return run_unary<Op::abs, T>;
  if constexpr (std::is_same_v<T, int32_t>) {
    if (op == Op::even_bytes) return run_unary<Op::even_bytes, T>;
    if (op == Op::odd_bytes) return run_unary<Op::odd_bytes, T>;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (op == Op::nearest) return run_unary<Op::nearest, T>;
  }
  if constexpr (std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>) {
    if (op == Op::trailing_zeros) return run_unary<Op::trailing_zeros, T>;
  }
  if constexpr (std::is_integral_v<T>) {
    return op == Op::bit_not ? run_unary<Op::bit_not, T> : nullptr;
  } else {
    switch (op) {
      case Op::sqrt:
        return run_unary<Op::sqrt, T>;
      case Op::floor:
        return run_unary<Op::floor, T>;
      case Op::ceil:
        return run_unary<Op::ceil, T>;
      case Op::trunc:
        return run_unary<Op::trunc, T>;
      case Op::round_even:
        return run_unary<Op::round_even, T>;
      case Op::is_nan:
        return run_unary<Op::is_nan, T>;
      default:
        return nullptr;
    }
  }
}

/// f with a value of the type that computes on `scalar`; null for f16 and bf16, which do not.
template <class F>
Run with_type(Scalar scalar, F&& f) {
  if (is_half(scalar)) return nullptr;
  if (scalar == Scalar::index) return f(int64_t{});
  if (scalar == Scalar::boolean) return f(uint8_t{});
  return visit_compute_type(element_of(scalar), [&](auto value) -> Run {
    if constexpr (std::is_same_v<decltype(value), bool>) {
      return nullptr;
    } else {
      return f(value);
    }
  });
}

template <class T>
const Instruction* run_fma(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    set(f.slots[i->to + lane], std::fma(get<T>(f.slots[i->a + lane]), get<T>(f.slots[i->b + lane]),
                                        get<T>(f.slots[i->c + lane])));
  }
  return i + 1;
}

template <class T>
const Instruction* run_ramp(Frame& f, const Instruction* i) {
  const T base = get<T>(f.slots[i->a]);
  const T stride = get<T>(f.slots[i->b]);
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    set(f.slots[i->to + lane],
        apply<Op::add, T>(base, apply<Op::mul, T>(static_cast<T>(lane), stride)));
  }
  return i + 1;
}

}  // namespace

Run unary_of(Op op, Scalar scalar) {
  if (scalar == Scalar::boolean) {
    return op == Op::bit_not ? run_bool_not : op == Op::lane_bits ? run_lane_bits : nullptr;
  }
  return with_type(scalar, [op](auto v) { return unary_operation<decltype(v)>(op); });
}

Run binary_of(Op op, Scalar scalar) {
  return with_type(scalar, [op](auto v) -> Run {
    if (is_comparison(op)) return comparison<decltype(v)>(op);
    return operation<BinaryRun, decltype(v)>(op);
  });
}

Run reduction_of(Op op, Scalar scalar) {
  return with_type(scalar, [op](auto v) { return operation<ReductionRun, decltype(v)>(op); });
}

Run fma_of(Scalar scalar) {
  return scalar == Scalar::f32 ? run_fma<float> : scalar == Scalar::f64 ? run_fma<double> : nullptr;
}

Run ramp_of(Scalar scalar) {
  return with_type(scalar, [](auto v) -> Run { return run_ramp<decltype(v)>; });
}

}  // namespace backcast::loop::machine
