#include "frontend/quantise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "frontend/graph_names.h"
#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr double kLeast = -128, kMost = 127;
constexpr double kMostWeight = 127;    // symmetric
constexpr double kMostBias = 1 << 30;  // leaves room for the products that it is added to

/// A format whose numbers are initializers of these names; `zero` may be empty.
struct NamedFormat {
  std::string scale, zero;
  ValueFormat numbers;
};

/// The axis of a product's weights along which its results are channels; none where a result's
/// channel is no index of the weights.
std::optional<size_t> channel_axis(const OnnxNode& node, size_t weight, size_t rank) {
  if (node.op_type == "Conv") return 0;
  if (node.op_type == "ConvTranspose") {
    return integer_attribute(node, "group", 1) == 1 ? std::optional<size_t>(1) : std::nullopt;
  }
  if (weight != 1 || rank != 2) return std::nullopt;
  return node.op_type == "Gemm" && integer_attribute(node, "transB", 0) != 0 ? 0 : 1;
}

/// Numbers of a tensor and which of its channels each belongs to.
struct Channels {
  std::vector<int64_t> shape;
  std::optional<size_t> axis;
  std::vector<double> values;

  size_t count() const { return axis ? static_cast<size_t>(shape[*axis]) : 1; }
  size_t of(size_t i) const {
    if (!axis) return 0;
    size_t inner = 1;
    for (size_t k = *axis + 1; k < shape.size(); ++k) inner *= static_cast<size_t>(shape[k]);
    return i / inner % count();
  }
};

class Quantiser {
 public:
  Quantiser(const OnnxModel& model, const QuantisationPlan& plan, bool integer_inputs,
            const std::filesystem::path& model_dir)
      : graph_(model.graph),
        plan_(plan),
        integer_inputs_(integer_inputs),
        model_dir_(model_dir),
        users_(users_of(model.graph)),
        constants_(constants_of(model.graph)),
        taken_(used_names(model)) {
    taken_.merge(defined_names(model.graph));
    const auto opset = model.opsets.find("");
    if (opset != model.opsets.end() && opset->second < 13) {
      domain_ = "com.microsoft";
      if (!model.opsets.contains(domain_)) edit_.opsets[domain_] = 1;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const std::string& output : graph_.nodes[i].outputs) producers_[output] = i;
    }
  }

  QuantisedGraph run(const std::map<std::string, ObservedRange>& ranges) {
    choose_formats(ranges);
    for (const QuantisationPlan::Value& value : plan_.values) round(value);
    for (const QuantisationPlan::Product& product : plan_.products) quantise(product);
    return {std::move(edit_), std::move(inputs_)};
  }

 private:
  std::string add(const std::string& name, Literal value) {
    const std::string free = free_name(name, taken_);
    edit_.initializers.emplace(free, std::move(value));
    return free;
  }

  std::string add_floats(const std::string& name, const std::vector<int64_t>& shape,
                         const std::vector<double>& values) {
    return add(name, Literal::from_doubles(ElementType::f32, shape, values));
  }

  Channels read(const std::string& name, std::optional<size_t> axis = {}) const {
    const Literal literal = to_literal(*constants_.at(name), model_dir_);
    return {literal.shape(), axis, literal.as_doubles()};
  }

  void choose_formats(const std::map<std::string, ObservedRange>& ranges) {
    std::vector<ObservedRange> hulls(plan_.formats);
    std::vector<std::string> names(plan_.formats);
    for (const QuantisationPlan::Value& value : plan_.values) {
      const ObservedRange& range = ranges.at(value.name);
      if (!std::isfinite(range.low) || !std::isfinite(range.high)) {
        throw CompileError(fmt::format("\"{}\" is not finite for the given data", value.name));
      }
      ObservedRange& hull = hulls[value.format];  // begins as that of zero
      hull = {std::min(hull.low, range.low), std::max(hull.high, range.high)};
      if (names[value.format].empty()) names[value.format] = value.name;
    }
    for (size_t i = 0; i < hulls.size(); ++i) {
      const double width = hulls[i].high - hulls[i].low;
      const double scale = width > 0 ? static_cast<float>(width / (kMost - kLeast)) : 1;
      const double zero = std::clamp(std::nearbyint(kLeast - hulls[i].low / scale), kLeast, kMost);
      formats_.push_back({add_floats(names[i] + "_scale", {}, {scale}),
                          add(names[i] + "_zero_point", Literal::scalar(ElementType::i8, zero)),
                          {scale, static_cast<int64_t>(zero)}});
    }
  }

  OnnxNode linear(const std::string& op_type, const std::string& from, const NamedFormat& format,
                  const std::string& to, std::optional<size_t> axis = {}) {
    OnnxNode node;
    node.op_type = op_type;
    node.domain = domain_;
    node.name = free_name(to + "_" + op_type, taken_);
    node.inputs = {from, format.scale};
    if (!format.zero.empty()) node.inputs.push_back(format.zero);
    node.outputs = {to};
    if (axis) {
      OnnxAttribute attribute;
      attribute.name = "axis";
      attribute.kind = OnnxAttribute::Kind::integer;
      attribute.i = static_cast<int64_t>(*axis);
      node.attributes.push_back(attribute);
    }
    return node;
  }

  /// A value and back again, for those that read integers.
  void round(const QuantisationPlan::Value& value) {
    const NamedFormat& format = formats_[value.format];
    const bool is_given = producers_.count(value.name) == 0 && integer_inputs_ &&
                          users_.at(value.name).size() == value.readers.size();
    const std::string integers =
        is_given ? value.name : free_name(value.name + "_quantized", taken_);
    const std::string floats = free_name(value.name + "_dequantized", taken_);
    const auto producer = producers_.find(value.name);
    const std::optional<size_t> behind =
        producer == producers_.end() ? std::nullopt : std::optional(producer->second);
    if (is_given) {
      edit_.types[value.name] = onnx_type::kInt8;
      inputs_[value.name] = format.numbers;
    } else {
      edit_.insertions.push_back({behind, linear("QuantizeLinear", value.name, format, integers)});
    }
    edit_.insertions.push_back({behind, linear("DequantizeLinear", integers, format, floats)});
    scales_[value.name] = format.numbers.scale;
    for (const size_t reader : value.readers) {
      const std::vector<std::string>& inputs = graph_.nodes[reader].inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == value.name) edit_.inputs[{reader, i}] = floats;
      }
    }
  }

  /// Integers that a DequantizeLinear in front of all nodes makes numbers of: its result.
  std::string constant(const std::string& name, ElementType element, const Channels& tensor,
                       const std::vector<double>& scales) {
    std::vector<double> steps(tensor.values.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i] = std::nearbyint(tensor.values[i] / scales[tensor.of(i)]);
    }
    NamedFormat format;
    const std::vector<int64_t> shape =
        tensor.axis ? std::vector<int64_t>{tensor.shape[*tensor.axis]} : std::vector<int64_t>{};
    format.scale = add_floats(name + "_scale", shape, scales);
    const std::string integers =
        add(name + "_quantized", Literal::from_doubles(element, tensor.shape, steps));
    const std::string floats = free_name(name + "_dequantized", taken_);
    const std::optional<size_t> axis = tensor.axis;
    edit_.insertions.push_back({{}, linear("DequantizeLinear", integers, format, floats, axis)});
    return floats;
  }

  void quantise(const QuantisationPlan::Product& product) {
    if (!product.weight) return;
    const OnnxNode& node = graph_.nodes[product.node];
    const std::string& name = node.inputs[*product.weight];
    const size_t rank = constants_.at(name)->dims.size();
    Channels weights = read(name, channel_axis(node, *product.weight, rank));
    std::optional<Channels> bias = bias_of(node);
    if (product.norm) take_in(product, weights, bias);
    const double step = scales_.at(node.inputs[1 - *product.weight]);
    const std::vector<double> scales = scales_of(weights, step, bias);
    // Weights that several products read alike are one tensor, unless a bias stretched a scale.
    const std::tuple key(name, weights.axis, scales, product.norm);
    std::string& quantised = weights_[key];
    if (quantised.empty()) quantised = constant(name, ElementType::i8, weights, scales);
    edit_.inputs[{product.node, *product.weight}] = quantised;
    if (!bias) return;
    std::vector<double> products;
    for (const double scale : scales) products.push_back(static_cast<float>(step * scale));
    const bool has_name = node.inputs.size() > 2 && !node.inputs[2].empty();
    if (!weights.axis) bias->axis.reset();
    edit_.inputs[{product.node, 2}] =
        constant(has_name ? node.inputs[2] : name + "_bias", ElementType::i32, *bias, products);
  }

  /// The bias of a product when it can be added to its accumulators as it is.
  std::optional<Channels> bias_of(const OnnxNode& node) const {
    if (node.inputs.size() < 3 || !constants_.contains(node.inputs[2])) return std::nullopt;
    if (constants_.at(node.inputs[2])->data_type != onnx_type::kFloat) return std::nullopt;
    if (constants_.at(node.inputs[2])->dims.size() != 1) return std::nullopt;
    if (real_attribute(node, "alpha", 1) != 1 || real_attribute(node, "beta", 1) != 1)
      return std::nullopt;
    return read(node.inputs[2], 0);
  }

  /// y = (conv(x) - mean) · factor / sqrt(variance + epsilon) + offset, as weights and bias.
  void take_in(const QuantisationPlan::Product& product, Channels& weights,
               std::optional<Channels>& bias) {
    const OnnxNode& norm = graph_.nodes[*product.norm];
    const double epsilon = real_attribute(norm, "epsilon", 1e-5);
    const std::vector<double> factor = read(norm.inputs[1]).values;
    const std::vector<double> offset = read(norm.inputs[2]).values;
    const std::vector<double> mean = read(norm.inputs[3]).values;
    const std::vector<double> variance = read(norm.inputs[4]).values;
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
    edit_.outputs[{product.node, 0}] = norm.outputs[0];
    edit_.removed.insert(*product.norm);
  }

  /// A scale for each channel, wide enough for a bias of at most kMostBias steps.
  static std::vector<double> scales_of(const Channels& weights, double step,
                                       const std::optional<Channels>& bias) {
    std::vector<double> scales(weights.count(), 0);
    for (size_t i = 0; i < weights.values.size(); ++i) {
      double& scale = scales[weights.of(i)];
      scale = std::max(scale, std::abs(weights.values[i]) / kMostWeight);
    }
    for (size_t c = 0; bias && c < bias->values.size(); ++c) {
      double& scale = scales[weights.axis ? c : 0];
      scale = std::max(scale, std::abs(bias->values[c]) / (step * kMostBias));
    }
    for (double& scale : scales) scale = scale > 0 ? static_cast<float>(scale) : 1;
    return scales;
  }

  using WeightKey =
      std::tuple<std::string, std::optional<size_t>, std::vector<double>, std::optional<size_t>>;

  const OnnxGraph& graph_;
  const QuantisationPlan& plan_;
  const bool integer_inputs_;
  const std::filesystem::path& model_dir_;
  const std::map<std::string, std::set<size_t>> users_;
  const std::map<std::string, const OnnxTensor*> constants_;
  std::set<std::string> taken_;
  std::string domain_;
  std::map<std::string, size_t> producers_;
  std::vector<NamedFormat> formats_;
  std::map<std::string, double> scales_;  // of quantised values
  std::map<WeightKey, std::string> weights_;
  GraphEdit edit_;
  std::map<std::string, ValueFormat> inputs_;
};

}  // namespace

QuantisedGraph quantise(const OnnxModel& model, const QuantisationPlan& plan,
                        const std::map<std::string, ObservedRange>& ranges, bool integer_inputs,
                        const std::filesystem::path& model_dir) {
  return Quantiser(model, plan, integer_inputs, model_dir).run(ranges);
}

}  // namespace backcast
