// How an operator is differentiated: a rule that turns the cotangent of the result into cotangents
// of the operands, built from core operators, so that gradients can be differentiated again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/ids.h"

namespace backcast {

class Builder;
struct Function;
struct Node;
struct TensorType;
class Type;

/// The adjoint of a value, shaped like its type. What is absent is zero: a tensor without a value,
/// a tuple without elements.
struct Adjoint {
  std::optional<ValueId> value;   // of a tensor
  std::vector<Adjoint> elements;  // of a tuple: none, or one per element

  Adjoint() = default;
  Adjoint(ValueId id) : value(id) {}                 // NOLINT: what most rules return
  Adjoint(std::optional<ValueId> id) : value(id) {}  // NOLINT
  static Adjoint tuple(std::vector<Adjoint> elements);
  bool is_zero() const;
};

/// What a rule asks of the differentiation that runs it.
class GradientServices {
 public:
  virtual ~GradientServices() = default;
  /// The name of a function of the module, made when it does not exist yet, that takes the
  /// parameters of `callee` and then one cotangent for every floating-point tensor of its result,
  /// in order, and gives a tuple: the adjoint (zeros where there is none) of every parameter that
  /// `wanted` names. CompileError when something on the way has no gradient.
  virtual std::string vjp_function(const std::string& callee, const std::vector<bool>& wanted) = 0;
  /// Adds a function that a rule has built; its name, made unlike all others, is the result.
  virtual std::string add_function(Function function) = 0;
};

/// One application of a rule. Values are those of `builder`; its location is set.
struct GradientContext {
  Builder& builder;
  const Node& node;          // the forward node
  ValueId result;            // its value
  const Adjoint& cotangent;  // of the result; not zero
  std::vector<bool> wanted;  // per operand: whether anybody needs its adjoint
  GradientServices& services;

  ValueId operand(size_t i) const;
  const TensorType& type(size_t i) const;  // of a tensor operand
  /// The cotangent of a tensor result.
  ValueId seed() const;
};

/// One adjoint per operand, fewer when the rest are zero.
using GradientRule = std::vector<Adjoint> (*)(GradientContext&);

/// The gradient field of an OpDef. It has no default, so that a forgotten one does not compile.
class Gradient {
 public:
  constexpr Gradient(GradientRule rule) : rule_(rule) {}  // NOLINT: written `.gradient = rule`
  GradientRule rule() const { return rule_; }
  /// True: the derivative is zero wherever it exists. False and no rule: there is none.
  bool is_zero() const { return zero_; }
  std::string_view reason() const { return reason_; }

 private:
  friend constexpr Gradient zero_gradient(std::string_view reason);
  friend constexpr Gradient no_gradient(std::string_view reason);
  constexpr Gradient(bool zero, std::string_view reason) : zero_(zero), reason_(reason) {}

  GradientRule rule_ = nullptr;
  bool zero_ = false;
  std::string_view reason_;
};

/// The derivative is zero wherever it exists (piecewise constant, or not a real number).
constexpr Gradient zero_gradient(std::string_view reason) { return {true, reason}; }
/// Differentiating is an error; `reason` completes "has no gradient: …".
constexpr Gradient no_gradient(std::string_view reason) { return {false, reason}; }

}  // namespace backcast
