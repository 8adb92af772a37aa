// Differentiation of whole functions, judged by closed forms and by differences: what the golden
// files of tests/golden/differentiate write down is also right.
#include "passes/graph/differentiate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

std::vector<double> numbers(const Literal& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.as_double(i));
  return values;
}

/// (result, (adjoints)) of the text's @main.
Value differentiated(const std::string& text, const std::vector<Value>& arguments,
                     const DifferentiateOptions& options = {}) {
  const Module module = differentiate(parse_module(text), "main", options);
  verify(module, "differentiate");
  return evaluate(module, module.function("main_adjoint"), arguments);
}

/// Derivatives of the scalar result of the text's @main by argument number `by`, by differences.
std::vector<double> differences(const std::string& text, const std::vector<Value>& arguments,
                                size_t by) {
  constexpr double kStep = 1e-5;
  const Module module = parse_module(text);
  const std::vector<double> values = numbers(arguments[by].tensor);
  const auto at = [&](size_t i, double step) {
    std::vector<double> moved = values;
    moved[i] += step;
    std::vector<Value> changed = arguments;
    changed[by] = f64(arguments[by].tensor.shape(), moved);
    return evaluate(module, module.function("main"), changed).tensor.as_double(0);
  };
  std::vector<double> result;
  for (size_t i = 0; i < values.size(); ++i) {
    result.push_back((at(i, kStep) - at(i, -kStep)) / (2 * kStep));
  }
  return result;
}

void expect_near(const Literal& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(actual.element_count()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual.as_double(static_cast<int64_t>(i)), expected[i], tolerance)
        << "[" << i << "]";
  }
}

std::string message_of(const std::string& text, const DifferentiateOptions& options) {
  try {
    differentiate(parse_module(text), "main", options);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

// sum((2x - 2y) · (y + z)) with y and z repeated along the rows; u is not used.
TEST(Differentiate, ManualGradient) {
  const std::string text = R"(
func @main(%x: f64[3,5], %y: f64[5], %z: f64[5], %u: f64[5]) -> f64[] {
  %0 = add %x, %x
  %1 = broadcast %y {shape=[3,5], dims=[1]}
  %2 = sub %0, %1
  %3 = sub %2, %1
  %4 = add %y, %z
  %5 = broadcast %4 {shape=[3,5], dims=[1]}
  %6 = mul %3, %5
  %7 = reduce %6 {kind=sum, axes=[0,1]}
  return %7
})";
  const Literal x = spread({3, 5}), y = spread({5}, -1, 2, 1), z = spread({5}, -1, 2, 2);
  const Value result = differentiated(text, {x, y, z, spread({5})});
  const std::vector<double> xs = numbers(x), ys = numbers(y), zs = numbers(z);
  double value = 0;
  std::vector<double> dx(15), dy(5), dz(5);
  for (size_t r = 0; r < 3; ++r) {
    for (size_t c = 0; c < 5; ++c) {
      const double at = xs[r * 5 + c];
      value += (2 * at - 2 * ys[c]) * (ys[c] + zs[c]);
      dx[r * 5 + c] = 2 * ys[c] + 2 * zs[c];
      dy[c] += 2 * at - 4 * ys[c] - 2 * zs[c];
      dz[c] += 2 * at - 2 * ys[c];
    }
  }
  EXPECT_NEAR(result.elements[0].tensor.as_double(0), value, 1e-12);
  const std::vector<Value>& adjoints = result.elements[1].elements;
  ASSERT_EQ(adjoints.size(), 4u);
  expect_near(adjoints[0].tensor, dx, 1e-12);
  expect_near(adjoints[1].tensor, dy, 1e-12);
  expect_near(adjoints[2].tensor, dz, 1e-12);
  expect_near(adjoints[3].tensor, {0, 0, 0, 0, 0}, 0);
}

/// Log-softmax over the last of two dimensions, then the mean of what the labels pick, negated.
constexpr const char* kLoss = R"(
func @loss(%x: f64[4,5], %y: i64[4]) -> f64[] {
  %0 = reduce %x {kind=max, axes=[1]}
  %1 = broadcast %0 {shape=[4,5], dims=[0]}
  %2 = sub %x, %1
  %3 = exp %2
  %4 = reduce %3 {kind=sum, axes=[1]}
  %5 = log %4
  %6 = broadcast %5 {shape=[4,5], dims=[0]}
  %7 = sub %2, %6
  %8 = iota {element=i64, shape=[4,5], axis=1}
  %9 = broadcast %y {shape=[4,5], dims=[0]}
  %10 = compare %8, %9 {direction=eq}
  %11 = sub %7, %7
  %12 = select %10, %7, %11
  %13 = reduce %12 {kind=sum, axes=[0,1]}
  %14 = constant {value=f64[] -4}
  %15 = div %13, %14
  return %15
}

func @layer(%x: f64[4,5], %w: f64[5,5], %b: f64[5]) -> f64[4,5] {
  %0 = dot_general %x, %w {lhs_contract=[1], rhs_contract=[0]}
  %1 = broadcast %b {shape=[4,5], dims=[1]}
  %2 = add %0, %1
  return %2
}
)";

TEST(Differentiate, Perceptron) {
  const std::string text = std::string(kLoss) + R"(
func @main(%x: f64[4,5], %w0: f64[5,5], %w1: f64[5,5], %w2: f64[5,5], %b0: f64[5], %b1: f64[5], %b2: f64[5], %y: i64[4]) -> f64[] {
  %0 = call %x, %w0, %b0 {function=@layer}
  %1 = relu %0
  %2 = call %1, %w1, %b1 {function=@layer}
  %3 = relu %2
  %4 = call %3, %w2, %b2 {function=@layer}
  %5 = call %4, %y {function=@loss}
  return %5
})";
  std::vector<Value> arguments{spread({4, 5})};
  for (unsigned i = 0; i < 3; ++i) arguments.push_back(spread({5, 5}, -1, 1, i));
  for (unsigned i = 0; i < 3; ++i) arguments.push_back(spread({5}, -1, 1, i));
  arguments.push_back(i64({4}, {3, 0, 4, 1}));
  DifferentiateOptions options;
  options.wrt = {"w0", "w1", "w2", "b0", "b1", "b2"};
  const Value result = differentiated(text, arguments, options);
  ASSERT_EQ(result.elements[1].elements.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(options.wrt[i]);
    expect_near(result.elements[1].elements[i].tensor, differences(text, arguments, i + 1), 1e-8);
  }
}

// Halves of a vector joined in several ways, tanh and sigmoid of a polynomial, a batched product,
// and a log-softmax of which one element is the loss.
TEST(Differentiate, Complex) {
  const std::string text = R"(
func @halves(%x: f64[6]) -> (f64[3], f64[3]) {
  %0 = slice %x {start=[0], limit=[3], stride=[1]}
  %1 = slice %x {start=[3], limit=[6], stride=[1]}
  %2 = tuple %0, %1
  return %2
}

func @main(%x: f64[6], %y: f64[6,3,4]) -> f64[] {
  %lv1 = call %x {function=@halves}
  %lv2 = get %lv1 {index=0}
  %lv3 = get %lv1 {index=1}
  %lv4 = add %lv2, %lv3
  %lv5 = tuple %lv4, %lv3
  %a = get %lv5 {index=0}
  %b = get %lv5 {index=1}
  %lv6 = concat %a, %b {axis=0}
  %lv7 = tuple %x, %x
  %c = get %lv7 {index=0}
  %d = get %lv7 {index=1}
  %lv8 = concat %c, %d {axis=0}
  %lv9 = concat %d, %c {axis=0}
  %lv10 = add %lv8, %lv9
  %lv11 = slice %lv10 {start=[0], limit=[6], stride=[1]}
  %lv12 = add %lv6, %lv11
  %one = constant {value=f64[] 1}
  %lv13 = broadcast %one {shape=[6], dims=[]}
  %lv14 = add %lv12, %lv13
  %lv15 = sub %lv13, %lv14
  %lv16 = mul %lv14, %lv15
  %lv17 = mul %lv15, %lv16
  %lv18 = tanh %lv17
  %lv19 = sigmoid %lv18
  %lv20 = transpose %y {permutation=[0,2,1]}
  %lv21 = sigmoid %lv20
  %lv22 = dot_general %y, %lv21 {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]}
  %lv23 = reduce %lv22 {kind=sum, axes=[1,2]}
  %lv24 = add %lv19, %lv23
  %m = reduce %lv24 {kind=max, axes=[0]}
  %n = broadcast %m {shape=[6], dims=[]}
  %s = sub %lv24, %n
  %e = exp %s
  %t = reduce %e {kind=sum, axes=[0]}
  %l = log %t
  %k = broadcast %l {shape=[6], dims=[]}
  %lv25 = sub %s, %k
  %picked = slice %lv25 {start=[3], limit=[4], stride=[1]}
  %p = reshape %picked {shape=[]}
  %gv = neg %p
  return %gv
})";
  const std::vector<Value> arguments{spread({6}, -0.3, 0.5), spread({6, 3, 4}, -1, 1)};
  const Value result = differentiated(text, arguments);
  for (size_t i = 0; i < 2; ++i) {
    expect_near(result.elements[1].elements[i].tensor, differences(text, arguments, i), 1e-8);
  }
}

TEST(Differentiate, SumHasOnesAndProductTheOtherOperand) {
  const Literal x = f64({2}, {3, -4}), y = f64({2}, {5, 0.5});
  const auto text = [](const std::string& op) {
    return "func @main(%x: f64[2], %y: f64[2]) -> f64[] {\n  %0 = " + op +
           " %x, %y\n  %1 = reduce %0 {kind=sum, axes=[0]}\n  return %1\n}";
  };
  const Value sum = differentiated(text("add"), {x, y});
  expect_near(sum.elements[1].elements[0].tensor, {1, 1}, 0);
  expect_near(sum.elements[1].elements[1].tensor, {1, 1}, 0);
  const Value product = differentiated(text("mul"), {x, y});
  expect_near(product.elements[1].elements[0].tensor, {5, 0.5}, 0);
  expect_near(product.elements[1].elements[1].tensor, {3, -4}, 0);
}

TEST(Differentiate, LossFirstThenTheOtherResults) {
  const std::string text = R"(
func @main(%x: f64[2]) -> (f64[], f64[2]) results("loss", "logits") {
  %0 = exp %x
  %1 = reduce %0 {kind=sum, axes=[0]}
  %2 = tuple %1, %0
  return %2
})";
  const Value result = differentiated(text, {f64({2}, {0, 1})});
  const double e = std::exp(1.0);
  ASSERT_EQ(result.elements.size(), 2u);
  expect_near(result.elements[0].elements[0].tensor, {1 + e}, 1e-15);
  expect_near(result.elements[0].elements[1].tensor, {1, e}, 1e-15);
  expect_near(result.elements[1].elements[0].tensor, {1, e}, 1e-15);
}

// The square of x under a name; its own gradient is deliberately another function, sin(u).
std::string square(const std::string& gradient) {
  return R"(
func @square(%x: f64[2]) -> f64[2] {
  %0 = mul %x, %x
  return %0
}

func @square_vjp(%x: f64[2], %y: f64[2], %u: f64[2]) -> (f64[2]) {
  %0 = sin %u
  %1 = tuple %0
  return %1
}

func @main(%x: f64[2]) -> f64[] {
  %0 = composite %x {name="square", function=@square)" +
         gradient + R"(}
  %1 = reduce %0 {kind=sum, axes=[0]}
  return %1
})";
}

TEST(Differentiate, CompositeWithItsOwnGradient) {
  const Value result = differentiated(square(", gradient=@square_vjp"), {f64({2}, {3, -4})});
  expect_near(result.elements[0].tensor, {25}, 0);
  expect_near(result.elements[1].elements[0].tensor, {std::sin(1.0), std::sin(1.0)}, 1e-15);
}

TEST(Differentiate, CompositeByItsBody) {
  const Value result = differentiated(square(""), {f64({2}, {3, -4})});
  expect_near(result.elements[1].elements[0].tensor, {6, -8}, 0);
}

TEST(Differentiate, StopGradientIsAConstant) {
  const std::string text = R"(
func @main(%x: f64[2]) -> f64[] {
  %0 = stop_gradient %x
  %1 = mul %0, %x
  %2 = reduce %1 {kind=sum, axes=[0]}
  return %2
})";
  const Value result = differentiated(text, {f64({2}, {3, -4})});
  expect_near(result.elements[1].elements[0].tensor, {3, -4}, 0);
}

TEST(Differentiate, SeededCotangent) {
  const std::string text = R"(
func @main(%x: f64[2,2], %y: f64[2]) -> f64[2] {
  %0 = dot_general %x, %y {lhs_contract=[1], rhs_contract=[0]}
  return %0
})";
  DifferentiateOptions options;
  options.seeded = true;
  options.keep_result = false;
  const Value result = differentiated(
      text, {f64({2, 2}, {1, 2, 3, 4}), f64({2}, {5, 6}), f64({2}, {10, 100})}, options);
  ASSERT_EQ(result.elements.size(), 2u);
  expect_near(result.elements[0].tensor, {50, 60, 500, 600}, 0);
  expect_near(result.elements[1].tensor, {310, 420}, 0);
}

TEST(Differentiate, StrictRefusesWhatTheTargetDoesNotDependOn) {
  const std::string text = R"(
func @main(%x: f64[2], %y: f64[2]) -> f64[] {
  %0 = reduce %x {kind=sum, axes=[0]}
  return %0
})";
  DifferentiateOptions options;
  options.strict = true;
  EXPECT_NE(message_of(text, options).find("does not depend on \"y\""), std::string::npos);
  options.wrt = {"x"};
  EXPECT_EQ(message_of(text, options), "no error");
  options = {};
  const Value zeros = differentiated(text, {f64({2}, {1, 2}), f64({2}, {3, 4})});
  expect_near(zeros.elements[1].elements[1].tensor, {0, 0}, 0);
}

TEST(Differentiate, ByValuesInTheMiddleAndTheTargetItself) {
  const std::string text = R"(
func @main(%x: f64[2]) -> f64[] {
  %0 = exp %x
  %1 = mul %0, %0 loc("hidden", "Mul")
  %2 = mul %1, %0
  %3 = reduce %2 {kind=sum, axes=[0]}
  return %3
})";
  DifferentiateOptions options;
  options.wrt = {"hidden", "%0", "%3", "x"};
  const Value result = differentiated(text, {f64({2}, {0, 1})}, options);
  const double e = std::exp(1.0);
  const std::vector<Value>& adjoints = result.elements[1].elements;
  ASSERT_EQ(adjoints.size(), 4u);
  expect_near(adjoints[0].tensor, {1, e}, 1e-14);          // %2 = hidden · %0
  expect_near(adjoints[1].tensor, {3, 3 * e * e}, 1e-14);  // %3 = Σ %0³
  expect_near(adjoints[2].tensor, {1}, 0);
  expect_near(adjoints[3].tensor, {3, 3 * e * e * e}, 1e-13);  // e^(3x)
}

// f = Σ x³ y: the Hessian by x is diagonal, 6 x y.
TEST(Differentiate, HessianTimesVector) {
  const Module module = add_hvp(parse_module(R"(
func @main(%x: f64[2], %y: f64[2]) -> f64[] {
  %0 = mul %x, %x
  %1 = mul %0, %x
  %2 = mul %1, %y
  %3 = reduce %2 {kind=sum, axes=[0]}
  return %3
})"),
                                "main", {"x"});
  verify(module, "hvp");
  const Value result = evaluate(module, module.function("main_hvp"),
                                {f64({2}, {2, -1}), f64({2}, {5, 7}), f64({2}, {1, 10})});
  expect_near(result.elements[0].elements[0].tensor, {60, 21}, 1e-12);
  expect_near(result.elements[1].elements[0].tensor, {60, -420}, 1e-12);
}

// An error leaves the module as it was: there is nothing to undo.
TEST(Differentiate, ErrorsChangeNothing) {
  const Module module = parse_module(square(""));
  const Module before = module;
  DifferentiateOptions options;
  options.wrt = {"nobody"};
  EXPECT_THROW(differentiate(module, "main", options), CompileError);
  EXPECT_THROW(differentiate(module, "nothing"), CompileError);
  EXPECT_TRUE(equal(module, before));
}

}  // namespace
}  // namespace backcast
