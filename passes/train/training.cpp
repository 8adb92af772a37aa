// Read build_training() first; each step is a file of its own.
#include "passes/train/training.h"

#include <algorithm>

#include "ir/graph/error.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/fold_repeats.h"
#include "passes/train/append_loss.h"
#include "passes/train/copy_nodes.h"
#include "passes/train/lift_parameters.h"
#include "passes/train/merge_module.h"
#include "passes/train/nearest_cut.h"
#include "passes/train/optimizers.h"
#include "passes/train/sink_slices.h"
#include "passes/train/trainable.h"
#include "passes/train/update_functions.h"

namespace backcast {
namespace {

using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Assembly {
 public:
  Assembly(const TrainingModels& models, const TrainingSpec& spec) : models_(models), spec_(spec) {}

  Module build() {
    check_optimizer(spec_.optimizer);
    Function run = merge_module(module_, models_.inference, "run_", "run");
    const Function evaluated = merge_module(module_, models_.inference_batch, "evaluate_", "main");
    const Function trained = merge_module(module_, models_.training, "train_", "main");
    collect_names({&run, &evaluated, &trained});
    outputs_ = evaluated.result_names;

    LossFunction loss = append_loss(module_, trained, outputs_.size(), spec_.loss, taken_);
    candidates_ = trainable_candidates(loss.function, 0, models_.parameters);
    choose(loss.function, trained.result_names);
    const Function unlifted = loss.function;
    loss.function = lift_parameters(module_, loss.function, lifted_);
    LossFunction evaluate = append_loss(module_, evaluated, outputs_.size(), spec_.loss, taken_);
    BC_CHECK(evaluate.loss == loss.loss && evaluate.target == loss.target,
             "the names of the losses differ");
    evaluate.function.name = "evaluate";
    taken_.push_back(loss.loss);
    taken_.push_back(loss.target);

    add_states(loss.function);
    add(lift_parameters(module_, run, lifted_));
    add(lift_parameters(module_, evaluate.function, lifted_));
    add_steps(loss, unlifted);
    add_entries(loss);
    return std::move(module_);
  }

 private:
  void add(Function function) {
    const std::string name = function.name;
    module_.functions[name] = std::move(function);
  }

  void collect_names(const std::vector<const Function*>& functions) {
    taken_.insert(taken_.end(), models_.parameters.begin(), models_.parameters.end());
    taken_.insert(taken_.end(), models_.statistics.begin(), models_.statistics.end());
    for (const Function* function : functions) {
      taken_.insert(taken_.end(), function->result_names.begin(), function->result_names.end());
      for (ValueId param : function->params) {
        const std::string name = parameter_name(function->node(param));
        if (name != models_.step) taken_.push_back(name);  // which the state takes over
      }
    }
  }

  /// Decides what is trained and which statistics are kept; both become states.
  void choose(const Function& loss, const Names& results) {
    if (candidates_.empty()) {
      throw CompileError(
          "the loss depends on no floating-point initializer of the model: nothing can be trained");
    }
    lifted_ = select_trainable(candidates_, spec_.trainable);
    trained_ = lifted_.size();
    for (const std::string& name : models_.statistics) {
      if (contains(results, name)) lifted_.push_back({name});
    }
    std::map<std::string, Literal> values;
    for (const Node& node : loss.nodes) {
      const std::string name = initializer_name(node);
      if (!name.empty()) values.emplace(name, node.attrs.as<ConstantAttrs>().value);
    }
    for (size_t i = 0; i < lifted_.size(); ++i) {
      const LiftedTensor& tensor = lifted_[i];
      const std::map<std::string, Literal>::const_iterator value = values.find(tensor.name);
      BC_CHECK(value != values.end(), "{} is not in the training form", tensor.name);
      StateVariable state;
      state.name = tensor.name;
      state.role = i < trained_ ? StateRole::parameter : StateRole::statistic;
      state.initial = lifted_value(value->second, tensor);
      state.loc = {tensor.name, "initializer", Origin::imported};
      state.slice_axis = tensor.axis;
      state.slice_start = tensor.begin;
      module_.states.push_back(std::move(state));
    }
    check_elements();
    check_bodies();
  }

  /// Copies of an initializer inside of other functions would not learn.
  void check_bodies() const {
    for (const auto& [function_name, function] : module_.functions) {
      for (const Node& node : function.nodes) {
        const std::string name = initializer_name(node);
        const auto is_it = [&](const LiftedTensor& tensor) { return tensor.name == name; };
        if (name.empty() || std::none_of(lifted_.begin(), lifted_.end(), is_it)) continue;
        throw CompileError(
            fmt::format("\"{}\" is a constant of @{} and cannot be trained; leave it "
                        "out with --trainable",
                        name, function_name));
      }
    }
  }

  void check_elements() const {
    for (size_t i = 0; i < trained_; ++i) {
      const StateVariable& state = module_.states[i];
      const ElementType element = state.initial.element();
      if (element != ElementType::f32 && element != ElementType::f64) {
        throw CompileError(
            fmt::format("\"{}\" is {}; only f32 and f64 can be trained, leave it "
                        "out with --trainable",
                        state.name, to_string(state.initial.type())));
      }
      if (element == module_.states[0].initial.element()) continue;
      throw CompileError(fmt::format(
          "\"{}\" is {} and \"{}\" is {}; what is trained must be of one element type, choose with "
          "--trainable",
          module_.states[0].name, to_string(module_.states[0].initial.type()), state.name,
          to_string(state.initial.type())));
    }
  }

  std::string add_state(const std::string& wish, StateRole role, Literal initial) {
    StateVariable state;
    state.name = fresh_name(taken_, wish);
    state.role = role;
    state.initial = std::move(initial);
    state.loc = {state.name, "state", Origin::made};
    module_.states.push_back(state);
    return state.name;
  }

  static Literal filled(const TensorType& type, double value) {
    const std::vector<int64_t> shape = static_shape(type.shape);
    const size_t count = static_cast<size_t>(type.element_count().constant());
    return Literal::from_doubles(type.element, shape, std::vector<double>(count, value));
  }

  void add_states(const Function& loss) {
    for (size_t i = 0; i < trained_; ++i) {
      TrainedParameter parameter;
      parameter.name = module_.states[i].name;
      parameter.type = module_.states[i].initial.type();
      for (const Slot& slot : slots_of(spec_.optimizer)) {
        parameter.slots.push_back(add_state(parameter.name + "." + slot.name, StateRole::slot,
                                            filled(parameter.type, slot.initial)));
      }
      names_.parameters.push_back(std::move(parameter));
    }
    for (TrainedParameter& parameter : names_.parameters) {
      if (spec_.accumulate == 0) break;
      parameter.gradient =
          add_state(parameter.name + ".gradient", StateRole::gradient, filled(parameter.type, 0));
    }
    const Literal zero = Literal::scalar(ElementType::i32, 0);
    if (spec_.accumulate > 0) names_.accumulated = add_state("accumulated", StateRole::slot, zero);
    names_.step = add_state(models_.step.empty() ? "step" : models_.step, StateRole::step, zero);
    names_.rate = add_state("learning_rate", StateRole::rate,
                            Literal::scalar(ElementType::f32, spec_.optimizer.rate));
    for (ValueId param : loss.params) {
      const std::string name = parameter_name(loss.node(param));
      if (!models_.step.empty() && name == models_.step) names_.model_step = name;
      if (models_.generator.empty() || name != models_.generator) continue;
      StateVariable state;
      state.name = name;
      state.role = StateRole::generator;
      state.initial = filled({ElementType::u32, {2}}, 0);
      state.loc = {name, "state", Origin::made};
      module_.states.push_back(std::move(state));
    }
  }

  void add_steps(const LossFunction& loss, const Function& unlifted) {
    DifferentiateOptions options;
    for (const TrainedParameter& parameter : names_.parameters) {
      options.wrt.push_back(parameter.name);
    }
    options.name = "adjoint";
    module_.functions["loss"] = loss.function;
    module_ = fold_repeats(module_);  // gradients have as many products less
    try {
      module_ = differentiate(module_, "loss", options);
    } catch (const CompileError& error) {
      const int64_t layers = nearest_cut(module_, unlifted, candidates_);
      if (layers == 0) throw;
      throw CompileError(fmt::format("{}; what comes after it can be trained: --trainable last:{}",
                                     error.what(), layers));
    }
    const Function adjoint = module_.function("adjoint");
    module_.functions.erase("loss");
    module_.functions.erase("adjoint");
    Function step = make_train_step(module_, adjoint, loss.function.result_names, names_, spec_);
    const bool is_partial = std::any_of(lifted_.begin(), lifted_.end(),
                                        [](const LiftedTensor& t) { return t.axis >= 0; });
    add(is_partial ? sink_slices(module_, step) : std::move(step));
    if (spec_.accumulate > 0) add(make_apply(module_, names_, spec_));
    module_.accumulate = spec_.accumulate;
  }

  void add_entries(const LossFunction& loss) {
    Entry run{"run", "run", "", {}, {}};
    Entry evaluate{"evaluate", "evaluate", "", {}, {outputs_.begin(), outputs_.end()}};
    if (loss.range) evaluate.ranges[loss.target] = *loss.range;
    Entry step = evaluate;
    step.name = step.function = "train_step";
    step.guard = loss.loss;
    module_.entries = {run, evaluate, step};
    if (spec_.accumulate > 0) module_.entries.push_back({"apply", "apply", "", {}, {}});
  }

  const TrainingModels& models_;
  const TrainingSpec& spec_;
  Module module_;
  Names taken_, outputs_;
  std::vector<TrainableCandidate> candidates_;
  std::vector<LiftedTensor> lifted_;  // parameters, then statistics
  size_t trained_ = 0;
  TrainingNames names_;
};

}  // namespace

Names chosen_parameters(const Module& training, size_t outputs, const Names& parameters,
                        const TrainingSpec& spec) {
  const LossFunction loss =
      append_loss(training, training.function("main"), outputs, spec.loss, parameters);
  const std::vector<TrainableCandidate> candidates =
      trainable_candidates(loss.function, 0, parameters);
  Names names;
  if (candidates.empty()) return names;
  for (const LiftedTensor& tensor : select_trainable(candidates, spec.trainable)) {
    names.push_back(tensor.name);
  }
  return names;
}

Module build_training(const TrainingModels& models, const TrainingSpec& spec) {
  return Assembly(models, spec).build();
}

}  // namespace backcast
