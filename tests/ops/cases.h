// One case of an operator: operands, attributes and the value that was worked out by hand. Each
// file cases_*.cpp lists those of one family; op_test.cpp runs them all and misses none.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "ir/ops/ops.h"

namespace backcast {

struct OpCase {
  const OpDef* op;
  std::string what;
  std::vector<Value> operands;
  Attrs attrs;
  Value expected;
  double tolerance = 0;  // relative; 0: to the bit, but for the bits of a NaN
  Module module = {};    // for calls
};
using OpCases = std::vector<OpCase>;
/// What a failing test prints.
inline void PrintTo(const OpCase& c, std::ostream* out) { *out << c.op->name << ": " << c.what; }

OpCases structure_cases();
OpCases control_cases();
OpCases unary_cases();
OpCases binary_cases();
OpCases shape_cases();
OpCases indexing_cases();
OpCases contraction_cases();
OpCases reduction_cases();
OpCases all_cases();

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A literal of any element type from numbers that a double holds exactly.
inline Literal tensor(ElementType element, std::vector<int64_t> shape,
                      const std::vector<double>& values) {
  return Literal::from_doubles(element, std::move(shape), values);
}
inline Literal f32(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor(ElementType::f32, std::move(shape), values);
}
inline Literal i32(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor(ElementType::i32, std::move(shape), values);
}
inline Literal i64(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return Literal::from_ints(std::move(shape), values);
}
inline Literal bools(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor(ElementType::boolean, std::move(shape), values);
}
/// 64-bit integers and bit patterns, exactly.
template <class T>
Literal raw(ElementType element, std::vector<int64_t> shape, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Literal(element, std::move(shape), std::move(bytes));
}
inline Literal u64(const std::vector<uint64_t>& values) {
  return raw(ElementType::u64, {static_cast<int64_t>(values.size())}, values);
}

Type type_of(const Value& value);
/// Infers the type and evaluates; the symbols of `module` have the values `symbols`.
Type infer(const OpDef& op, const std::vector<Type>& operands, const Attrs& attrs,
           const Module& module = {});
Value run(const OpDef& op, const std::vector<Value>& operands, const Attrs& attrs,
          const Module& module = {}, const SymbolValues& symbols = {});
/// Empty when equal, otherwise what differs.
std::string difference(const Value& actual, const Value& expected, double tolerance);

/// f32[N,2] from {"N", "2"}.
TensorType symbolic(const std::vector<std::string>& dims, ElementType element = ElementType::f32);
Dims dims(const std::vector<std::string>& texts);
/// The message of the CompileError, or "no error".
std::string infer_error(const OpDef& op, const std::vector<Type>& operands, const Attrs& attrs,
                        const Module& module = {});

}  // namespace backcast
