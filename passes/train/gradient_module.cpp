#include "passes/train/gradient_module.h"

#include "ir/graph/error.h"
#include "ir/ops/ops.h"
#include "passes/graph/differentiate.h"
#include "passes/train/append_loss.h"
#include "passes/train/copy_nodes.h"
#include "passes/train/lift_parameters.h"
#include "passes/train/trainable.h"

namespace backcast {
namespace {

/// (loss, gradients…) of an adjoint that gives ((loss, …), (gradients…)).
Function flat_gradient(const Module& module, const Function& adjoint, size_t parameters) {
  Builder builder(module, "main");
  const std::vector<ValueId> arguments = copy_parameters(builder, adjoint);
  builder.set_loc({"gradient", "", Origin::made});
  const ValueId both = builder.emit(ops::call, arguments, CallAttrs{{adjoint.name}});
  const ValueId results = builder.emit(ops::get, {both}, GetAttrs{0});
  const ValueId gradients = builder.emit(ops::get, {both}, GetAttrs{1});
  std::vector<ValueId> values{builder.emit(ops::get, {results}, GetAttrs{0})};
  for (size_t i = 0; i < parameters; ++i) {
    values.push_back(builder.emit(ops::get, {gradients}, GetAttrs{static_cast<int64_t>(i)}));
  }
  return builder.finish(builder.emit(ops::tuple, values));
}

}  // namespace

GradientModule build_gradient(const TrainingModels& models, const TrainingSpec& spec) {
  GradientModule result;
  result.module = models.training;
  const Function& model = models.training.function("main");
  const size_t outputs = models.inference_batch.function("main").result_names.size();
  std::vector<std::string> taken = models.parameters;
  taken.insert(taken.end(), model.result_names.begin(), model.result_names.end());
  for (ValueId param : model.params) taken.push_back(parameter_name(model.node(param)));
  LossFunction loss = append_loss(result.module, model, outputs, spec.loss, taken);
  result.target = loss.target;
  result.range = loss.range;
  const std::vector<LiftedTensor> chosen =
      select_trainable(trainable_candidates(loss.function, 0, models.parameters), spec.trainable);
  DifferentiateOptions options;
  for (const LiftedTensor& tensor : chosen) {
    options.wrt.push_back(tensor.name);
    for (const Node& node : loss.function.nodes) {
      if (initializer_name(node) != tensor.name) continue;
      StateVariable parameter;
      parameter.name = tensor.name;
      parameter.initial = lifted_value(node.attrs.as<ConstantAttrs>().value, tensor);
      result.parameters.push_back(std::move(parameter));
      break;
    }
  }
  loss.function = lift_parameters(result.module, loss.function, chosen);
  loss.function.name = "loss";
  options.name = "adjoint";
  result.module.functions["loss"] = loss.function;
  result.module = differentiate(result.module, "loss", options);
  result.module.functions["main"] =
      flat_gradient(result.module, result.module.function("adjoint"), chosen.size());
  return result;
}

}  // namespace backcast
