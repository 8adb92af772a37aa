#include "driver/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <regex>
#include <set>
#include <span>

#include "driver/measured_moments.h"
#include "driver/observed_ranges.h"
#include "frontend/onnx_proto.h"
#include "frontend/quantise_weights.h"
#include "passes/graph/constant_value.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

/// What weights of 4 bits may cost where they are chosen, in decibels: twice the noise.
constexpr double kMostLoss = 3;

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

/// A model in floating point whose values become integers.
class ValueQuantizer {
 public:
  ValueQuantizer(const QuantizeRequest& request, const OnnxModel& model, std::string_view bytes,
                 const fs::path& folder, const Calls& calls)
      : request_(request),
        model_(model),
        bytes_(bytes),
        folder_(folder),
        calls_(calls),
        plan_(plan_quantisation(model.graph, matcher("--float", request.in_float))) {
    if (plan_.products.empty() && plan_.cells.empty()) {
      throw nothing_to_quantise("no convolution, dense layer, matrix product or recurrent layer",
                                plan_.left);
    }
    original_ = observed_model(plan_, request.compile);
    observation_.computed = computed_constants(plan_.computed, request.compile);
    if (request.weight_bits == WeightBits::eight) return;
    narrow_weights(plan_, model, observation_.computed, matcher("--byte-weights", request.in_bytes),
                   folder);
    const MomentNodes nodes = moment_nodes(model, plan_, observation_.computed, folder);
    observation_.moments =
        measured_moments(nodes, request.compile, edited_model(bytes, nodes.edit, folder), calls);
  }

  std::vector<QuantizedModel> run() {
    const ObservedValues values(plan_, *original_, calls_);
    std::vector<QuantizedModel> results;
    for (const Ranges kind : request_.ranges) {
      observation_.ranges = values.ranges(kind);
      const bool chooses = request_.weight_bits == WeightBits::fitting;
      results.push_back(chooses ? with_fitting_bits() : quantized(plan_.narrow).model);
      results.back().ranges = kind;
    }
    return results;
  }

 private:
  struct Made {
    QuantizedModel model;
    std::map<GraphEdit::Place, double> noise;
  };

  Made quantized(const std::set<GraphEdit::Place>& narrow) const {
    QuantisationPlan plan = plan_;
    plan.narrow = narrow;
    const QuantisedGraph quantised =
        quantise(model_, plan, observation_, request_.integer_inputs, folder_);
    QuantizedModel result;
    result.original = original_;
    result.bytes = edited_model(bytes_, quantised.edit, folder_);
    result.products = plan.products.size();
    result.cells = plan.cells.size();
    result.narrow = narrow.size();
    result.formats = plan.formats;
    result.left = plan.left;
    result.inputs = quantised.inputs;
    for (const QuantisationPlan::Value& value : plan.values) {
      if (!result.inputs.contains(value.name)) result.values.push_back(value.name);
    }
    return {std::move(result), quantised.noise};
  }

  /// Of weights, those have 4 bits first that save most for the noise of rounding them, and others
  /// as long as the outputs stay near enough.
  QuantizedModel with_fitting_bits() const {
    const Made all = quantized(plan_.narrow);
    std::vector<GraphEdit::Place> order(plan_.narrow.begin(), plan_.narrow.end());
    std::ranges::stable_sort(order, {}, [&](const auto& place) { return all.noise.at(place); });
    std::set<GraphEdit::Place> narrow;
    add_fitting(order, decibels(quantized({}).model) - kMostLoss, narrow);
    return quantized(narrow).model;
  }

  /// All of them where they fit, else of either half what fits.
  void add_fitting(std::span<const GraphEdit::Place> places, double least,
                   std::set<GraphEdit::Place>& narrow) const {
    if (places.empty()) return;
    std::set<GraphEdit::Place> more = narrow;
    more.insert(places.begin(), places.end());
    if (decibels(quantized(more).model) >= least) {
      narrow = std::move(more);
    } else if (places.size() > 1) {
      add_fitting(places.first(places.size() / 2), least, narrow);
      add_fitting(places.subspan(places.size() / 2), least, narrow);
    }
  }

  /// Of the model's outputs.
  double decibels(QuantizedModel model) const {
    model.values.clear();
    const std::vector<ValueError> errors = compare_models(model, request_.compile, calls_);
    return mean_decibels(errors, errors.size());
  }

  const QuantizeRequest& request_;
  const OnnxModel& model_;
  const std::string_view bytes_;
  const fs::path& folder_;
  const Calls& calls_;
  QuantisationPlan plan_;
  std::shared_ptr<const RunningModel> original_;
  Observation observation_;
};

}  // namespace

std::vector<QuantizedModel> quantize_model(const QuantizeRequest& request, const Calls& calls) {
  const std::string& path = request.compile.model;
  return with_file_named(path, [&] {
    const std::string bytes = read_file(path);
    const fs::path folder = fs::absolute(path).parent_path();
    const OnnxModel model = parse_model_proto(bytes);
    if (!request.weights_only) return ValueQuantizer(request, model, bytes, folder, calls).run();
    return std::vector{quantize_weights(request, model, bytes, folder, !calls.empty())};
  });
}

double ValueError::decibels() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

double mean_decibels(const std::vector<ValueError>& errors, size_t outputs) {
  double sum = 0;
  for (size_t i = 0; i < outputs; ++i) sum += std::min(errors[i].decibels(), 200.0);
  return sum / static_cast<double>(std::max<size_t>(outputs, 1));
}

std::vector<ValueError> compare_models(const QuantizedModel& model, CompileRequest request,
                                       const Calls& calls) {
  request.bytes = model.bytes;
  request.import_options.observed = model.values;
  const RunningModel& before = *model.original;
  const RunningModel after(request);
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
