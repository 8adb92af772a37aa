#include "frontend/quantise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "frontend/graph_names.h"
#include "frontend/node_kinds.h"
#include "frontend/quantise_cells.h"
#include "frontend/quantised_parts.h"
#include "frontend/recurrent_cell.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr double kLeast = -128, kMost = 127;
constexpr int kNarrowBits = 4;
constexpr double kMostBias = 1 << 30;  // leaves room for the products that it is added to

class Quantiser {
 public:
  Quantiser(const OnnxModel& model, const QuantisationPlan& plan, const Observation& observation,
            bool integer_inputs, const std::filesystem::path& model_dir)
      : graph_(model.graph),
        plan_(plan),
        moments_(observation.moments),
        integer_inputs_(integer_inputs),
        users_(users_of(model.graph)),
        parts_(model, observation.computed, model_dir) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const std::string& output : graph_.nodes[i].outputs) producers_[output] = i;
    }
  }

  QuantisedGraph run(const std::map<std::string, ObservedRange>& ranges) {
    choose_formats(ranges);
    for (const QuantisationPlan::Value& value : plan_.values) round(value);
    for (const QuantisationPlan::Product& product : plan_.products) quantise(product);
    for (const QuantisationPlan::Cell& cell : plan_.cells) quantise(cell);
    return {std::move(parts_.edit), std::move(inputs_), std::move(noise_)};
  }

 private:
  void choose_formats(const std::map<std::string, ObservedRange>& ranges) {
    std::vector<ObservedRange> hulls(plan_.formats);
    std::vector<std::string> names(plan_.formats);
    for (const QuantisationPlan::Observed& value : plan_.observed()) {
      const ObservedRange& range = ranges.at(value.name);
      if (!std::isfinite(range.low) || !std::isfinite(range.high)) {
        throw CompileError(fmt::format("\"{}\" is not finite for the given data", value.name));
      }
      ObservedRange& hull = hulls[value.format];  // begins as that of zero
      hull = {std::min(hull.low, range.low), std::max(hull.high, range.high)};
      if (names[value.format].empty()) names[value.format] = value.name;
    }
    std::set<size_t> states;
    for (const QuantisationPlan::Cell& cell : plan_.cells) states.insert(cell.format);
    for (size_t i = 0; i < hulls.size(); ++i) {
      const ValueFormat numbers = format_of(hulls[i], states.contains(i));
      formats_.push_back(
          {parts_.add_floats(names[i] + "_scale", {}, {numbers.scale}),
           parts_.add(names[i] + "_zero_point",
                      Literal::scalar(ElementType::i8, static_cast<double>(numbers.zero))),
           numbers});
    }
  }

  /// `symmetric`: without a zero point where there are numbers of either sign, since every step of
  /// a loop would take it off again.
  static ValueFormat format_of(const ObservedRange& range, bool symmetric) {
    const double width = range.high - range.low;
    if (width == 0) return {1, 0};
    if (symmetric && range.low < 0 && range.high > 0) {
      return {static_cast<float>(std::max(-range.low, range.high) / kMost), 0};
    }
    const double scale = static_cast<float>(width / (kMost - kLeast));
    const double zero = std::clamp(std::nearbyint(kLeast - range.low / scale), kLeast, kMost);
    return {scale, static_cast<int64_t>(zero)};
  }

  /// A value and back again, for those that read integers.
  void round(const QuantisationPlan::Value& value) {
    const NamedFormat& format = formats_[value.format];
    const bool is_given = producers_.count(value.name) == 0 && integer_inputs_ &&
                          users_.at(value.name).size() == value.readers.size();
    const std::string integers = is_given ? value.name : parts_.free(value.name + "_quantized");
    const std::string floats = parts_.free(value.name + "_dequantized");
    const auto producer = producers_.find(value.name);
    const std::optional<size_t> behind =
        producer == producers_.end() ? std::nullopt : std::optional(producer->second);
    if (is_given) {
      parts_.edit.types[value.name] = onnx_type::kInt8;
      inputs_[value.name] = format.numbers;
    } else {
      parts_.insert(behind, parts_.linear("QuantizeLinear", value.name, format, integers));
    }
    parts_.insert(behind, parts_.linear("DequantizeLinear", integers, format, floats));
    scales_[value.name] = format.numbers.scale;
    for (const size_t reader : value.readers) {
      const std::vector<std::string>& inputs = graph_.nodes[reader].inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == value.name) parts_.edit.inputs[{reader, i}] = floats;
      }
    }
  }

  void quantise(const QuantisationPlan::Product& product) {
    if (!product.weight) return;
    const OnnxNode& node = graph_.nodes[product.node];
    const std::string& name = node.inputs[*product.weight];
    Channels weights = parts_.read(name);
    weights.axis = channel_axis(node, *product.weight, weights.shape.size());
    std::optional<Channels> bias = bias_of(node);
    if (product.norm) take_in(product, weights, bias);
    const double step = scales_.at(node.inputs[1 - *product.weight]);
    const GraphEdit::Place place{product.node, *product.weight};
    const std::vector<double> scales = round(place, weights, least_scales(weights, step, bias));
    // Weights that several products read alike are one tensor, unless a bias stretched a scale or
    // they are rounded for what each of them reads.
    const std::tuple key(name, weights.axis, scales, product.norm,
                         plan_.narrow.contains(place) ? product.node + 1 : 0);
    std::string& quantised = weights_[key];
    if (quantised.empty()) quantised = parts_.decoded(name, ElementType::i8, weights, scales);
    parts_.edit.inputs[{product.node, *product.weight}] = quantised;
    if (!bias) return;
    std::vector<double> products;
    for (const double scale : scales) products.push_back(static_cast<float>(step * scale));
    const bool has_name = node.inputs.size() > 2 && !node.inputs[2].empty();
    if (!weights.axis) bias->axis.reset();
    parts_.edit.inputs[{product.node, 2}] = parts_.decoded(
        has_name ? node.inputs[2] : name + "_bias", ElementType::i32, *bias, products);
  }

  void quantise(const QuantisationPlan::Cell& cell) {
    const OnnxNode& node = graph_.nodes[cell.node];
    const bool rounds_states = std::ranges::any_of(
        plan_.values, [&](const auto& value) { return value.name == node.outputs[0]; });
    quantise_cell(parts_, node, cell.node,
                  {parts_.edit.inputs.at({cell.node, recurrent_input::kData}),
                   formats_[cell.format], rounds_states, [&](size_t input, Channels& weights) {
                     const std::vector<double> least(weights.count(), 0);
                     return round({cell.node, input}, weights, least);
                   }});
  }

  /// The bias of a product when it can be added to its accumulators as it is.
  std::optional<Channels> bias_of(const OnnxNode& node) const {
    if (node.inputs.size() < 3 || !parts_.is_float(node.inputs[2])) return std::nullopt;
    Channels bias = parts_.read(node.inputs[2]);
    if (bias.shape.size() != 1) return std::nullopt;
    bias.axis = 0;
    if (real_attribute(node, "alpha", 1) != 1 || real_attribute(node, "beta", 1) != 1)
      return std::nullopt;
    return bias;
  }

  /// y = (conv(x) - mean) · factor / sqrt(variance + epsilon) + offset, as weights and bias.
  void take_in(const QuantisationPlan::Product& product, Channels& weights,
               std::optional<Channels>& bias) {
    const OnnxNode& norm = graph_.nodes[*product.norm];
    const double epsilon = real_attribute(norm, "epsilon", 1e-5);
    const std::vector<double> factor = parts_.read(norm.inputs[1]).values;
    const std::vector<double> offset = parts_.read(norm.inputs[2]).values;
    const std::vector<double> mean = parts_.read(norm.inputs[3]).values;
    const std::vector<double> variance = parts_.read(norm.inputs[4]).values;
    const size_t count = weights.count();
    if (!bias) {
      bias = Channels{{static_cast<int64_t>(count)}, 0, std::vector<double>(count, 0)};
    }
    const std::vector<double>& shift = bias->values;
    for (const std::vector<double>* values : {&factor, &offset, &mean, &variance, &shift}) {
      if (values->size() == count) continue;
      throw CompileError(fmt::format("{} ({}): {} channels meet {}", norm.name, norm.op_type, count,
                                     values->size()));
    }
    std::vector<double> gains(count);
    for (size_t c = 0; c < count; ++c) {
      gains[c] = factor[c] / std::sqrt(variance[c] + epsilon);
      bias->values[c] = (bias->values[c] - mean[c]) * gains[c] + offset[c];
    }
    for (size_t i = 0; i < weights.values.size(); ++i) weights.values[i] *= gains[weights.of(i)];
    parts_.edit.outputs[{product.node, 0}] = norm.outputs[0];
    parts_.edit.removed.insert(*product.norm);
  }

  /// A scale for each channel, none below the least ones. Makes weights of 4 bits multiples of
  /// them.
  std::vector<double> round(const GraphEdit::Place& place, Channels& weights,
                            const std::vector<double>& least) {
    if (!plan_.narrow.contains(place)) {
      std::vector<double> scales = weights.scales();
      for (size_t c = 0; c < scales.size(); ++c) scales[c] = std::max(scales[c], least[c]);
      return rounded_scales(std::move(scales));
    }
    const auto moments = moments_.find(place);
    RoundedWeights rounded =
        round_weights(weights, kNarrowBits, least,
                      moments == moments_.end() ? std::vector<Moments>{} : moments->second);
    double& noise = noise_[place];  // of recurrent layers the largest part's
    noise = std::max(noise, rounded.noise / static_cast<double>(weights.values.size()));
    for (size_t i = 0; i < weights.values.size(); ++i) {
      weights.values[i] = rounded.steps[i] * rounded.scales[weights.of(i)];
    }
    return std::move(rounded.scales);
  }

  /// Scales of channels by which a bias takes at most kMostBias steps.
  static std::vector<double> least_scales(const Channels& weights, double step,
                                          const std::optional<Channels>& bias) {
    std::vector<double> scales(weights.count(), 0);
    for (size_t c = 0; bias && c < bias->values.size(); ++c) {
      double& scale = scales[weights.axis ? c : 0];
      scale = std::max(scale, std::abs(bias->values[c]) / (step * kMostBias));
    }
    return scales;
  }

  using WeightKey = std::tuple<std::string, std::optional<size_t>, std::vector<double>,
                               std::optional<size_t>, size_t>;

  const OnnxGraph& graph_;
  const QuantisationPlan& plan_;
  const std::map<GraphEdit::Place, std::vector<Moments>>& moments_;
  const bool integer_inputs_;
  const std::map<std::string, std::set<size_t>> users_;
  QuantisedParts parts_;
  std::map<std::string, size_t> producers_;
  std::vector<NamedFormat> formats_;
  std::map<std::string, double> scales_;  // of quantised values
  std::map<WeightKey, std::string> weights_;
  std::map<std::string, ValueFormat> inputs_;
  std::map<GraphEdit::Place, double> noise_;
};

}  // namespace

QuantisedGraph quantise(const OnnxModel& model, const QuantisationPlan& plan,
                        const Observation& observation, bool integer_inputs,
                        const std::filesystem::path& model_dir) {
  return Quantiser(model, plan, observation, integer_inputs, model_dir).run(observation.ranges);
}

}  // namespace backcast
