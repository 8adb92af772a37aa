#include "passes/train/update_functions.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "passes/train/copy_nodes.h"
#include "passes/train/optimizers.h"

namespace backcast {
namespace {

const TensorType kCounter{ElementType::i32, {}};
const TensorType kRate{ElementType::f32, {}};

/// A function whose results are collected together with their names.
class UpdateBuilder {
 public:
  UpdateBuilder(const Module& module, std::string name) : builder(module, std::move(name)) {}

  void parameter(const std::string& name, const TensorType& type) {
    builder.set_loc({name, "state", Origin::made});
    values_.emplace(name, builder.parameter(name, type));
  }
  void know(const std::string& name, ValueId id) { values_.emplace(name, id); }
  bool knows(const std::string& name) const { return values_.contains(name); }
  Val value(const std::string& name) {
    const std::map<std::string, ValueId>::const_iterator found = values_.find(name);
    BC_CHECK(found != values_.end(), "there is no state {}", name);
    return Val(builder, found->second);
  }
  void result(const std::string& name, ValueId id) {
    results_.push_back(id);
    names_.push_back(name);
  }
  Function finish() {
    builder.set_loc({"results", "", Origin::made});
    const ValueId tuple = builder.emit(ops::tuple, results_);
    return builder.finish(tuple, names_);
  }

  Builder builder;

 private:
  std::map<std::string, ValueId> values_;
  std::vector<ValueId> results_;
  std::vector<std::string> names_;
};

void add_optimizer_parameters(UpdateBuilder& build, const TrainingNames& names) {
  for (const TrainedParameter& parameter : names.parameters) {
    for (const std::string& slot : parameter.slots) build.parameter(slot, parameter.type);
  }
  build.parameter(names.rate, kRate);
}

std::vector<size_t> order_of_file(const TrainingNames& names) {
  std::vector<size_t> order(names.parameters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

/// The parameters by the place of their first use. A file may list them in any order (quantisers
/// put all biases last), and updates far from their gradients keep these alive.
std::vector<size_t> order_of_use(const Function& function, const TrainingNames& names) {
  std::map<std::string, int64_t> first;
  for (int64_t i = function.size(); i-- > 0;) {
    for (const ValueId operand : function.node(ValueId(i)).operands) {
      const Node& node = function.node(operand);
      if (node.op == &ops::parameter) first[parameter_name(node)] = i;
    }
  }
  std::vector<size_t> order = order_of_file(names);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return first[names.parameters[i].name]; });
  return order;
}

/// The optimizer's nodes, parameters in `order`; results are the new parameters, slots and step.
void add_update(UpdateBuilder& build, std::vector<Val> gradients, const TrainingNames& names,
                const OptimizerSpec& spec, const std::vector<size_t>& order) {
  const std::string kind(enum_name(spec.kind));
  build.builder.set_loc({"optimizer", kind, Origin::made});
  const Val step = build.value(names.step);
  const ElementType element = names.parameters[0].type.element;
  const Optimizer optimizer(spec, cast(build.value(names.rate), element), step);
  gradients = optimizer.clip(std::move(gradients));
  std::map<size_t, Optimizer::Update> updates;
  for (const size_t i : order) {
    const TrainedParameter& parameter = names.parameters[i];
    build.builder.set_loc({parameter.name, kind, Origin::made});
    std::vector<Val> slots;
    for (const std::string& slot : parameter.slots) slots.push_back(build.value(slot));
    updates.emplace(i, optimizer.update(build.value(parameter.name), gradients[i], slots));
  }
  for (const auto& [i, update] : updates) {
    const TrainedParameter& parameter = names.parameters[i];
    build.result(parameter.name, update.parameter);
    for (size_t k = 0; k < update.slots.size(); ++k) {
      build.result(parameter.slots[k], update.slots[k]);
    }
  }
  build.builder.set_loc({"optimizer", kind, Origin::made});
  build.result(names.step, step + 1.0);
}

/// The elements of tuple number `index` of the adjoint's result.
std::vector<ValueId> part_of_result(const Function& adjoint, const std::vector<ValueId>& now,
                                    size_t index) {
  const Node& pair = adjoint.node(adjoint.result);
  BC_CHECK(pair.op == &ops::tuple && pair.operands.size() == 2, "@{}: no pair", adjoint.name);
  const Node& part = adjoint.node(pair.operands[index]);
  BC_CHECK(part.op == &ops::tuple, "@{}: no tuple of results", adjoint.name);
  std::vector<ValueId> values;
  for (ValueId operand : part.operands) values.push_back(now[static_cast<size_t>(operand.index)]);
  return values;
}

}  // namespace

Function make_train_step(const Module& module, const Function& adjoint,
                         const std::vector<std::string>& result_names, const TrainingNames& names,
                         const TrainingSpec& spec) {
  UpdateBuilder build(module, "train_step");
  const bool accumulates = spec.accumulate > 0;
  for (ValueId param : adjoint.params) {
    const Node& node = adjoint.node(param);
    if (parameter_name(node) == names.model_step) continue;
    build.builder.set_loc(node.loc);
    build.know(parameter_name(node), build.builder.parameter(parameter_name(node), node.type));
  }
  if (accumulates) {
    for (const TrainedParameter& p : names.parameters) build.parameter(p.gradient, p.type);
    build.parameter(names.accumulated, kCounter);
  } else {
    add_optimizer_parameters(build, names);
  }
  if (!accumulates || !names.model_step.empty()) build.parameter(names.step, kCounter);
  // Every batch of an update needs random numbers of its own.
  if (!names.model_step.empty() && accumulates) {
    build.builder.set_loc({names.step, "generator", Origin::made});
    const Val number = build.value(names.step) * static_cast<double>(spec.accumulate) +
                       build.value(names.accumulated);
    build.know("number of the batch", number);
  }
  std::vector<ValueId> arguments;
  for (ValueId param : adjoint.params) {
    const std::string name = parameter_name(adjoint.node(param));
    const bool is_step = !names.model_step.empty() && name == names.model_step;
    arguments.push_back(
        build.value(is_step ? (accumulates ? "number of the batch" : names.step) : name));
  }
  const std::vector<ValueId> now = copy_nodes(build.builder, adjoint, arguments, {adjoint.result});
  const std::vector<ValueId> results = part_of_result(adjoint, now, 0);
  for (size_t i = 0; i < results.size(); ++i) build.result(result_names[i], results[i]);
  std::vector<Val> gradients;
  for (ValueId id : part_of_result(adjoint, now, 1)) gradients.emplace_back(build.builder, id);
  if (!accumulates) {
    add_update(build, std::move(gradients), names, spec.optimizer, order_of_use(adjoint, names));
    return build.finish();
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::string& state = names.parameters[i].gradient;
    build.builder.set_loc({state, "accumulate", Origin::made});
    build.result(state, build.value(state) + gradients[i]);
  }
  build.result(names.accumulated, build.value(names.accumulated) + 1.0);
  return build.finish();
}

Function make_apply(const Module& module, const TrainingNames& names, const TrainingSpec& spec) {
  UpdateBuilder build(module, "apply");
  for (const TrainedParameter& p : names.parameters) build.parameter(p.name, p.type);
  for (const TrainedParameter& p : names.parameters) build.parameter(p.gradient, p.type);
  add_optimizer_parameters(build, names);
  build.parameter(names.step, kCounter);
  build.parameter(names.accumulated, kCounter);
  build.builder.set_loc({names.accumulated, "accumulate", Origin::made});
  const Val counted = build.value(names.accumulated);
  // Without any batch the sum is zero, and so is its mean.
  const Val batches = cast(max(counted, counted.like(1)), names.parameters[0].type.element);
  std::vector<Val> means;
  for (const TrainedParameter& p : names.parameters) {
    build.builder.set_loc({p.gradient, "accumulate", Origin::made});
    const Val total = build.value(p.gradient);
    means.push_back(total / (total.shape().empty() ? batches : broadcast(batches, total.shape())));
  }
  add_update(build, std::move(means), names, spec.optimizer, order_of_file(names));
  for (const TrainedParameter& p : names.parameters) {
    build.builder.set_loc({p.gradient, "accumulate", Origin::made});
    build.result(p.gradient, zeros_like(build.value(p.gradient)));
  }
  build.result(names.accumulated, counted.like(0));
  return build.finish();
}

}  // namespace backcast
