#include "driver/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <regex>

#include "driver/observed_ranges.h"
#include "frontend/onnx_proto.h"
#include "frontend/quantise_weights.h"
#include "frontend/weight_moments.h"
#include "passes/graph/constant_value.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

StaysFloat matcher(const char* option, const std::vector<std::string>& patterns) {
  std::vector<std::regex> expressions;
  for (const std::string& pattern : patterns) {
    try {
      expressions.emplace_back(pattern);
    } catch (const std::regex_error& error) {
      throw CompileError(fmt::format("{} {}: {}", option, pattern, error.what()));
    }
  }
  return [expressions](const OnnxNode& node) {
    return std::ranges::any_of(expressions, [&](const std::regex& expression) {
      return std::regex_search(name_of(node), expression);
    });
  };
}

/// A model whose values of the plan are results, behind its outputs.
std::shared_ptr<const RunningModel> observed_model(const QuantisationPlan& plan,
                                                   CompileRequest request) {
  for (const QuantisationPlan::Cell& cell : plan.cells) {
    if (!cell.is_named) request.import_options.named_outputs.push_back({cell.node, 0, cell.states});
  }
  for (const QuantisationPlan::Observed& value : plan.observed()) {
    request.import_options.observed.push_back(value.name);
  }
  return std::make_shared<const RunningModel>(request);
}

/// The values of constants that nodes compute.
ComputedConstants computed_constants(const std::set<std::string>& names,
                                     const CompileRequest& request) {
  ComputedConstants values;
  if (names.empty()) return values;
  ImportOptions options = request.import_options;
  options.observed.assign(names.begin(), names.end());
  const ImportedModel model = import_model(request.model, options);
  const Function& main = model.module.function("main");
  const std::vector<ValueId>& results = main.node(main.result).operands;
  auto result = results.end() - static_cast<std::ptrdiff_t>(names.size());
  for (const std::string& name : names) {
    BC_CHECK(is_made_of_constants(main, *result), "\"{}\" is no constant", name);
    values.emplace(name, constant_value(model.module, main, *result++).tensor);
  }
  return values;
}

/// What decides about formats: the last results of a model, for all calls.
class ObservedValues {
 public:
  ObservedValues(const QuantisationPlan& plan, const RunningModel& model, const Calls& calls)
      : observed_(plan.observed()), model_(model), calls_(calls), all_(observed_.size()) {
    each([&](size_t i, double x) { widen(all_[i], x); });
  }

  std::map<std::string, ObservedRange> ranges(Ranges kind) const {
    std::vector<ObservedRange> chosen = all_;
    if (kind == Ranges::least_error) {
      std::vector<Histogram> histograms(all_.begin(), all_.end());
      each([&](size_t i, double x) { histograms[i].add(x); });
      for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = histograms[i].least_error();
    }
    std::map<std::string, ObservedRange> ranges;
    for (size_t i = 0; i < chosen.size(); ++i) ranges[observed_[i].name] = chosen[i];
    return ranges;
  }

 private:
  template <class Visit>
  void each(const Visit& visit) const {
    const size_t first = model_.output_names().size() - observed_.size();
    for (const std::vector<Literal>& inputs : calls_) {
      const std::vector<Literal> results = model_.run(inputs);
      for (size_t i = 0; i < observed_.size(); ++i) {
        for (const double x : results[first + i].as_doubles()) visit(i, x);
      }
    }
  }

  std::vector<QuantisationPlan::Observed> observed_;
  const RunningModel& model_;
  const Calls& calls_;
  std::vector<ObservedRange> all_;
};

/// What weights of few bits are multiplied by, added up over all calls of a model with the nodes.
std::map<GraphEdit::Place, std::vector<Moments>> moments_of(const MomentNodes& nodes,
                                                            CompileRequest request,
                                                            std::string bytes, const Calls& calls) {
  std::map<GraphEdit::Place, std::vector<Moments>> moments;
  if (nodes.values.empty()) return moments;
  request.bytes = std::move(bytes);
  for (const auto& [place, name] : nodes.values) {
    request.import_options.observed.push_back(name);
  }
  const RunningModel model(request);
  const size_t first = model.output_names().size() - nodes.values.size();
  for (const std::vector<Literal>& inputs : calls) {
    const std::vector<Literal> results = model.run(inputs);
    size_t result = first;
    for (const auto& [place, name] : nodes.values) {
      const Literal& value = results[result++];
      std::vector<Moments>& groups = moments[place];
      groups.resize(static_cast<size_t>(value.shape()[1]));
      const std::vector<double> sums = value.as_doubles();
      const size_t size = static_cast<size_t>(value.shape()[2]), square = size * size;
      for (size_t i = 0; i < sums.size(); ++i) {
        Moments& group = groups[i / square % groups.size()];
        group.size = size;
        group.sums.resize(square);
        group.sums[i % square] += sums[i];
      }
    }
  }
  return moments;
}

Literal quantised(const Literal& value, const ValueFormat& format) {
  std::vector<double> steps = value.as_doubles();
  for (double& x : steps) {
    const double step = std::nearbyint(x / format.scale) + static_cast<double>(format.zero);
    x = std::clamp(step, -128.0, 127.0);
  }
  return Literal::from_doubles(ElementType::i8, value.shape(), steps);
}

void add(const Literal& expected, const Literal& actual, ValueError& error) {
  const std::vector<double> want = expected.as_doubles(), have = actual.as_doubles();
  for (size_t i = 0; i < std::min(want.size(), have.size()); ++i) {
    error.signal += want[i] * want[i];
    error.noise += (want[i] - have[i]) * (want[i] - have[i]);
    error.largest = std::max(error.largest, std::abs(want[i] - have[i]));
  }
  const int64_t row = expected.shape().empty() ? 1 : expected.shape().back();
  if (row < 2 || want.size() != have.size()) return;
  const auto largest = [&](const std::vector<double>& values, int64_t begin) {
    return std::max_element(values.begin() + begin, values.begin() + begin + row) - values.begin();
  };
  for (int64_t begin = 0; begin < static_cast<int64_t>(want.size()); begin += row) {
    ++error.rows;
    if (largest(want, begin) == largest(have, begin)) ++error.same;
  }
}

/// `what`: that there is none of.
CompileError nothing_to_quantise(const char* what, const std::vector<std::string>& left) {
  if (left.empty()) return CompileError(fmt::format("there is nothing to quantise: {}", what));
  return CompileError(fmt::format("there is nothing to quantise:\n  {}", fmt::join(left, "\n  ")));
}

QuantizedModel quantize_weights(const QuantizeRequest& request, const OnnxModel& model,
                                std::string_view bytes, const fs::path& folder, bool runs) {
  const WeightPlan plan = plan_weights(model.graph, matcher("--float", request.in_float));
  const QuantisedWeights quantised =
      quantise_weights(model, plan, computed_constants(plan.computed, request.compile), folder);
  if (quantised.tensors == 0) throw nothing_to_quantise("no weights", plan.left);
  QuantizedModel result;
  result.bytes = edited_model(bytes, quantised.edit, folder);
  result.weights = quantised.tensors;
  result.left = plan.left;
  if (runs) result.original = std::make_shared<const RunningModel>(request.compile);
  return result;
}

std::vector<QuantizedModel> quantize_values(const QuantizeRequest& request, const OnnxModel& model,
                                            std::string_view bytes, const fs::path& folder,
                                            const Calls& calls) {
  QuantisationPlan plan = plan_quantisation(model.graph, matcher("--float", request.in_float));
  if (plan.products.empty() && plan.cells.empty()) {
    throw nothing_to_quantise("no convolution, dense layer, matrix product or recurrent layer",
                              plan.left);
  }
  const auto original = observed_model(plan, request.compile);
  const ObservedValues values(plan, *original, calls);
  Observation observation;
  observation.computed = computed_constants(plan.computed, request.compile);
  if (request.weight_bits < 8) {
    narrow_weights(plan, model, observation.computed, matcher("--byte-weights", request.in_bytes),
                   folder);
    const MomentNodes nodes = moment_nodes(model, plan, observation.computed, folder);
    observation.moments =
        moments_of(nodes, request.compile, edited_model(bytes, nodes.edit, folder), calls);
  }
  std::vector<QuantizedModel> results;
  for (const Ranges kind : request.ranges) {
    observation.ranges = values.ranges(kind);
    const QuantisedGraph quantised =
        quantise(model, plan, observation, request.integer_inputs, folder);
    QuantizedModel& result = results.emplace_back();
    result.original = original;
    result.bytes = edited_model(bytes, quantised.edit, folder);
    result.ranges = kind;
    result.products = plan.products.size();
    result.cells = plan.cells.size();
    result.narrow = plan.narrow.size();
    result.formats = plan.formats;
    result.left = plan.left;
    result.inputs = quantised.inputs;
    for (const QuantisationPlan::Value& value : plan.values) {
      if (!result.inputs.contains(value.name)) result.values.push_back(value.name);
    }
  }
  return results;
}

}  // namespace

std::vector<QuantizedModel> quantize_model(const QuantizeRequest& request, const Calls& calls) {
  const std::string& path = request.compile.model;
  return with_file_named(path, [&] {
    const std::string bytes = read_file(path);
    const fs::path folder = fs::absolute(path).parent_path();
    const OnnxModel model = parse_model_proto(bytes);
    if (!request.weights_only) return quantize_values(request, model, bytes, folder, calls);
    return std::vector{quantize_weights(request, model, bytes, folder, !calls.empty())};
  });
}

double ValueError::decibels() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

std::vector<ValueError> compare_models(const QuantizedModel& model, CompileRequest written,
                                       const Calls& calls) {
  written.import_options.observed = model.values;
  const RunningModel& before = *model.original;
  const RunningModel after(written);
  // What became an integer input is observed before alone.
  std::vector<size_t> places;
  std::vector<ValueError> errors;
  for (const std::string& name : after.output_names()) {
    places.push_back(static_cast<size_t>(std::ranges::find(before.output_names(), name) -
                                         before.output_names().begin()));
    errors.emplace_back().name = name;
  }
  for (const std::vector<Literal>& inputs : calls) {
    std::vector<Literal> integers = inputs;
    for (size_t i = 0; i < integers.size(); ++i) {
      const auto format = model.inputs.find(before.input_names()[i]);
      if (format != model.inputs.end()) integers[i] = quantised(inputs[i], format->second);
    }
    const std::vector<Literal> want = before.run(inputs), have = after.run(integers);
    for (size_t i = 0; i < errors.size(); ++i) add(want.at(places[i]), have[i], errors[i]);
  }
  return errors;
}

}  // namespace backcast
