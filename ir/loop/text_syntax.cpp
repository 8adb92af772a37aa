// Operators, keywords, names and numbers of the text form.
#include "ir/loop/text_syntax.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "ir/graph/element_text.h"
#include "ir/graph/scanner.h"

namespace backcast::loop {
namespace {

struct Row {
  Op op;
  Infix infix;
};
constexpr Row kInfix[] = {{Op::bit_or, {"|", 1}}, {Op::bit_xor, {"^", 2}}, {Op::bit_and, {"&", 3}},
                          {Op::eq, {"==", 4}},    {Op::ne, {"!=", 4}},     {Op::lt, {"<", 4}},
                          {Op::le, {"<=", 4}},    {Op::gt, {">", 4}},      {Op::ge, {">=", 4}},
                          {Op::shl, {"<<", 5}},   {Op::shr, {">>", 5}},    {Op::add, {"+", 6}},
                          {Op::sub, {"-", 6}},    {Op::mul, {"*", 7}}};

constexpr std::string_view kKeywords[] = {
    "if",      "then", "else", "true",   "false", "inf",       "nan",     "load",        "cast",
    "bitcast", "call", "ramp", "select", "fma",   "broadcast", "shuffle", "reduce_lanes"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Infix infix_of(Op op, Scalar operands) {
  const bool on_index = operands == Scalar::index;
  if (op == (on_index ? Op::floor_div : Op::div)) return {"/", 7};
  if (op == (on_index ? Op::floor_mod : Op::rem)) return {"%", 7};
  for (const Row& row : kInfix) {
    if (row.op == op) return row.infix;
  }
  return {};
}

Op op_of_sign(std::string_view sign, Scalar operands, int& precedence) {
  const bool on_index = operands == Scalar::index;
  precedence = 7;
  if (sign == "/") return on_index ? Op::floor_div : Op::div;
  if (sign == "%") return on_index ? Op::floor_mod : Op::rem;
  for (const Row& row : kInfix) {
    if (row.infix.sign != sign) continue;
    precedence = row.infix.precedence;
    return row.op;
  }
  precedence = 0;
  return Op::none;
}

Op op_of_name(std::string_view name) {
  for (int i = static_cast<int>(Op::neg); i <= static_cast<int>(Op::ge); ++i) {
    if (name_of(static_cast<Op>(i)) == name) return static_cast<Op>(i);
  }
  return Op::none;
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || !is_letter(name[0])) return false;
  for (size_t i = 1; i < name.size(); ++i) {
    const bool dot = name[i] == '.' && i + 1 < name.size() && name[i + 1] != '.';
    if (!is_letter(name[i]) && !is_digit(name[i]) && !dot) return false;
  }
  return true;
}

bool is_keyword(std::string_view word) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords) ||
         op_of_name(word) != Op::none;
}

std::string name_text(std::string_view name) {
  return is_plain_name(name) && !is_keyword(name) ? std::string(name) : quote(name);
}

std::string value_text(const ExprNode& constant) {
  const Scalar scalar = constant.type.scalar;
  if (scalar == Scalar::boolean) return constant.int_value != 0 ? "true" : "false";
  if (scalar == Scalar::u64) return std::to_string(static_cast<uint64_t>(constant.int_value));
  if (!is_float(scalar)) return std::to_string(constant.int_value);
  const double value = constant.float_value;
  if (scalar != Scalar::f32 || std::isnan(value)) return double_text(value);
  char buffer[32];
  const std::to_chars_result end =
      std::to_chars(buffer, std::end(buffer), static_cast<float>(value));
  return std::string(buffer, end.ptr);
}

bool float_from_text(Scalar scalar, std::string_view text, double& value) {
  if (!double_from_text(text, value)) return false;
  if (scalar == Scalar::f32 && std::isfinite(value)) {
    // Rounded once, not first to double.
    float single = 0;
    const std::from_chars_result end =
        std::from_chars(text.data(), text.data() + text.size(), single);
    if (end.ec != std::errc()) return false;
    value = single;
  }
  if (scalar == Scalar::f16 && !std::isnan(value)) value = f32_from_f16(f16_from_f64(value));
  if (scalar == Scalar::bf16 && !std::isnan(value)) value = f32_from_bf16(bf16_from_f64(value));
  return true;
}

bool type_from_text(std::string_view text, Type& type) {
  const size_t digits = text.find_last_not_of("0123456789");
  std::string_view name = text;
  type.lanes = 1;
  if (digits != std::string_view::npos && text[digits] == 'x' && digits + 1 < text.size()) {
    const char* end = text.data() + text.size();
    const std::from_chars_result read = std::from_chars(text.data() + digits + 1, end, type.lanes);
    if (read.ec != std::errc() || type.lanes < 2 || type.lanes > kMaxLanes) return false;
    name = text.substr(0, digits);
  }
  if (name == "index") {
    type.scalar = Scalar::index;
    return true;
  }
  const std::optional<ElementType> element = element_type_from_name(name);
  if (!element) return false;
  type.scalar = scalar_of(*element);
  return true;
}

}  // namespace backcast::loop
