#include "frontend/quantised_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/onnx_tensors.h"

namespace backcast {
namespace {

constexpr double kMostWeight = 127;  // symmetric

}  // namespace

size_t Channels::of(size_t i) const {
  if (!axis) return 0;
  size_t inner = 1;
  for (size_t k = *axis + 1; k < shape.size(); ++k) inner *= static_cast<size_t>(shape[k]);
  return i / inner % count();
}

std::vector<double> Channels::scales() const {
  std::vector<double> scales(count(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    double& scale = scales[of(i)];
    scale = std::max(scale, std::abs(values[i]) / kMostWeight);
  }
  return scales;
}

std::vector<double> rounded_scales(std::vector<double> scales) {
  for (double& scale : scales) scale = scale > 0 ? static_cast<float>(scale) : 1;
  return scales;
}

QuantisedParts::QuantisedParts(const OnnxModel& model, const ComputedConstants& computed,
                               const std::filesystem::path& model_dir)
    : model_dir_(model_dir),
      computed_(computed),
      constants_(constants_of(model.graph)),
      taken_(used_names(model)) {
  taken_.merge(defined_names(model.graph));
  const auto opset = model.opsets.find("");
  if (opset == model.opsets.end()) return;
  opset_ = opset->second;
  if (opset_ < 13) {
    domain_ = "com.microsoft";
    if (!model.opsets.contains(domain_)) edit.opsets[domain_] = 1;
  }
}

std::string QuantisedParts::add(const std::string& name, Literal value) {
  const std::string own = free(name);
  edit.initializers.emplace(own, std::move(value));
  return own;
}

std::string QuantisedParts::add_floats(const std::string& name, const std::vector<int64_t>& shape,
                                       const std::vector<double>& values) {
  return add(name, Literal::from_doubles(ElementType::f32, shape, values));
}

std::string QuantisedParts::add_ints(const std::string& name, const std::vector<int64_t>& values) {
  return add(name, Literal::from_ints({static_cast<int64_t>(values.size())}, values));
}

bool QuantisedParts::is_float(const std::string& name) const {
  const auto computed = computed_.find(name);
  if (computed != computed_.end()) return computed->second.element() == ElementType::f32;
  const auto found = constants_.find(name);
  return found != constants_.end() && found->second->data_type == onnx_type::kFloat;
}

Channels QuantisedParts::read(const std::string& name) const {
  const auto computed = computed_.find(name);
  const Literal literal =
      computed != computed_.end() ? computed->second : to_literal(*constants_.at(name), model_dir_);
  return {literal.shape(), {}, literal.as_doubles()};
}

QuantisedParts::Integers QuantisedParts::integers(const std::string& name, ElementType element,
                                                  const Channels& tensor,
                                                  const std::vector<double>& scales) {
  std::vector<double> steps(tensor.values.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i] = std::nearbyint(tensor.values[i] / scales[tensor.of(i)]);
  }
  Integers result;
  const std::vector<int64_t> shape =
      tensor.axis ? std::vector<int64_t>{tensor.shape[*tensor.axis]} : std::vector<int64_t>{};
  result.format.scale = add_floats(name + "_scale", shape, scales);
  // Written out although it is zero: without one, some readers take what is quantised again for u8.
  result.format.zero =
      add(name + "_zero_point",
          Literal::from_doubles(element, shape, std::vector<double>(scales.size())));
  result.name = add(name + "_quantized", Literal::from_doubles(element, tensor.shape, steps));
  return result;
}

std::string QuantisedParts::decoded(const std::string& name, ElementType element,
                                    const Channels& tensor, const std::vector<double>& scales) {
  const Integers made = integers(name, element, tensor, scales);
  const std::string floats = free(name + "_dequantized");
  insert({}, linear("DequantizeLinear", made.name, made.format, floats, tensor.axis));
  return floats;
}

OnnxNode QuantisedParts::linear(const std::string& op_type, const std::string& from,
                                const NamedFormat& format, const std::string& to,
                                std::optional<size_t> axis) {
  OnnxNode node;
  node.op_type = op_type;
  node.domain = domain_;
  node.name = free(to + "_" + op_type);
  node.inputs = {from, format.scale, format.zero};
  node.outputs = {to};
  if (axis) node.attributes.push_back(made_attribute("axis", static_cast<int64_t>(*axis)));
  return node;
}

void QuantisedParts::insert(std::optional<size_t> behind, OnnxNode node) {
  edit.insertions.push_back({behind, std::move(node)});
}

}  // namespace backcast
