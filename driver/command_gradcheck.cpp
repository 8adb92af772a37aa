// backcast gradcheck MODEL.onnx: the compiled adjoint against given gradients or differences.
#include <fmt/format.h>

#include <memory>

#include "backend/llvm/host.h"
#include "backend/llvm/jit.h"
#include "driver/commands.h"
#include "driver/compiler.h"
#include "driver/gradient_check.h"
#include "driver/import_flags.h"
#include "driver/npy.h"
#include "driver/training.h"
#include "passes/train/gradient_module.h"

namespace backcast {
namespace {

struct Options {
  std::string model, expected, data;
  ImportFlags import_flags;
  TrainingOptions training;
  double relative = 0, step = 0;
  uint64_t seed = 1;
};

/// The gradient, compiled for this machine, on one batch.
class CompiledGradient : public LossFunctionUnderTest {
 public:
  CompiledGradient(const GradientModule& gradient, const std::string& name)
      : target_(host_target()) {
    PipelineOptions options;
    options.name = name;
    program_ = run_pipeline(gradient.module, target_, options).program;
    compiled_ = std::make_unique<CompiledProgram>(program_, target_);
  }

  void set_batch(std::vector<Literal> batch) { batch_ = std::move(batch); }
  std::vector<Literal> evaluate(const std::vector<Literal>& parameters) const override {
    std::vector<Literal> inputs = batch_;
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    return compiled_->run("run", inputs);
  }

 private:
  TargetInfo target_;
  loop::Program program_;
  std::unique_ptr<CompiledProgram> compiled_;
  std::vector<Literal> batch_;
};

Literal converted(const Literal& value, const TensorType& type, const std::string& what) {
  if (value.shape() != static_shape(type.shape)) {
    throw CompileError(fmt::format("{} is {} where the model takes {}", what,
                                   to_string(value.type()), to_string(type)));
  }
  return value.element() == type.element ? value : value.converted_to(type.element);
}

Literal random_value(const TensorType& type, const std::optional<InputRange>& range,
                     uint64_t seed) {
  std::vector<double> values;
  const std::vector<int64_t> shape = static_shape(type.shape);
  const int64_t count = type.element_count().constant();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t index = static_cast<uint64_t>(i);
    if (range) {
      const uint64_t size = static_cast<uint64_t>(range->max - range->min + 1);
      values.push_back(static_cast<double>(range->min) +
                       static_cast<double>((random_bits(seed, index) >> 32) % size));
    } else {
      values.push_back(random_uniform(seed, index));
    }
  }
  return Literal::from_doubles(type.element, shape, values);
}

/// The inputs and the target: from the folder, or random.
std::vector<Literal> batch_of(const GradientModule& gradient, const std::string& folder,
                              uint64_t seed) {
  const Function& main = gradient.module.function("main");
  std::vector<Literal> batch;
  const size_t count = main.params.size() - gradient.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string name = parameter_name(main.node(main.params[i]));
    const TensorType& type = main.type(main.params[i]).tensor();
    const bool is_target = name == gradient.target;
    if (folder.empty()) {
      batch.push_back(random_value(type, is_target ? gradient.range : std::nullopt, seed + i));
      continue;
    }
    const std::string file =
        is_target ? folder + "/target.pb" : fmt::format("{}/input_{}.pb", folder, i);
    batch.push_back(converted(read_tensor(file), type, file));
  }
  return batch;
}

int run(Options& o) {
  const TrainingRequest request = *o.training.request();
  const bool single = !request.promote;
  const double relative = o.relative > 0 ? o.relative : single ? 1e-2 : 1e-4;
  const ImportOptions import_options = o.import_flags.options();
  GradientReport report;
  try {
    const GradientModule gradient =
        build_gradient(training_models(o.model, import_options, request), request.spec);
    CompiledGradient function(gradient, library_name("", o.model));
    std::vector<std::string> names;
    std::vector<Literal> parameters;
    for (const StateVariable& parameter : gradient.parameters) {
      names.push_back(parameter.name);
      parameters.push_back(parameter.initial);
    }
    const std::string folder = o.expected.empty() ? "" : o.expected + "/test_data_set_0";
    function.set_batch(batch_of(gradient, o.data.empty() ? folder : o.data, o.seed));
    const double step = o.step > 0 ? o.step : single ? 1e-2 : 1e-5;
    report = folder.empty() ? check_against_differences(function, names, parameters, step, relative)
                            : check_against_files(function, names, parameters, folder, relative);
  } catch (const CompileError& error) {
    throw CompileError(name_file(error.what(), o.model));
  }
  fmt::print("{:<40} {:>12} {:>12} {:>12}\n", "parameter", "norm", "distance", "allowed");
  for (const GradientError& error : report.parameters) {
    fmt::print("{:<40} {:>12.5g} {:>12.3g} {:>12.3g}{}\n", error.parameter, error.norm,
               error.distance, error.allowed, error.passed() ? "" : "  WRONG");
  }
  fmt::print("loss {:.9g}", report.loss);
  if (report.has_expected_loss) fmt::print(", expected {:.9g}", report.expected_loss);
  fmt::print("\n{}", report.passed() ? "gradients agree" : "gradients DIFFER");
  if (!report.passed() && single && o.expected.empty()) {
    fmt::print("; with --f64 steps are short enough to tell an error from a bend");
  }
  fmt::print("\n");
  return report.passed() ? 0 : 1;
}

}  // namespace

Action add_gradcheck(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->model, "ONNX model")->required();
  app.add_option("--expected", o->expected,
                 "folder whose test_data_set_0 holds inputs, target and gradients; without it the "
                 "gradient is held against central differences");
  app.add_option("--data", o->data,
                 "folder with the batch as input_K.pb and target.pb; default: random numbers, of "
                 "inputs that are integers zeros")
      ->check(CLI::ExistingDirectory);
  o->import_flags.add_to(app);
  app.add_option("--rtol", o->relative, "allowed distance; default 1e-4, without --f64 1e-2");
  app.add_option("--step", o->step, "of the differences; default 1e-5, without --f64 1e-2");
  app.add_option("--seed", o->seed, "of the random batch")->capture_default_str();
  o->training.add(app, true);
  return [o] { return run(*o); };
}

}  // namespace backcast
