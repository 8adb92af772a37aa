#include "driver/training.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <set>

#include "driver/compiler.h"
#include "passes/graph/promote.h"
#include "passes/train/trainable.h"

namespace backcast {

struct TrainingOptions::Words {
  bool train = false, probabilities = false, promote = false, centered = false;
  std::string loss = "cross-entropy", reduction = "mean", output, optimizer = "sgd", schedule;
  std::string trainable_file;
  std::vector<double> class_weights;
  std::optional<int64_t> ignore_index;
  double label_smoothing = 0, delta = 1;
  OptimizerSpec numbers;
  std::vector<std::string> trainable;
  int64_t batch = 0, accumulate = 0, warmup = 0;
};

void TrainingOptions::add(CLI::App& app, bool always) {
  words_ = std::make_shared<Words>();
  Words& w = *words_;
  const std::string group = "Training";
  if (always) {
    w.train = true;
  } else {
    app.add_flag("--train", w.train, "the library also trains")->group(group);
  }
  const auto option = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->group(group);
  };
  option("--loss", w.loss,
         "cross-entropy, binary-cross-entropy, mse, l1, huber, kl-divergence, or output: a scalar "
         "the model computes")
      ->capture_default_str();
  option("--loss-output", w.output,
         "the model's output that the loss looks at; default: the first");
  option("--reduction", w.reduction, "of the loss: mean, sum or batchmean")->capture_default_str();
  app.add_flag("--probabilities", w.probabilities, "targets are probabilities, not labels")
      ->group(group);
  option("--class-weights", w.class_weights, "one per class, separated by commas")->delimiter(',');
  option("--ignore-index", w.ignore_index, "a label that counts nothing");
  option("--label-smoothing", w.label_smoothing, "from 0 to 1");
  option("--huber-delta", w.delta, "where Huber's parabola ends")->capture_default_str();
  option("--optimizer", w.optimizer, "sgd, momentum, nesterov, adam, adamw, rmsprop or adagrad")
      ->capture_default_str();
  option("--rate", w.numbers.rate, "learning rate; the library can change it")
      ->capture_default_str();
  option("--momentum", w.numbers.momentum, "default 0.9; rmsprop: 0");
  option("--beta1", w.numbers.beta1, "of Adam")->capture_default_str();
  option("--beta2", w.numbers.beta2, "of Adam")->capture_default_str();
  option("--epsilon", w.numbers.epsilon, "default 1e-8; adagrad: 1e-10");
  option("--alpha", w.numbers.alpha, "of RMSprop")->capture_default_str();
  app.add_flag("--centered", w.numbers.centered, "RMSprop by the variance")->group(group);
  option("--weight-decay", w.numbers.weight_decay, "L2: added to the gradient");
  option("--decoupled-decay", w.numbers.decoupled_decay, "weights shrink by it; adamw: 0.01");
  option("--clip-value", w.numbers.clip_value, "bound of every element of a gradient");
  option("--clip-norm", w.numbers.clip_norm, "bound of the norm of all gradients together");
  option("--schedule", w.schedule, "of the rate: step:EVERY[:FACTOR] or cosine:TOTAL[:LEAST]");
  option("--warmup", w.warmup, "updates until the rate is whole");
  option("--trainable", w.trainable,
         "all, bias, norm, last:N, a regular expression, or NAME[AXIS,BEGIN:END]; repeatable; "
         "@FILE: one per line; quantised weights that are named learn in floating point, "
         "numbers without axes learn when they are named themselves");
  option("--batch", w.batch, "examples of a training step");
  option("--accumulate", w.accumulate, "steps per update, which a call of its own then does");
  app.add_flag("--f64", w.promote, "compute in double precision")->group(group);
}

namespace {

double number(const std::string& text, const std::string& option) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw CompileError(fmt::format("{}: \"{}\" is no number", option, text));
  }
  return value;
}

template <class E>
E word(const std::string& text, const std::string& option) {
  std::string all;
  for (size_t i = 0; i < std::size(EnumNames<E>::names); ++i) {
    if (EnumNames<E>::names[i] == text) return static_cast<E>(i);
    all += (all.empty() ? "" : ", ") + std::string(EnumNames<E>::names[i]);
  }
  throw CompileError(fmt::format("{} {}: choose one of {}", option, text, all));
}

Schedule schedule_of(const std::string& text, int64_t warmup) {
  Schedule schedule;
  schedule.warmup = warmup;
  if (text.empty()) return schedule;
  std::vector<std::string> parts;
  std::string rest = text;
  for (size_t colon; (colon = rest.find(':')) != std::string::npos; rest = rest.substr(colon + 1)) {
    parts.push_back(rest.substr(0, colon));
  }
  parts.push_back(rest);
  schedule.kind = word<ScheduleKind>(parts[0], "--schedule");
  const bool steps = schedule.kind == ScheduleKind::step;
  if (schedule.kind == ScheduleKind::constant ? parts.size() > 1
                                              : parts.size() < 2 || parts.size() > 3) {
    throw CompileError("--schedule " + text +
                       ": write step:EVERY[:FACTOR] or cosine:TOTAL[:LEAST]");
  }
  if (parts.size() > 1) {
    const int64_t length = static_cast<int64_t>(number(parts[1], "--schedule"));
    (steps ? schedule.every : schedule.total) = length;
  }
  if (parts.size() > 2) (steps ? schedule.factor : schedule.least) = number(parts[2], "--schedule");
  return schedule;
}

}  // namespace

std::optional<TrainingRequest> TrainingOptions::request() const {
  const Words& w = *words_;
  if (!w.train) return std::nullopt;
  TrainingRequest request;
  request.spec.loss.kind = word<LossKind>(w.loss, "--loss");
  request.spec.loss.reduction = word<LossReduction>(w.reduction, "--reduction");
  request.spec.loss.output = w.output;
  request.spec.loss.probabilities = w.probabilities;
  request.spec.loss.class_weights = w.class_weights;
  request.spec.loss.ignore_index = w.ignore_index;
  request.spec.loss.label_smoothing = w.label_smoothing;
  request.spec.loss.delta = w.delta;
  request.spec.optimizer = w.numbers;
  request.spec.optimizer.kind = word<OptimizerKind>(w.optimizer, "--optimizer");
  request.spec.optimizer.schedule = schedule_of(w.schedule, w.warmup);
  for (const std::string& expression : w.trainable) {
    const bool file = expression.starts_with('@');
    for (std::string& part : parse_trainable(file ? read_file(expression.substr(1)) : expression)) {
      request.spec.trainable.expressions.push_back(std::move(part));
    }
  }
  if (w.batch < 0) throw CompileError("--batch: expected a number from 1 on");
  if (w.accumulate < 0) throw CompileError("--accumulate: expected a number from 1 on");
  request.spec.accumulate = w.accumulate;
  request.batch = w.batch;
  request.promote = w.promote;
  return request;
}

namespace {

/// What learns of a model that quantises, and so is not rounded: what the request names, or what
/// lies behind all that is rounded.
std::set<std::string> learning(const std::string& path, ImportOptions options,
                               const TrainingRequest& request, const ImportedModel& quantised) {
  const bool by_name = !request.spec.trainable.expressions.empty();
  std::vector<std::string> names;
  if (by_name) {
    for (const auto* list : {&quantised.parameter_names, &quantised.quantised_weights}) {
      options.unquantised.insert(list->begin(), list->end());
    }
    const ImportedModel model = import_model(path, options);
    names = chosen_parameters(model.module, model.output_names.size(), model.parameter_names,
                              request.spec);
  } else if (!quantised.parameter_names.empty()) {
    names = chosen_parameters(quantised.module, quantised.output_names.size(),
                              quantised.parameter_names, request.spec);
  }
  if (names.empty()) {
    throw CompileError(
        "the model is quantised, and nothing learns through values that are rounded: --trainable "
        "last:1 keeps the weights of the last layer in floating point, where they learn, "
        "--trainable all all of them");
  }
  return {names.begin(), names.end()};
}

/// What learns does so in single precision, whatever the model keeps it in.
void promote_halves(TrainingModels& models, const TrainingRequest& request, size_t outputs) {
  if (!has_halves(models.training)) return;
  const std::vector<std::string> names =
      chosen_parameters(models.training, outputs, models.parameters, request.spec);
  HalfPromotion how{{names.begin(), names.end()}};
  how.learned.insert(models.statistics.begin(), models.statistics.end());
  models.inference = promote_halves(models.inference, how);
  how.results = true;  // which losses look at
  models.inference_batch = promote_halves(models.inference_batch, how);
  models.training = promote_halves(models.training, how);
}

}  // namespace

TrainingModels training_models(const std::string& path, const ImportOptions& options,
                               const TrainingRequest& request, ImportedModel* run) {
  ImportOptions inference = options;
  inference.mode = ImportMode::inference;
  ImportOptions batch = inference;
  if (request.batch > 0) batch.batch = request.batch;
  ImportOptions training = batch;
  training.mode = ImportMode::training;
  ImportedModel trained = import_model(path, training);
  if (trained.quantises || !trained.quantised_weights.empty()) {
    training.unquantised = learning(path, training, request, trained);
    inference.unquantised = batch.unquantised = training.unquantised;
    const size_t fixed = trained.quantised_weights.size();
    trained = import_model(path, training);
    if (fixed > 0 && request.spec.trainable.expressions.empty()) {
      trained.notes.push_back(fmt::format(
          "{} quantised weight{} as {}; what --trainable names learns, in floating point", fixed,
          fixed == 1 ? " stays" : "s stay", fixed == 1 ? "it is" : "they are"));
    }
  }
  const ImportedModel alone = import_model(path, inference);
  TrainingModels models;
  models.inference = alone.module;
  models.inference_batch = request.batch > 0 ? import_model(path, batch).module : alone.module;
  models.training = trained.module;
  models.parameters = trained.parameter_names;
  models.statistics = trained.updated_statistics;
  models.generator = trained.generator;
  models.step = trained.step;
  if (request.promote) {
    for (Module* module : {&models.inference, &models.inference_batch, &models.training}) {
      *module = promote_f64(*module);
    }
  }
  promote_halves(models, request, trained.output_names.size());
  if (run) {
    *run = alone;
    for (const std::string& note : trained.notes) {
      const bool known = std::find(run->notes.begin(), run->notes.end(), note) != run->notes.end();
      if (!known) run->notes.push_back(note);
    }
  }
  return models;
}

namespace {

/// Of the first input, which --batch sets; 0 where it is open.
int64_t leading_extent(const Module& module) {
  const Function& main = module.function("main");
  if (main.params.empty()) return 0;
  const Dims& shape = main.type(main.params[0]).tensor().shape;
  return shape.empty() || !shape[0].is_constant() ? 0 : shape[0].constant();
}

}  // namespace

ImportedTraining import_training(const std::string& path, const ImportOptions& options,
                                 const TrainingRequest& request) {
  ImportedTraining result;
  const TrainingModels models = training_models(path, options, request, &result.model);
  result.module = build_training(models, request.spec);
  result.module.batch = leading_extent(models.training);
  return result;
}

}  // namespace backcast
