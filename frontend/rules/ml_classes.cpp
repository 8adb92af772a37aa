// See ml_classes.h. Where ONNX leaves open what a transform does to a single score, what ONNX
// Runtime does is followed.
#include "frontend/rules/ml_classes.h"

#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Scores that are zero stay zero.
ValueId softmax_zero(NodeContext& n, ValueId scores) {
  Emitter& e = n.e;
  const ValueId zero = e.compare(Comparison::le, e.unary(ops::abs, scores), 1e-7);
  const ValueId top = e.reduce(Reduction::max, scores, {1}, true);
  const ValueId powers = e.unary(ops::exp, e.sub(scores, top));
  const ValueId kept =
      e.mul(scores, e.broadcast_to(e.unary(ops::exp, e.unary(ops::neg, top)), e.shape(scores)));
  const ValueId parts = e.select(zero, kept, powers);
  return e.div(parts, e.reduce(Reduction::sum, parts, {1}, true));
}

}  // namespace

ValueId ml_features(NodeContext& n) {
  if (n.rank(0) != 1 && n.rank(0) != 2) n.fail("needs an input of rank 1 or 2");
  const ElementType element = n.element(0);
  if (!is_float(element) && !is_integer(element)) n.fail("needs numbers as an input");
  const ValueId x = n.e.cast(n.input(0), element == ElementType::f64 ? element : ElementType::f32);
  return n.rank(0) == 1 ? n.e.unsqueeze(x, 0) : x;
}

ValueId ml_vector(NodeContext& n, const std::vector<double>& values, ElementType element) {
  return n.e.constant(
      Literal::from_doubles(element, {static_cast<int64_t>(values.size())}, values));
}

ValueId ml_vector(NodeContext& n, const std::vector<float>& values, ElementType element) {
  return ml_vector(n, std::vector<double>(values.begin(), values.end()), element);
}

ValueId transformed(NodeContext& n, ValueId scores, const std::string& name) {
  if (name == "NONE") return scores;
  if (name == "SOFTMAX") return softmax(n, scores, 1);
  if (name == "LOGISTIC") return n.e.unary(ops::sigmoid, scores);
  if (name == "SOFTMAX_ZERO") return softmax_zero(n, scores);
  n.fail(
      fmt::format("attribute \"post_transform\" is \"{}\"; NONE, SOFTMAX, LOGISTIC and "
                  "SOFTMAX_ZERO are possible",
                  name));
}

ValueId post_transform(NodeContext& n, ValueId scores) {
  return transformed(n, scores, n.attr_string("post_transform", "NONE"));
}

Ints class_labels(NodeContext& n, std::string_view ints, std::string_view strings) {
  const OnnxAttribute* words = n.find(strings);
  if (!words || words->strings.empty()) {
    const Ints labels = n.attr_ints(ints).value_or(Ints());
    if (labels.empty()) n.fail(fmt::format("attribute \"{}\" is missing", ints));
    return labels;
  }
  n.note(fmt::format("{}: the result is a class's number, counted from 0: {}", n.loc().node,
                     fmt::join(words->strings, ", ")));
  return counting(static_cast<int64_t>(words->strings.size()));
}

void set_labels(NodeContext& n, ValueId index, const Ints& labels) {
  const int64_t count = static_cast<int64_t>(labels.size());
  n.set(0, n.e.take(n.e.constant(Literal::from_ints({count}, labels)), index, 0));
}

void set_label_of_highest(NodeContext& n, ValueId scores, const Ints& labels) {
  set_labels(n, n.e.arg_reduce(Reduction::max, scores, 1, false, false), labels);
}

void set_classes(NodeContext& n, ValueId scores, const Ints& labels) {
  if (!(n.e.extent(scores, 1) == Dim(static_cast<int64_t>(labels.size())))) {
    n.fail(fmt::format("has {} labels and {} scores", labels.size(),
                       n.e.extent(scores, 1).to_string()));
  }
  set_label_of_highest(n, scores, labels);
  n.set(1, n.e.cast(post_transform(n, scores), ElementType::f32));
}

void set_two_labels(NodeContext& n, ValueId score, const Ints& labels, double threshold) {
  Emitter& e = n.e;
  const ValueId second = e.compare(Comparison::gt, score, threshold);
  set_labels(n, e.reshape(e.cast(second, ElementType::i64), {e.extent(score, 0)}), labels);
}

void set_two_classes(NodeContext& n, ValueId score, const Ints& labels, double threshold,
                     bool is_probability) {
  Emitter& e = n.e;
  set_two_labels(n, score, labels, threshold);
  const bool logistic = n.attr_string("post_transform", "NONE") == "LOGISTIC";
  const bool complement = is_probability && !logistic;
  const ValueId first = complement ? e.sub(e.like(score, 1), score) : e.unary(ops::neg, score);
  ValueId both = e.concat({first, score}, 1);
  if (logistic) both = e.unary(ops::sigmoid, both);
  n.set(1, e.cast(both, ElementType::f32));
}

}  // namespace backcast
