// Compiled vjp, jvp and hvp of a model in single precision against the evaluator in double: against
// the derivative of the graph, and against differences of the model itself.
#include "driver/derivatives.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/llvm/jit.h"
#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "passes/graph/promote.h"
#include "tests/training/batches.h"
#include "tests/training/student.h"

namespace backcast::training {
namespace {

using Tensors = std::vector<Literal>;

const std::string kScalarModel = std::string(BACKCAST_BAD_MODELS) + "/scalar_output.onnx";

Literal random_tensor(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(uniform(stream(name), static_cast<uint64_t>(i)));
  }
  return Literal::from_doubles(ElementType::f32, shape, values);
}

/// The tensor in double, moved by h times the direction.
Literal moved(const Literal& tensor, const Literal& direction, double h) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(tensor.as_double(i) + h * direction.as_double(i));
  }
  return Literal::from_doubles(ElementType::f64, tensor.shape(), values);
}

Literal in_double(const Literal& tensor) { return moved(tensor, tensor, 0); }

Literal difference(const Literal& low, const Literal& high, double h) {
  std::vector<double> values;
  for (int64_t i = 0; i < low.element_count(); ++i) {
    values.push_back((high.as_double(i) - low.as_double(i)) / (2 * h));
  }
  return Literal::from_doubles(ElementType::f64, low.shape(), values);
}

/// An entry point in process and, promoted to double, by the evaluator.
struct Derivative {
  Tensors compiled, evaluated;

  Derivative(const std::string& model, const std::string& kind, const Tensors& inputs) {
    CompileRequest request;
    request.model = model;
    request.name = "net";
    request.derivatives.kinds = {kind};
    const CompiledModel made = compile_model(request);
    compiled = CompiledProgram(made.result.program, made.target).run(kind, inputs);
    evaluated = evaluate_entry(model, kind, inputs);
  }

  static Tensors evaluate_entry(const std::string& model, const std::string& kind,
                                const Tensors& inputs) {
    Module module = promote_f64(import_model(model).module);
    if (kind != "main") module = add_derivatives(std::move(module), {{kind}, {}});
    std::vector<Value> arguments;
    for (const Literal& input : inputs) arguments.push_back(Value(in_double(input)));
    const Value result = evaluate(module, module.function(kind), arguments);
    if (!result.is_tuple) return {result.tensor};
    Tensors tensors;
    for (const Value& element : result.elements) tensors.push_back(element.tensor);
    return tensors;
  }

  void expect_agreement() const {
    ASSERT_EQ(compiled.size(), evaluated.size());
    for (size_t i = 0; i < compiled.size(); ++i) {
      EXPECT_EQ(compiled[i].shape(), evaluated[i].shape());
      EXPECT_LT(relative_distance(compiled[i], evaluated[i]), 1e-5) << "output " << i;
    }
  }
};

TEST(Derivatives, JvpIsTheDifferenceAlongTheTangent) {
  const std::string model = reference_model("digits_mlp");
  const Literal x = random_tensor("x", {1, 1, 8, 8}), t = random_tensor("t", {1, 1, 8, 8});
  const Derivative jvp(model, "jvp", {x, t});
  jvp.expect_agreement();
  constexpr double kStep = 1e-6;
  const Literal low = Derivative::evaluate_entry(model, "main", {moved(x, t, -kStep)})[0];
  const Literal high = Derivative::evaluate_entry(model, "main", {moved(x, t, kStep)})[0];
  ASSERT_EQ(jvp.compiled.size(), 2u);  // the output, then its tangent
  EXPECT_LT(relative_distance(jvp.compiled[1], difference(low, high, kStep)), 1e-5);
}

/// ⟨cotangent, J tangent⟩ = ⟨Jᵀ cotangent, tangent⟩.
TEST(Derivatives, VjpIsTheTransposeOfJvp) {
  const std::string model = reference_model("digits_mlp");
  const Literal x = random_tensor("x", {1, 1, 8, 8}), t = random_tensor("t", {1, 1, 8, 8});
  const Literal c = random_tensor("c", {1, 10});
  const Derivative vjp(model, "vjp", {x, c});
  vjp.expect_agreement();
  const Literal tangent = Derivative::evaluate_entry(model, "jvp", {x, t}).at(1);
  double left = 0, right = 0;
  for (int64_t i = 0; i < 10; ++i) left += c.as_double(i) * tangent.as_double(i);
  ASSERT_EQ(vjp.compiled.size(), 1u);
  for (int64_t i = 0; i < 64; ++i) right += vjp.compiled[0].as_double(i) * t.as_double(i);
  EXPECT_NEAR(left, right, 1e-5 * std::abs(left));
}

TEST(Derivatives, HvpIsTheDifferenceOfGradients) {
  const Literal x = random_tensor("x", {1, 4}), t = random_tensor("t", {1, 4});
  const Derivative hvp(kScalarModel, "hvp", {x, t});
  hvp.expect_agreement();
  constexpr double kStep = 1e-5;
  const Literal one = Literal::scalar(ElementType::f64, 1);
  const Literal low =
      Derivative::evaluate_entry(kScalarModel, "vjp", {moved(x, t, -kStep), one})[0];
  const Literal high =
      Derivative::evaluate_entry(kScalarModel, "vjp", {moved(x, t, kStep), one})[0];
  ASSERT_EQ(hvp.compiled.size(), 2u);  // the gradient, then the product
  EXPECT_LT(relative_distance(hvp.compiled[1], difference(low, high, kStep)), 1e-5);
}

TEST(Derivatives, WhatCannotBeIsSaid) {
  const auto expect_refused = [](const std::string& model, const DerivativeRequest& derivatives,
                                 const std::string& words) {
    CompileRequest request;
    request.model = model;
    request.derivatives = derivatives;
    try {
      compile_model(request);
      ADD_FAILURE() << "accepted; expected: " << words;
    } catch (const CompileError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const std::string mlp = reference_model("digits_mlp");
  expect_refused(mlp, {{"grad"}, {}}, "--derivative grad: choose among vjp, jvp, hvp");
  expect_refused(mlp, {{"vjp", "vjp"}, {}}, "asked for twice");
  expect_refused(mlp, {{"vjp"}, {"y"}}, "--wrt y: the floating-point inputs are image");
  expect_refused(mlp, {{"hvp"}, {}}, "must be a scalar");
}

}  // namespace
}  // namespace backcast::training
