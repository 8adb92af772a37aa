// Constants as C literals (operations.h): shortest decimal digits that read back to the same bits.
#include <cmath>

#include "backend/c/operations.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {

using loop::Scalar;

namespace {

/// Digits that C reads as a floating constant.
std::string with_point(std::string digits) {
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}

template <class T>
std::string special_literal(T value, const char* suffix) {
  const std::string text = std::isnan(value) ? fmt::format("__builtin_nan{}(\"\")", suffix)
                                             : fmt::format("__builtin_inf{}()", suffix);
  return std::signbit(value) ? "(-" + text + ")" : text;
}

}  // namespace

std::string float_literal(float value) {
  if (!std::isfinite(value)) return special_literal(value, "f");
  return with_point(fmt::format("{}", value)) + "f";
}

std::string double_literal(double value) {
  if (!std::isfinite(value)) return special_literal(value, "");
  return with_point(fmt::format("{}", value));
}

std::string string_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '?';
    // Three octal digits, whatever follows; '?' might begin a trigraph.
    result += is_plain ? std::string(1, c)
                       : fmt::format("\\{:03o}", static_cast<unsigned>(static_cast<uint8_t>(c)));
  }
  return result + "\"";
}

std::string integer_literal(Scalar s, int64_t value) {
  switch (s) {
    case Scalar::boolean:
      return value != 0 ? "1" : "0";
    case Scalar::i8:
      return fmt::format("{}", static_cast<int8_t>(value));
    case Scalar::i16:
      return fmt::format("{}", static_cast<int16_t>(value));
    case Scalar::u8:
      return fmt::format("{}", static_cast<uint8_t>(value));
    case Scalar::u16:
      return fmt::format("{}", static_cast<uint16_t>(value));
    case Scalar::u32:
      return fmt::format("{}u", static_cast<uint32_t>(value));
    case Scalar::u64:
      return fmt::format("UINT64_C({})", static_cast<uint64_t>(value));
    case Scalar::i32: {
      const auto narrow = static_cast<int32_t>(value);
      return narrow == INT32_MIN ? "INT32_MIN" : fmt::format("{}", narrow);
    }
    case Scalar::i64:
      return value == INT64_MIN ? "INT64_MIN" : fmt::format("INT64_C({})", value);
    case Scalar::index:
      return value == INT64_MIN ? "PTRDIFF_MIN" : fmt::format("{}", value);
    default:
      BC_CHECK(false, "{} is no integer", loop::name_of(s));
  }
}

Text constant_text(Prelude& prelude, const loop::ExprNode& node) {
  const Scalar s = node.type.scalar;
  Text result;
  switch (s) {
    case Scalar::f32:
      result.text = float_literal(static_cast<float>(node.float_value));
      if (result.text[0] == '-') result.rank = kUnary;
      break;
    case Scalar::f64:
      result.text = double_literal(node.float_value);
      if (result.text[0] == '-') result.rank = kUnary;
      break;
    case Scalar::f16:
      result.text = fmt::format("0x{:04x}", f16_from_f64(node.float_value));
      break;
    case Scalar::bf16:
      result.text = fmt::format("0x{:04x}", bf16_from_f64(node.float_value));
      break;
    default:
      result.text = integer_literal(s, node.int_value);
      result.constant = node.int_value;
      if (result.text[0] == '-') result.rank = kUnary;
  }
  if (!node.type.is_vector()) return result;
  const std::optional<int64_t> value = result.constant;
  Text vector = broadcast_text(prelude, node.type, result);
  vector.constant = value;
  return vector;
}

}  // namespace backcast::c_backend
