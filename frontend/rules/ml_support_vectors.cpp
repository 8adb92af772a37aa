// ai.onnx.ml: support vector machines. Where ONNX leaves open what scores mean, what ONNX Runtime
// does is followed.
#include <algorithm>
#include <numeric>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/ml_classes.h"
#include "frontend/rules/pairwise_coupling.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr double kLeastProbability = 1e-7;

/// A list as [rows, columns] of x's element type; CompileError unless it has so many values.
ValueId matrix(NodeContext& n, std::string_view attribute, int64_t rows, const Dim& columns,
               ElementType element) {
  const std::vector<float> values = n.attr_floats(attribute);
  if (!(Dim(static_cast<int64_t>(values.size())) == Dim(rows) * columns)) {
    n.fail(fmt::format("attribute \"{}\" has {} values and should have {} of {}", attribute,
                       values.size(), rows, columns.to_string()));
  }
  return n.e.reshape(ml_vector(n, values, element), {Dim(rows), columns});
}

/// x[i] to the power of the degree.
ValueId power(Emitter& e, ValueId x, double degree) {
  if (degree == 2) return e.mul(x, x);
  if (degree == 3) return e.mul(e.mul(x, x), x);
  return e.binary(ops::pow, x, e.like(x, degree));
}

/// A kernel function other than the linear one of each example with each of some vectors:
/// [examples, vectors].
ValueId kernel_values(NodeContext& n, ValueId x, ValueId vectors) {
  Emitter& e = n.e;
  const std::string kind = n.attr_string("kernel_type", "LINEAR");
  std::vector<float> numbers = n.attr_floats("kernel_params");
  if (!numbers.empty() && numbers.size() != 3) {
    n.fail("attribute \"kernel_params\" has to have gamma, coef0 and degree");
  }
  numbers.resize(3, 0);
  const double gamma = numbers[0], offset = numbers[1], degree = numbers[2];
  if (kind == "RBF") {
    const ValueId apart = e.sub(e.unsqueeze(x, 1), e.unsqueeze(vectors, 0));
    const ValueId distance = e.reduce(Reduction::sum, e.mul(apart, apart), {2});
    return e.unary(ops::exp, e.mul(distance, -gamma));
  }
  const ValueId inner = e.add(e.mul(matmul(n, x, e.transpose(vectors, {1, 0})), gamma), offset);
  if (kind == "POLY") return power(e, inner, degree);
  if (kind == "SIGMOID") return e.unary(ops::tanh, inner);
  n.fail(fmt::format(
      "attribute \"kernel_type\" is \"{}\"; LINEAR, POLY, RBF and SIGMOID are possible", kind));
}

bool is_linear(const NodeContext& n) { return n.attr_string("kernel_type", "LINEAR") == "LINEAR"; }

/// x times sums over vectors, weighted by [vectors, sums], of a linear kernel: [examples, sums].
/// These are sums of features, whose weights are known.
ValueId linear_sums(NodeContext& n, ValueId x, ValueId vectors, ValueId weights) {
  return matmul(n, x, matmul(n, n.e.transpose(vectors, {1, 0}), weights));
}

/// Rows of coefficients of the features themselves, and the first of `rho`: [examples, rows].
ValueId linear_scores(NodeContext& n, ValueId x, int64_t rows, double rho) {
  const ValueId weights = matrix(n, "coefficients", rows, n.e.extent(x, 1), n.e.element(x));
  return n.e.add(matmul(n, x, n.e.transpose(weights, {1, 0})), rho);
}

std::vector<float> offsets(const NodeContext& n, size_t count) {
  std::vector<float> rho = n.attr_floats("rho");
  if (rho.size() < count) {
    n.fail(fmt::format("attribute \"rho\" has {} values and should have {}", rho.size(), count));
  }
  rho.resize(count);
  return rho;
}

void svm_regressor(NodeContext& n) {
  Emitter& e = n.e;
  const ValueId x = ml_features(n);
  const int64_t count = n.attr_int("n_supports", 0);
  const double rho = offsets(n, 1)[0];
  ValueId y;
  if (count > 0) {
    const ValueId vectors = matrix(n, "support_vectors", count, e.extent(x, 1), e.element(x));
    const ValueId weights = matrix(n, "coefficients", count, Dim(1), e.element(x));
    const ValueId sum = is_linear(n) ? linear_sums(n, x, vectors, weights)
                                     : matmul(n, kernel_values(n, x, vectors), weights);
    y = e.add(sum, rho);
  } else {
    y = linear_scores(n, x, 1, rho);
  }
  if (n.attr_int("one_class", 0) != 0) {
    y = e.select(e.compare(Comparison::gt, y, 0.0), e.like(y, 1), e.like(y, -1));
  }
  n.result(e.cast(post_transform(n, y), ElementType::f32));
}

struct Pair {
  int64_t first, second;
};

std::vector<Pair> pairs_of(int64_t classes) {
  std::vector<Pair> pairs;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) pairs.push_back({i, j});
  }
  return pairs;
}

/// What decides between each pair of classes, above zero for the first: [examples, pairs]. A
/// class's vectors have one coefficient against each other class, which are one small product.
ValueId pair_scores(NodeContext& n, ValueId x, const Ints& counts, const std::vector<Pair>& pairs) {
  Emitter& e = n.e;
  const int64_t classes = static_cast<int64_t>(counts.size());
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const ElementType element = e.element(x);
  const ValueId vectors = matrix(n, "support_vectors", all, e.extent(x, 1), element);
  const ValueId weights = matrix(n, "coefficients", classes - 1, Dim(all), element);
  const ValueId values = is_linear(n) ? ValueId() : kernel_values(n, x, vectors);
  std::vector<ValueId> against;  // of each class, [examples, classes - 1]
  int64_t begin = 0;
  for (const int64_t count : counts) {
    const int64_t end = begin + count;
    const ValueId own = e.transpose(e.slice_axis(weights, 1, begin, end), {1, 0});
    against.push_back(is_linear(n) ? linear_sums(n, x, e.slice_axis(vectors, 0, begin, end), own)
                                   : matmul(n, e.slice_axis(values, 1, begin, end), own));
    begin = end;
  }
  std::vector<ValueId> columns;
  for (const Pair& pair : pairs) {
    const auto side = [&](int64_t of, int64_t row) {
      return e.slice_axis(against[static_cast<size_t>(of)], 1, row, row + 1);
    };
    columns.push_back(e.add(side(pair.first, pair.second - 1), side(pair.second, pair.first)));
  }
  return e.add(e.concat(columns, 1), ml_vector(n, offsets(n, pairs.size()), element));
}

/// How many pairs each class wins: [examples, classes].
ValueId votes(NodeContext& n, ValueId scores, int64_t classes, const std::vector<Pair>& pairs) {
  Emitter& e = n.e;
  const int64_t count = static_cast<int64_t>(pairs.size());
  std::vector<double> won(static_cast<size_t>(count * classes), 0),
      base(static_cast<size_t>(classes), 0);
  for (int64_t p = 0; p < count; ++p) {
    const auto [first, second] = pairs[static_cast<size_t>(p)];
    won[static_cast<size_t>(p * classes + first)] = 1;
    won[static_cast<size_t>(p * classes + second)] = -1;
    base[static_cast<size_t>(second)] += 1;
  }
  const ValueId first = e.cast(e.compare(Comparison::gt, scores, 0.0), ElementType::f32);
  const ValueId turns = e.constant(Literal::from_doubles(ElementType::f32, {count, classes}, won));
  return e.add(matmul(n, first, turns),
               e.constant(Literal::from_doubles(ElementType::f32, {classes}, base)));
}

/// Platt's probabilities of the first of each pair.
ValueId pair_probabilities(NodeContext& n, ValueId scores, const std::vector<float>& a,
                           const std::vector<float>& b) {
  Emitter& e = n.e;
  const ElementType element = e.element(scores);
  const ValueId logits = e.add(e.mul(scores, ml_vector(n, a, element)), ml_vector(n, b, element));
  return e.clamp(e.unary(ops::sigmoid, e.unary(ops::neg, logits)), kLeastProbability,
                 1 - kLeastProbability);
}

/// Both columns of one score that stands for two classes.
ValueId both_sides(NodeContext& n, ValueId score) {
  Emitter& e = n.e;
  const std::string transform = n.attr_string("post_transform", "NONE");
  if (transform == "NONE") return e.concat({e.unary(ops::neg, score), score}, 1);
  const bool kept = transform == "SOFTMAX" || transform == "SOFTMAX_ZERO";
  if (!kept) score = transformed(n, score, transform);
  return e.concat({e.sub(e.like(score, 1), score), score}, 1);
}

/// Without vectors: one row of coefficients per class. Of two classes the second is it as soon as
/// either score is beyond the threshold.
void linear_classifier(NodeContext& n, ValueId x, const Ints& labels) {
  Emitter& e = n.e;
  const ValueId scores = linear_scores(n, x, static_cast<int64_t>(labels.size()), offsets(n, 1)[0]);
  set_classes(n, scores, labels);
  if (labels.size() != 2 || !n.attr_floats("prob_a").empty()) return;
  const std::vector<float> weights = n.attr_floats("coefficients");
  const bool positive = std::ranges::none_of(weights, [](float w) { return w < 0; });
  const ValueId highest = e.reduce(Reduction::max, scores, {1});
  const ValueId beyond =
      positive ? e.compare(Comparison::ge, highest, 0.5) : e.compare(Comparison::gt, highest, 0.0);
  const ValueId index = e.arg_reduce(Reduction::max, scores, 1, false, false);
  set_labels(n, e.max(index, e.cast(beyond, e.element(index))), labels);
}

void svm_classifier(NodeContext& n) {
  const Ints labels = class_labels(n, "classlabels_ints", "classlabels_strings");
  const int64_t classes = static_cast<int64_t>(labels.size());
  const ValueId x = ml_features(n);
  const Ints counts = n.attr_ints("vectors_per_class").value_or(Ints());
  const int64_t vectors = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (counts.empty() || vectors == 0) return linear_classifier(n, x, labels);
  const bool negative = std::ranges::any_of(counts, [](int64_t count) { return count < 0; });
  if (static_cast<int64_t>(counts.size()) != classes || classes < 2 || negative) {
    n.fail(fmt::format(
        "attribute \"vectors_per_class\" has to have a number for each of {} classes", classes));
  }
  const std::vector<Pair> pairs = pairs_of(classes);
  const ValueId scores = pair_scores(n, x, counts, pairs);
  set_label_of_highest(n, votes(n, scores, classes, pairs), labels);
  const std::vector<float> a = n.attr_floats("prob_a"), b = n.attr_floats("prob_b");
  ValueId result;
  if (!a.empty()) {
    if (a.size() != pairs.size() || b.size() != pairs.size()) {
      n.fail(fmt::format("attributes \"prob_a\" and \"prob_b\" have {} and {} values for {} pairs",
                         a.size(), b.size(), pairs.size()));
    }
    result =
        post_transform(n, coupled_probabilities(n, pair_probabilities(n, scores, a, b), classes));
  } else {
    result = classes == 2 ? both_sides(n, scores) : post_transform(n, scores);
  }
  n.set(1, n.e.cast(result, ElementType::f32));
}

#define KERNEL \
  "kernel_params:F kernel_type:s coefficients:F rho:F support_vectors:F post_transform:s"

const OperatorRule kRules[] = {
    {"SVMRegressor", 1, kNewestMlOpset, 1, 1, svm_regressor, KERNEL " n_supports:i one_class:i",
     kMlDomain},
    {"SVMClassifier", 1, kNewestMlOpset, 1, 1, svm_classifier,
     KERNEL " classlabels_ints:I classlabels_strings:S prob_a:F prob_b:F vectors_per_class:I",
     kMlDomain},
};

}  // namespace

std::span<const OperatorRule> ml_svm_rules() { return kRules; }

}  // namespace backcast
