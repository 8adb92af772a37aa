// Attributes by name, and names of ONNX's enumerators for messages.
#include "frontend/onnx_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace backcast {

const std::string& name_of(const OnnxNode& node) {
  if (!node.name.empty() || node.outputs.empty()) return node.name;
  const auto result =
      std::ranges::find_if(node.outputs, [](const std::string& name) { return !name.empty(); });
  return result == node.outputs.end() ? node.name : *result;
}

const OnnxAttribute* find_attribute(const OnnxNode& node, std::string_view name) {
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

OnnxAttribute made_attribute(std::string name, int64_t value) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.kind = OnnxAttribute::Kind::integer;
  attribute.i = value;
  return attribute;
}

OnnxAttribute made_attribute(std::string name, std::vector<int64_t> values) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.kind = OnnxAttribute::Kind::integers;
  attribute.ints = std::move(values);
  return attribute;
}

OnnxAttribute made_attribute(std::string name, std::shared_ptr<const OnnxGraph> graph) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.kind = OnnxAttribute::Kind::graph;
  attribute.g = std::move(graph);
  return attribute;
}

int64_t integer_attribute(const OnnxNode& node, std::string_view name, int64_t fallback) {
  const OnnxAttribute* attribute = find_attribute(node, name);
  return attribute ? attribute->i : fallback;
}

double real_attribute(const OnnxNode& node, std::string_view name, double fallback) {
  const OnnxAttribute* attribute = find_attribute(node, name);
  return attribute ? static_cast<double>(attribute->f) : fallback;
}

std::string onnx_type_name(int64_t data_type) {
  static constexpr std::string_view kNames[] = {
      "undefined",      "float",    "uint8",        "int8",           "uint16",
      "int16",          "int32",    "int64",        "string",         "bool",
      "float16",        "double",   "uint32",       "uint64",         "complex64",
      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
      "uint2",          "int2"};
  if (data_type >= 0 && data_type < static_cast<int64_t>(std::size(kNames))) {
    return std::string(kNames[data_type]);
  }
  return "type " + std::to_string(data_type);
}

std::string_view kind_name(OnnxAttribute::Kind kind) {
  static constexpr std::string_view kNames[] = {"undefined", "float",          "int",    "string",
                                                "tensor",    "graph",          "floats", "ints",
                                                "strings",   "of another kind"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace backcast
