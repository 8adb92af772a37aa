// Cases of gradients: an operator (or a function in text), operands and attributes. Each file
// gradient_cases_*.cpp lists those of one family; gradient_test.cpp judges them by differences in
// the evaluator, gradient_compiled_test.cpp compiles them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/ops/cases.h"

namespace backcast {

struct GradientCase {
  const OpDef* op;  // which operator the case is for
  std::string what;
  std::vector<Value> operands;  // the f64 ones are differentiated by; off kinks, see `adjoints`
  Attrs attrs = {};
  std::string text = {};  // instead of operator and attributes: a module; @main takes the operands
  /// On kinks and where a derivative is infinite: what the adjoints are for cotangents of one, in
  /// the order of the f64 operands. Such a case is not compared with differences.
  std::vector<Value> adjoints = {};
};
using GradientCases = std::vector<GradientCase>;
inline void PrintTo(const GradientCase& c, std::ostream* out) {
  *out << c.op->name << ": " << c.what;
}

GradientCases elementwise_gradients();
GradientCases binary_gradients();
GradientCases shape_gradients();
GradientCases reduction_gradients();
GradientCases contraction_gradients();
GradientCases indexing_gradients();
GradientCases structure_gradients();
GradientCases control_gradients();
GradientCases all_gradient_cases();
/// Name of a case in letters, digits and underscores.
std::string identifier(const GradientCase& c, size_t index);

/// Shuffled f64 numbers between low and high, no two of them closer than half of what the count
/// allows: away from ties. Different salts give different numbers.
Literal spread(std::vector<int64_t> shape, double low = -2, double high = 2, unsigned salt = 0);
inline Literal f64(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor(ElementType::f64, std::move(shape), values);
}

/// A module whose @main is the case, of f64 or (the same with f64 replaced) of f32.
Module gradient_module(const GradientCase& c, ElementType element = ElementType::f64);

/// The floating-point tensors in values, in order.
std::vector<Literal> float_leaves(const std::vector<Value>& values);
/// Cotangents or tangents for them.
std::vector<Value> random_like(const std::vector<Literal>& tensors, unsigned salt);

/// Compares @function's vjp, called `<function>_vjp`, with central differences; empty when it is
/// within 1e-5.
std::string check_vjp(const Module& module, const std::string& function,
                      const std::vector<Value>& arguments);
/// Compares forward with reverse mode: <u, J v> = <Jᵀ u, v>.
std::string check_jvp(const Module& module, const std::string& function,
                      const std::vector<Value>& arguments);

}  // namespace backcast
