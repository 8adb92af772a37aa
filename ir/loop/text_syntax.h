// What printer and parser of loop IR share: infix operators, keywords, names, numbers. Internal to
// ir/loop.
#pragma once

#include <string>
#include <string_view>

#include "ir/loop/expr.h"

namespace backcast::loop {

/// An infix operator; precedence grows from `|` (1) to `*` (7), 0 means none. Division and
/// remainder signs mean floor_div and floor_mod on index, div and rem elsewhere.
struct Infix {
  std::string_view sign;
  int precedence = 0;
};
Infix infix_of(Op op, Scalar operands);
/// The operation that a sign stands for; Op::none when it is none.
Op op_of_sign(std::string_view sign, Scalar operands, int& precedence);
constexpr int kComparisonPrecedence = 4;
constexpr int kUnaryPrecedence = 8;

/// The operation called by its name, `sqrt(x)`, `mul_high(a, b)`; Op::none when it is none.
Op op_of_name(std::string_view name);
/// Letters, digits, `_`, and dots before one of these; starts with a letter or `_`.
bool is_plain_name(std::string_view name);
/// Words with a meaning of their own in expressions.
bool is_keyword(std::string_view word);
/// A name as it stands, or in quotes.
std::string name_text(std::string_view name);

/// `1.5`, `-3`, `nan(0x…)`: the value without its type, the shortest that reads back.
std::string value_text(const ExprNode& constant);
bool float_from_text(Scalar scalar, std::string_view text, double& value);
/// "f32x8"; at most kMaxLanes.
bool type_from_text(std::string_view text, Type& type);
constexpr int32_t kMaxLanes = 4096;

}  // namespace backcast::loop
