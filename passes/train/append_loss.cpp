#include "passes/train/append_loss.h"

#include <algorithm>
#include <set>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "passes/train/copy_nodes.h"
#include "passes/train/losses.h"

namespace backcast {
namespace {

/// The axis that a softmax body reduces along; -1 when it is none.
int64_t reduced_axis(const Function& body) {
  for (const Node& node : body.nodes) {
    const ReduceAttrs* attrs = node.attrs.get_if<ReduceAttrs>();
    if (attrs) return attrs->axes.size() == 1 ? attrs->axes[0] : -1;
  }
  return -1;
}

/// The value whose softmax `value` is, along the axis that holds the classes; `value` itself when
/// it is no such thing. Reshapes that keep the shape of the whole are looked through.
ValueId before_softmax(const Module& module, const Function& function, ValueId value,
                       const std::vector<std::string>& names) {
  const Shape& shape = function.type(value).tensor().shape;
  const int64_t classes = shape.size() < 2 ? 0 : 1;
  ValueId at = value;
  while (function.node(at).op == &ops::reshape) at = function.node(at).operands[0];
  const Node& node = function.node(at);
  const CompositeAttrs* attrs = node.attrs.get_if<CompositeAttrs>();
  if (!attrs || std::find(names.begin(), names.end(), attrs->name) == names.end()) return value;
  if (!(node.type.tensor().shape == shape)) return value;
  if (reduced_axis(module.function(attrs->function.name)) != classes) return value;
  return node.operands[0];
}

/// What the loss is computed from, given the model's output. KL divergence takes the logarithm of
/// probabilities and nothing else.
ValueId prediction_of(const Module& module, const Function& function, ValueId output,
                      const LossSpec& spec) {
  if (spec.kind == LossKind::cross_entropy) {
    return before_softmax(module, function, output, {"softmax", "log_softmax"});
  }
  if (spec.kind == LossKind::kl_divergence) {
    return before_softmax(module, function, output, {"softmax"});
  }
  const Node& node = function.node(output);
  if (spec.kind == LossKind::binary_cross_entropy && node.op == &ops::sigmoid) {
    return node.operands[0];
  }
  return output;
}

size_t find_output(const Function& function, size_t outputs, const LossSpec& spec) {
  if (outputs == 0) throw CompileError("the model has no output to compute a loss from");
  if (spec.output.empty()) return 0;
  std::string all;
  for (size_t i = 0; i < outputs; ++i) {
    if (function.result_names[i] == spec.output) return i;
    all += (i == 0 ? "" : ", ") + function.result_names[i];
  }
  throw CompileError(fmt::format("the model has no output \"{}\" for the loss; its outputs are {}",
                                 spec.output, all));
}

/// The values of the results within the function itself; invalid where a tuple is not built there.
ValueId result_value(const Function& function, size_t i) {
  if (function.result_type().is_tensor()) return function.result;
  const Node& node = function.node(function.result);
  BC_CHECK(node.op == &ops::tuple, "@{}: the result is no tuple of values", function.name);
  return node.operands[i];
}

/// A target is as large as the output, and its caller has to know how large that is.
void require_known_size(const Function& function, const std::string& output,
                        const TensorType& target) {
  std::set<std::string> symbols;
  for (const Dim& extent : target.shape) extent.collect_symbols(symbols);
  for (const auto& [symbol, node] : measured_symbols(function)) {
    if (!symbols.contains(symbol)) continue;
    throw CompileError(fmt::format(
        "the loss needs a target as large as the output \"{}\", {}, and only the data tells how "
        "large that is; name another output with --loss-output, such as what is chosen from",
        output, to_string(target)));
  }
}

}  // namespace

LossFunction append_loss(const Module& module, const Function& function, size_t outputs,
                         const LossSpec& spec, std::vector<std::string> taken) {
  for (ValueId param : function.params) taken.push_back(parameter_name(function.node(param)));
  taken.insert(taken.end(), function.result_names.begin(), function.result_names.end());
  const size_t chosen = find_output(function, outputs, spec);
  const ValueId prediction = prediction_of(module, function, result_value(function, chosen), spec);
  if (!function.type(prediction).is_tensor()) {
    throw CompileError("the output that the loss looks at is no tensor");
  }
  LossFunction result;
  const std::optional<LossTarget> wanted = target_of(spec, function.type(prediction).tensor());
  if (wanted) require_known_size(function, function.result_names[chosen], wanted->type);
  result.loss = fresh_name(taken, "loss");
  Builder builder(module, "loss");
  std::vector<ValueId> arguments = copy_parameters(builder, function);
  std::optional<Val> target;
  if (wanted) {
    result.target = fresh_name(taken, "target");
    result.range = wanted->range;
    builder.set_loc({result.target, "input", Origin::made});
    target.emplace(builder, builder.parameter(result.target, wanted->type));
  }
  const std::vector<ValueId> now =
      copy_nodes(builder, function, arguments, {function.result, prediction});
  builder.set_loc({"loss", std::string(enum_name(spec.kind)), Origin::made});
  Val predicted(builder, now[static_cast<size_t>(prediction.index)]);
  const bool ends_in_softmax = !(prediction == result_value(function, chosen));
  if (spec.kind == LossKind::kl_divergence && ends_in_softmax) {
    predicted = log_softmax(predicted, class_axis(predicted.type()));
  }
  std::vector<ValueId> results = {loss_of(spec, predicted, target)};
  for (ValueId value : results_of(builder, function, now)) results.push_back(value);
  std::vector<std::string> names = {result.loss};
  names.insert(names.end(), function.result_names.begin(), function.result_names.end());
  result.function = builder.finish(builder.emit(ops::tuple, results), names);
  return result;
}

}  // namespace backcast
