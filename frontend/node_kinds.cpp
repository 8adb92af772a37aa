#include "frontend/node_kinds.h"

#include <algorithm>
#include <set>
#include <string>

#include "frontend/recurrent_cell.h"

namespace backcast {
namespace {

using Names = std::set<std::string>;

const Names kProducts = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
const Names kMovements = {"DepthToSpace", "Expand",  "Flatten", "Gather",    "GlobalMaxPool",
                          "Identity",     "MaxPool", "Reshape", "Slice",     "SpaceToDepth",
                          "Split",        "Squeeze", "Tile",    "Transpose", "Unsqueeze"};
const Names kMeans = {"AveragePool", "GlobalAveragePool", "ReduceMean", "Resize", "Upsample"};
const Names kResizes = {"Resize", "Upsample"};
const Names kCheap = {"Abs",  "Add",   "BatchNormalization",
                      "Clip", "Div",   "LeakyRelu",
                      "Max",  "Min",   "Mul",
                      "Neg",  "PRelu", "Relu",
                      "Sub"};
const Names kOtherElementwise = {
    "Celu", "Elu",  "Erf",        "Exp",   "Gelu",           "HardSigmoid", "HardSwish",
    "Log",  "Mish", "Pow",        "Selu",  "Sigmoid",        "Softplus",    "Softsign",
    "Sqrt", "Tanh", "Reciprocal", "Swish", "ThresholdedRelu"};
const Names kShrinking = {"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool",
                          "ReduceMean"};

/// Padding with anything but zero may be outside of what the input's format holds.
bool pads_with_zero(const OnnxNode& node) {
  const bool has_value = node.inputs.size() > 2 && !node.inputs[2].empty();
  return !has_value && real_attribute(node, "value", 0) == 0;  // the attribute of old files
}

std::string text(const OnnxNode& node, const char* name) {
  const OnnxAttribute* attribute = find_attribute(node, name);
  return attribute ? attribute->s : "";
}

/// What lies outside of the image is a number of its own where it is cropped.
bool takes_nearest(const OnnxNode& node) {
  const std::string mode = text(node, "mode");
  return kResizes.contains(node.op_type) && (mode.empty() || mode == "nearest") &&
         text(node, "coordinate_transformation_mode") != "tf_crop_and_resize";
}

}  // namespace

bool is_movement(const OnnxNode& node) {
  const bool tells_places = node.op_type == "MaxPool" && node.outputs.size() > 1;
  return node.domain.empty() && kMovements.contains(node.op_type) && !tells_places;
}

NodeKind kind_of(const OnnxNode& node) {
  const std::string& type = node.op_type;
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.empty()) return NodeKind::other;
  if (kProducts.contains(type)) return NodeKind::product;
  const bool moves = is_movement(node) || takes_nearest(node);
  if (moves || (type == "Pad" && pads_with_zero(node))) return NodeKind::movement;
  if (is_recurrent(node)) return NodeKind::recurrent;
  if (node.outputs.size() > 1) return NodeKind::other;
  if (type == "Concat") return NodeKind::concatenation;
  if (kMeans.contains(type)) return NodeKind::mean;
  const bool trains =
      type == "BatchNormalization" && integer_attribute(node, "training_mode", 0) != 0;
  const bool is_elementwise = kCheap.contains(type) || kOtherElementwise.contains(type);
  return is_elementwise && !trains ? NodeKind::elementwise : NodeKind::other;
}

bool is_cheap(const OnnxNode& node) { return kCheap.contains(node.op_type); }

bool shrinks(const OnnxNode& node) { return kShrinking.contains(node.op_type); }

std::vector<size_t> weight_inputs(const OnnxNode& node) {
  std::vector<size_t> places;
  const NodeKind kind = kind_of(node);
  if (kind == NodeKind::product) places = operands(node);
  if (kind == NodeKind::recurrent) {
    places = {recurrent_input::kWeights, recurrent_input::kRecurrentWeights};
  }
  if (kind == NodeKind::movement && node.op_type == "Gather") places = {0};
  return places;
}

std::optional<size_t> channel_axis(const OnnxNode& node, size_t input, size_t rank) {
  if (is_recurrent(node)) return 1;
  if (node.op_type == "Gather") {
    return integer_attribute(node, "axis", 0) == 0 ? std::optional<size_t>(0) : std::nullopt;
  }
  if (node.op_type == "Conv") return 0;
  if (node.op_type == "ConvTranspose") {
    return integer_attribute(node, "group", 1) == 1 ? std::optional<size_t>(1) : std::nullopt;
  }
  if (input != 1 || rank != 2) return std::nullopt;
  return node.op_type == "Gemm" && integer_attribute(node, "transB", 0) != 0 ? 0 : 1;
}

std::vector<size_t> operands(const OnnxNode& node) {
  size_t count = 1;
  switch (kind_of(node)) {
    case NodeKind::product:
      count = 2;
      break;
    case NodeKind::concatenation:
    case NodeKind::elementwise:
      count = node.inputs.size();
      break;
    default:
      break;
  }
  std::vector<size_t> places;
  for (size_t i = 0; i < std::min(count, node.inputs.size()); ++i) {
    if (!node.inputs[i].empty()) places.push_back(i);
  }
  return places;
}

}  // namespace backcast
