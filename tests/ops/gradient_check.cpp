// Gradients against differences. The differences are of fourth order, so that a step of 1e-4 leaves
// about twelve digits.
#include <algorithm>
#include <random>
#include <regex>

#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "passes/graph/differentiate.h"
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

constexpr double kStep = 1e-4;
constexpr double kTolerance = 1e-5;

std::vector<double> numbers(const Literal& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.as_double(i));
  return values;
}

double dot(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  double sum = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    for (int64_t i = 0; i < a[t].element_count(); ++i) sum += a[t].as_double(i) * b[t].as_double(i);
  }
  return sum;
}

std::vector<Value> joined(std::vector<Value> a, const std::vector<Value>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Calls visit(tensor) for each floating-point tensor; it may replace it.
template <class Visit>
void for_each_float(Value& value, const Visit& visit) {
  for (Value& element : value.elements) for_each_float(element, visit);
  if (!value.is_tuple && is_float(value.tensor.element())) visit(value.tensor);
}

/// `arguments` with element i of floating-point tensor number `leaf` moved by `step`.
std::vector<Value> moved(std::vector<Value> arguments, size_t leaf, int64_t i, double step) {
  size_t next = 0;
  for (Value& argument : arguments) {
    for_each_float(argument, [&](Literal& tensor) {
      if (next++ != leaf) return;
      std::vector<double> values = numbers(tensor);
      values[static_cast<size_t>(i)] += step;
      tensor = Literal::from_doubles(tensor.element(), tensor.shape(), values);
    });
  }
  return arguments;
}

Type with_element(const Type& type, ElementType element) {
  if (type.is_tensor()) {
    const TensorType& tensor = type.tensor();
    return tensor.element == ElementType::f64 ? TensorType{element, tensor.shape} : tensor;
  }
  std::vector<Type> elements;
  for (const Type& part : type.elements()) elements.push_back(with_element(part, element));
  return Type::tuple(std::move(elements));
}

}  // namespace

GradientCases all_gradient_cases() {
  GradientCases all;
  for (GradientCases (*family)() :
       {elementwise_gradients, binary_gradients, shape_gradients, reduction_gradients,
        contraction_gradients, indexing_gradients, structure_gradients, control_gradients}) {
    for (GradientCase& c : family()) all.push_back(std::move(c));
  }
  return all;
}

std::string identifier(const GradientCase& c, size_t index) {
  std::string name = fmt::format("g{}_{}_{}", index, c.op->name, c.what);
  for (char& letter : name) {
    if (!isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name;
}

Literal spread(std::vector<int64_t> shape, double low, double high, unsigned salt) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::mt19937 random(salt + static_cast<unsigned>(count) * 7919u);
  std::uniform_real_distribution<double> jitter(0.25, 0.75);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(low + (high - low) * (static_cast<double>(i) + jitter(random)) /
                               static_cast<double>(count));
  }
  std::shuffle(values.begin(), values.end(), random);
  return Literal::from_doubles(ElementType::f64, std::move(shape), values);
}

Module gradient_module(const GradientCase& c, ElementType element) {
  if (!c.text.empty()) {
    return parse_module(std::regex_replace(c.text, std::regex("f64"), name_of(element).data()));
  }
  Module module;
  Builder builder(module, "main");
  std::vector<ValueId> operands;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Type type = with_element(type_of(c.operands[i]), element);
    operands.push_back(builder.parameter(fmt::format("x{}", i), type));
  }
  builder.set_loc({"case", "Test", Origin::imported});
  Function function = builder.finish(builder.emit(*c.op, operands, c.attrs));
  module.functions.emplace("main", std::move(function));
  return module;
}

std::vector<Literal> float_leaves(const std::vector<Value>& values) {
  std::vector<Literal> leaves;
  for (Value value : values) {
    for_each_float(value, [&](Literal& tensor) { leaves.push_back(tensor); });
  }
  return leaves;
}

std::vector<Value> random_like(const std::vector<Literal>& tensors, unsigned salt) {
  std::vector<Value> result;
  for (const Literal& tensor : tensors) {
    const Literal values = spread(tensor.shape(), -1, 1.5, salt++);
    result.push_back(Literal::from_doubles(tensor.element(), tensor.shape(), numbers(values)));
  }
  return result;
}

std::string check_vjp(const Module& module, const std::string& function,
                      const std::vector<Value>& arguments) {
  const Function& forward = module.function(function);
  const std::vector<Literal> results = float_leaves({evaluate(module, forward, arguments)});
  const std::vector<Value> cotangents = random_like(results, 17);
  const std::vector<Literal> weights = float_leaves(cotangents);
  const Value adjoints =
      evaluate(module, module.function(function + "_vjp"), joined(arguments, cotangents));
  const std::vector<Literal> found = float_leaves({adjoints});
  const std::vector<Literal> leaves = float_leaves(arguments);
  if (found.size() != leaves.size()) return "not one adjoint per operand";

  const auto at = [&](size_t leaf, int64_t i, double step) {
    return dot(float_leaves({evaluate(module, forward, moved(arguments, leaf, i, step))}), weights);
  };
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (found[leaf].shape() != leaves[leaf].shape()) return "an adjoint of another shape";
    std::vector<double> expected;
    double scale = 0;
    for (int64_t i = 0; i < leaves[leaf].element_count(); ++i) {
      const double near = at(leaf, i, kStep) - at(leaf, i, -kStep);
      const double far = at(leaf, i, 2 * kStep) - at(leaf, i, -2 * kStep);
      expected.push_back((8 * near - far) / (12 * kStep));
      scale = std::max(scale, std::fabs(expected.back()));
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const double is = found[leaf].as_double(static_cast<int64_t>(i));
      const double bound = kTolerance * std::max(std::fabs(expected[i]), 1e-2 * scale) + 1e-9;
      if (std::fabs(is - expected[i]) <= bound) continue;
      return fmt::format("{}: adjoint {}[{}] is {}, by differences {}", function, leaf, i, is,
                         expected[i]);
    }
  }
  return {};
}

std::string check_jvp(const Module& module, const std::string& function,
                      const std::vector<Value>& arguments) {
  const std::vector<Literal> leaves = float_leaves(arguments);
  const std::vector<Value> tangents = random_like(leaves, 31);
  const Value forward =
      evaluate(module, module.function(function + "_jvp"), joined(arguments, tangents));
  const std::vector<Literal> results = float_leaves({forward.elements.at(0)});
  const std::vector<Literal> pushed = float_leaves({forward.elements.at(1)});
  const std::vector<Value> cotangents = random_like(results, 57);
  const Value adjoints =
      evaluate(module, module.function(function + "_vjp"), joined(arguments, cotangents));
  const double left = dot(float_leaves(cotangents), pushed);
  const double right = dot(float_leaves({adjoints}), float_leaves(tangents));
  if (pushed.size() != results.size()) return "not one tangent per result";
  if (std::fabs(left - right) <= 1e-10 * std::max(1.0, std::fabs(right))) return {};
  return fmt::format("<u, J v> is {} and <transposed J u, v> is {}", left, right);
}

}  // namespace backcast
