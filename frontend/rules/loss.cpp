// Losses of classification.
#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// -weight[label] * log_probability[label] per element, reduced. Labels equal to ignore_index
/// count nothing; they need not be classes.
ValueId negative_log_likelihood(NodeContext& n, ValueId log_probability) {
  Emitter& e = n.e;
  const ElementType element = e.element(log_probability);
  const int64_t rank = e.rank(log_probability);
  if (rank < 2) n.fail("needs scores of rank 2 or more, [N, C, …]");
  if (n.rank(1) != rank - 1) n.fail("the labels need one axis less than the scores");
  const std::string reduction = n.attr_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    n.fail(fmt::format("attribute \"reduction\" is \"{}\"; none, sum and mean are possible",
                       reduction));
  }
  ValueId label = e.cast(n.input(1), ElementType::i64);
  const bool ignores = n.has_attr("ignore_index");
  ValueId weight;
  if (ignores) {
    const ValueId ignored =
        e.compare(Comparison::eq, label, e.integer(n.attr_int("ignore_index", 0)));
    label = e.select(ignored, e.integer(0), label);
    weight = e.select(ignored, e.scalar(element, 0), e.scalar(element, 1));
  }
  if (n.has(2)) {
    if (n.rank(2) != 1) n.fail("the weights have to be a vector");
    const ValueId of_class = e.take(n.input(2), label, 0);
    weight = weight.valid() ? e.mul(weight, of_class) : of_class;
  }
  const ValueId picked = take_along(e, log_probability, e.unsqueeze(label, 1), 1);
  ValueId loss = e.unary(ops::neg, e.reshape(picked, e.shape(label)));
  if (weight.valid()) loss = e.mul(loss, weight);
  if (reduction == "none") return loss;
  const Ints axes = counting(rank - 1);
  const ValueId total = e.reduce(Reduction::sum, loss, axes);
  if (reduction == "sum") return total;
  return e.div(total,
               weight.valid() ? e.reduce(Reduction::sum, weight, axes) : e.count(loss, axes));
}

void negative_log_likelihood_loss(NodeContext& n) {
  n.result(negative_log_likelihood(n, n.input(0)));
}

void softmax_cross_entropy_loss(NodeContext& n) {
  if (n.rank(0) < 2) n.fail("needs scores of rank 2 or more, [N, C, …]");
  const ValueId log_probability = log_softmax(n, n.input(0), 1);
  n.result(negative_log_likelihood(n, log_probability));
  n.set(1, log_probability);
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"NegativeLogLikelihoodLoss", 12, kNew, 2, 3, negative_log_likelihood_loss,
     "ignore_index:i reduction:s"},
    {"SoftmaxCrossEntropyLoss", 12, kNew, 2, 3, softmax_cross_entropy_loss,
     "ignore_index:i reduction:s"},
};

}  // namespace

std::span<const OperatorRule> loss_rules() { return kRules; }

}  // namespace backcast
