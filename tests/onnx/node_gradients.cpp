// Differentiates ONNX's node cases with respect to their floating-point inputs and compares with
// differences, everything in f64 under the evaluator.
//
//   node_gradients [--expected FILE] [--filter TEXT] [--every N] [--compiled] [--update]
//                  [--verbose] [FOLDER]
//
// The list holds "case reason" lines; a case may fail only if it is there, and one that is there
// and passes has to be taken out. Inputs are moved a little at random, away from kinks; what is
// compared are derivatives along random directions. With --compiled the gradient is compiled in
// process, too, and compared with the evaluator's.
#include "tests/onnx/node_gradients.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "backend/llvm/host.h"
#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "passes/graph/differentiate.h"
#include "tests/onnx/case_runner.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

constexpr double kStep = 3e-6;  // small, because some cases have 10^5 elements that compete
constexpr double kTolerance = 1e-5;
constexpr int kDirections = 2;  // per input

/// Numbers in [-1, 1] that do not depend on the machine's library.
class Noise {
 public:
  explicit Noise(unsigned seed) : engine_(seed) {}
  double next() { return static_cast<double>(engine_()) / 2147483647.5 - 1; }
  std::vector<double> values(int64_t count) {
    std::vector<double> result;
    for (int64_t i = 0; i < count; ++i) result.push_back(next());
    return result;
  }

 private:
  std::mt19937 engine_;
};

std::vector<double> numbers(const Literal& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.as_double(i));
  return values;
}

Literal doubles(const std::vector<int64_t>& shape, const std::vector<double>& values) {
  return Literal::from_doubles(ElementType::f64, shape, values);
}

std::vector<Literal> float_leaves(const Value& value) {
  if (!value.is_tuple) {
    return is_float(value.tensor.element()) ? std::vector<Literal>{value.tensor}
                                            : std::vector<Literal>{};
  }
  std::vector<Literal> leaves;
  for (const Value& element : value.elements) {
    for (const Literal& leaf : float_leaves(element)) leaves.push_back(leaf);
  }
  return leaves;
}

double dot(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  double sum = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    for (int64_t i = 0; i < a[t].element_count(); ++i) {
      if (b[t].as_double(i) != 0) sum += a[t].as_double(i) * b[t].as_double(i);
    }
  }
  return sum;
}

/// One case: a function of its floating-point inputs.
class Subject {
 public:
  Subject(Module module, std::vector<Value> arguments)
      : module_(std::move(module)), arguments_(std::move(arguments)) {}

  /// Empty when every derivative is as differences have it.
  std::string check() {
    const Function& main = module_.function("main");
    std::vector<size_t> inputs;
    for (size_t i = 0; i < main.params.size(); ++i) {
      const Type& type = main.type(main.params[i]);
      if (type.is_tensor() && is_float(type.tensor().element)) inputs.push_back(i);
    }
    cotangents_ = random_cotangents(float_leaves(evaluate(module_, main, arguments_)));
    if (inputs.empty() || cotangents_.empty()) return {};
    gradient_ = add_vjp(module_, "main");
    verify(gradient_, "vjp");
    gradient_arguments_ = arguments_;
    for (const Literal& cotangent : cotangents_) gradient_arguments_.emplace_back(cotangent);
    const Value adjoints = evaluate(gradient_, gradient_.function("main_vjp"), gradient_arguments_);
    adjoints_ = float_leaves(adjoints);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string wrong = check_input(inputs[i], adjoints.elements.at(i).tensor);
      if (!wrong.empty()) return wrong;
    }
    compared_ = true;
    return {};
  }
  bool compared() const { return compared_; }

  /// The gradient that was checked, compiled for this machine, against the evaluator's.
  std::string check_compiled() const {
    NodeCase compiled;
    compiled.model.model_file = "model.onnx";
    compiled.model.target = host_target();
    Function vjp = gradient_.function("main_vjp");
    vjp.name = "main";
    Module module = gradient_;
    module.functions.erase("main_vjp");
    module.functions.insert_or_assign("main", std::move(vjp));
    PipelineOptions pipeline;
    pipeline.name = "model";
    compiled.model.result = run_pipeline(module, compiled.model.target, pipeline);
    DataSet set;
    for (const Value& argument : gradient_arguments_) set.inputs.push_back(argument.tensor);
    const CaseResult result = run_llvm(compiled, set);
    if (!result.error.empty()) return "compiled: " + result.error;
    for (size_t t = 0; t < adjoints_.size(); ++t) {
      const std::vector<double> expected = numbers(adjoints_[t]);
      double scale = 1e-3;
      for (const double value : expected) {
        if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
      }
      for (size_t i = 0; i < expected.size(); ++i) {
        const double is = result.outputs.at(t).as_double(static_cast<int64_t>(i));
        const bool both_nan = std::isnan(is) && std::isnan(expected[i]);
        if (is == expected[i] || both_nan || std::fabs(is - expected[i]) <= 1e-9 * scale) continue;
        return fmt::format("compiled: adjoint {}[{}] is {:.10g} instead of {:.10g}", t, i, is,
                           expected[i]);
      }
    }
    return {};
  }

 private:
  /// Zero for results that are no finite numbers.
  std::vector<Literal> random_cotangents(const std::vector<Literal>& results) {
    std::vector<Literal> cotangents;
    for (const Literal& result : results) {
      std::vector<double> values = noise_.values(result.element_count());
      for (size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(result.as_double(static_cast<int64_t>(i)))) values[i] = 0;
      }
      cotangents.push_back(doubles(result.shape(), values));
    }
    return cotangents;
  }

  /// The weighted sum of all finite results with one input moved.
  double at(size_t input, const std::vector<double>& direction, double step) const {
    std::vector<Value> arguments = arguments_;
    const Literal& x = arguments_[input].tensor;
    std::vector<double> moved = numbers(x);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
    arguments[input] = doubles(x.shape(), moved);
    return dot(float_leaves(evaluate(module_, module_.function("main"), arguments)), cotangents_);
  }

  std::string check_input(size_t input, const Literal& adjoint) {
    const Literal& x = arguments_[input].tensor;
    if (adjoint.shape() != x.shape()) return fmt::format("input {}: another shape", input);
    const std::vector<double> slopes = numbers(adjoint);
    for (int k = 0; k < kDirections; ++k) {
      std::vector<double> direction = noise_.values(x.element_count());
      double expected = 0, scale = 0;
      for (size_t i = 0; i < slopes.size(); ++i) {
        if (!std::isfinite(x.as_double(static_cast<int64_t>(i)))) {
          direction[i] = 0;
          continue;
        }
        expected += slopes[i] * direction[i];
        scale += std::fabs(slopes[i] * direction[i]);
      }
      const double near = at(input, direction, kStep) - at(input, direction, -kStep);
      const double far = at(input, direction, 2 * kStep) - at(input, direction, -2 * kStep);
      const double found = (8 * near - far) / (12 * kStep);
      if (std::fabs(found - expected) <= kTolerance * std::max(scale, 1e-2)) continue;
      return fmt::format("input {}: the gradient says {:.6g} and differences {:.6g}", input,
                         expected, found);
    }
    return {};
  }

  Module module_;
  std::vector<Value> arguments_;
  std::vector<Literal> cotangents_;
  Module gradient_;
  std::vector<Value> gradient_arguments_;
  std::vector<Literal> adjoints_;
  Noise noise_{11};
  bool compared_ = false;
};

/// The inputs in double, off the round numbers on which kinks lie.
std::vector<Value> moved_inputs(const std::vector<Literal>& inputs) {
  Noise noise(3);
  std::vector<Value> arguments;
  for (const Literal& input : inputs) {
    if (!is_float(input.element())) {
      arguments.emplace_back(input);
      continue;
    }
    std::vector<double> values = numbers(input);
    for (double& value : values) {
      const double step = 1e-2 * noise.next() * (1 + std::fabs(value));
      if (std::isfinite(value)) value += step;
    }
    arguments.emplace_back(doubles(input.shape(), values));
  }
  return arguments;
}

struct Options {
  std::string expected, filter, folder;
  int every = 1;
  bool update = false, verbose = false, compiled = false;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--expected") {
      o.expected = value();
    } else if (word == "--filter") {
      o.filter = value();
    } else if (word == "--every") {
      o.every = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--compiled") {
      o.compiled = true;
    } else if (word == "--update") {
      o.update = true;
    } else if (word == "--verbose") {
      o.verbose = true;
    } else {
      o.folder = word;
    }
  }
  const char* folder = std::getenv("BACKCAST_ONNX_NODES");
  if (o.folder.empty() && folder) o.folder = folder;
  return o;
}

enum class Outcome { compared, nothing_to_do, not_imported, failed };

Outcome judge(const fs::path& folder, bool compiled, std::string& error) {
  std::vector<DataSet> sets;
  Module module;
  try {
    sets = read_data_sets(folder);
    if (sets.empty()) return Outcome::not_imported;
    module = import_model((folder / "model.onnx").string()).module;
  } catch (const std::exception&) {
    return Outcome::not_imported;  // node_cases lists these
  }
  // A seed, which no case gives: what is drawn has no derivative.
  if (sets[0].inputs.size() < module.function("main").params.size()) return Outcome::nothing_to_do;
  try {
    Subject subject(in_double(module), moved_inputs(sets[0].inputs));
    error = subject.check();
    if (error.empty() && compiled && subject.compared()) error = subject.check_compiled();
    if (!error.empty()) return Outcome::failed;
    return subject.compared() ? Outcome::compared : Outcome::nothing_to_do;
  } catch (const std::exception& e) {
    error = e.what();
    error = error.substr(0, error.find('\n'));
    return Outcome::failed;
  }
}

int run(const Options& o) {
  if (o.folder.empty() || !fs::is_directory(o.folder)) {
    fmt::print("no folder of node cases: set BACKCAST_ONNX_NODES\n");
    return 77;
  }
  const std::map<std::string, std::string> listed = read_case_list(o.expected);
  std::map<std::string, std::string> failures;
  std::map<Outcome, int> counts;
  int unexpected = 0, number = 0;
  for (const fs::path& folder : find_cases(o.folder)) {
    const std::string name = folder.filename().string();
    if (!o.filter.empty() && name.find(o.filter) == std::string::npos) continue;
    if (number++ % o.every != 0) continue;
    std::string error;
    const Outcome outcome = judge(folder, o.compiled, error);
    ++counts[outcome];
    if (o.verbose) fmt::print("{} {} {}\n", name, static_cast<int>(outcome), error);
    if (outcome == Outcome::failed) failures[name] = error;
    if (!o.update && (outcome == Outcome::failed) != (listed.count(name) > 0)) {
      fmt::print("{} {}: {}\n", error.empty() ? "PASS, take it from the list:" : "FAIL", name,
                 error);
      ++unexpected;
    }
  }
  if (o.update) {
    std::ofstream out(o.expected);
    out << "# ONNX node cases whose gradient is refused or differs, each with its reason. May only "
           "shrink.\n";
    for (const auto& [name, error] : failures) out << name << " " << error << "\n";
  }
  fmt::print("{} compared, {} without floats on the way, {} not imported, {} listed\n",
             counts[Outcome::compared], counts[Outcome::nothing_to_do],
             counts[Outcome::not_imported], counts[Outcome::failed]);
  return unexpected == 0 && counts[Outcome::compared] > 0 ? 0 : 1;
}

}  // namespace
}  // namespace backcast

int main(int argc, char** argv) { return backcast::run(backcast::parse(argc, argv)); }
