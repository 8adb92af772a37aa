#include "driver/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <regex>

#include "backend/llvm/jit.h"
#include "driver/device.h"
#include "frontend/onnx_proto.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

/// A model that is compiled in process.
class Running {
 public:
  explicit Running(const CompileRequest& request)
      : model_(compile_model(request)), program_(model_.result.program, model_.target) {}

  const std::vector<std::string>& inputs() const { return model_.imported.input_names; }
  const std::vector<std::string>& outputs() const { return model_.imported.output_names; }
  std::vector<Literal> run(const std::vector<Literal>& inputs) const {
    return program_.run("run", inputs, sizes_for(model_.result.program, inputs));
  }

 private:
  CompiledModel model_;
  CompiledProgram program_;
};

StaysFloat matcher(const std::vector<std::string>& patterns) {
  std::vector<std::regex> expressions;
  for (const std::string& pattern : patterns) {
    try {
      expressions.emplace_back(pattern);
    } catch (const std::regex_error& error) {
      throw CompileError(fmt::format("--float {}: {}", pattern, error.what()));
    }
  }
  return [expressions](const OnnxNode& node) {
    const std::string& name = node.name.empty() ? node.outputs[0] : node.name;
    return std::ranges::any_of(expressions, [&](const std::regex& expression) {
      return std::regex_search(name, expression);
    });
  };
}

/// The least and the largest element of every value of the plan.
std::map<std::string, ObservedRange> ranges_of(const QuantisationPlan& plan, CompileRequest request,
                                               const Calls& calls) {
  for (const QuantisationPlan::Value& value : plan.values) {
    request.import_options.observed.push_back(value.name);
  }
  const Running model(request);
  std::map<std::string, ObservedRange> ranges;
  const size_t first = model.outputs().size() - plan.values.size();
  for (const std::vector<Literal>& inputs : calls) {
    const std::vector<Literal> results = model.run(inputs);
    for (size_t i = 0; i < plan.values.size(); ++i) {
      ObservedRange& range = ranges[plan.values[i].name];
      for (const double x : results[first + i].as_doubles()) {
        // A NaN stays.
        range.low = x >= range.low ? range.low : x;
        range.high = x <= range.high ? range.high : x;
      }
    }
  }
  return ranges;
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

}  // namespace

QuantizedModel quantize_model(const QuantizeRequest& request, const Calls& calls) {
  const std::string& path = request.compile.model;
  return with_file_named(path, [&] {
    const std::string bytes = read_file(path);
    const fs::path folder = fs::absolute(path).parent_path();
    const OnnxModel model = parse_model_proto(bytes);
    const QuantisationPlan plan = plan_quantisation(model.graph, matcher(request.in_float));
    if (plan.products.empty()) {
      throw CompileError(fmt::format("there is nothing to quantise{}{}",
                                     plan.left.empty()
                                         ? ": no convolution, dense layer or matrix product "
                                           "(recurrent cells stay in floating point)"
                                         : ":\n  ",
                                     fmt::join(plan.left, "\n  ")));
    }
    const std::map<std::string, ObservedRange> ranges = ranges_of(plan, request.compile, calls);
    const QuantisedGraph quantised = quantise(model, plan, ranges, request.integer_inputs, folder);
    QuantizedModel result;
    result.bytes = edited_model(bytes, quantised.edit, folder);
    result.products = plan.products.size();
    result.formats = plan.formats;
    result.left = plan.left;
    result.inputs = quantised.inputs;
    for (const QuantisationPlan::Value& value : plan.values) {
      if (!result.inputs.contains(value.name)) result.values.push_back(value.name);
    }
    return result;
  });
}

double ValueError::decibels() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

std::vector<ValueError> compare_models(CompileRequest expected, CompileRequest actual,
                                       const std::vector<std::string>& values,
                                       const std::map<std::string, ValueFormat>& formats,
                                       const Calls& calls) {
  expected.import_options.observed = actual.import_options.observed = values;
  const Running before(expected), after(actual);
  std::vector<ValueError> errors(before.outputs().size());
  for (size_t i = 0; i < errors.size(); ++i) errors[i].name = before.outputs()[i];
  for (const std::vector<Literal>& inputs : calls) {
    std::vector<Literal> integers = inputs;
    for (size_t i = 0; i < integers.size(); ++i) {
      const auto format = formats.find(before.inputs()[i]);
      if (format != formats.end()) integers[i] = quantised(inputs[i], format->second);
    }
    const std::vector<Literal> want = before.run(inputs), have = after.run(integers);
    for (size_t i = 0; i < errors.size(); ++i) add(want[i], have[i], errors[i]);
  }
  return errors;
}

}  // namespace backcast
