// A plain mirror of an ONNX file, so that import rules never see protobuf. Names follow onnx.proto.
// Tensor data stays where the file's reader put it; `owner` keeps it alive.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backcast {

/// TensorProto.DataType. Values beyond the named ones occur in newer files.
namespace onnx_type {
inline constexpr int64_t kFloat = 1, kUint8 = 2, kInt8 = 3, kUint16 = 4, kInt16 = 5, kInt32 = 6,
                         kInt64 = 7, kString = 8, kBool = 9, kFloat16 = 10, kDouble = 11,
                         kUint32 = 12, kUint64 = 13, kBfloat16 = 16, kUint4 = 21, kInt4 = 22;
}  // namespace onnx_type

struct OnnxTensor {
  std::string name;
  int64_t data_type = 0;
  std::vector<int64_t> dims;
  std::optional<std::span<const std::byte>> raw_data;
  std::span<const float> float_data;
  std::span<const int32_t> int32_data;
  std::span<const int64_t> int64_data;
  std::span<const double> double_data;
  std::span<const uint64_t> uint64_data;
  bool external = false;
  std::map<std::string, std::string> external_data;  // location, offset, length, checksum
  std::shared_ptr<const void> owner;
};

struct OnnxDim {
  std::optional<int64_t> value;
  std::string symbol;  // dim_param; empty together with no value: unknown
};

struct OnnxValueInfo {
  enum class Kind { none, tensor, other };
  std::string name;
  Kind kind = Kind::none;
  std::string kind_name;  // "sequence", "optional", … for messages
  int64_t element_type = 0;
  std::optional<std::vector<OnnxDim>> shape;
};

struct OnnxGraph;

struct OnnxAttribute {
  /// undefined: of a kind that this schema does not know.
  enum class Kind {
    undefined,
    real,
    integer,
    string,
    tensor,
    graph,
    reals,
    integers,
    strings,
    other
  };
  std::string name;
  std::string ref_attr_name;  // inside a function: the attribute of the calling node
  Kind kind = Kind::undefined;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::shared_ptr<const OnnxTensor> t;
  std::shared_ptr<const OnnxGraph> g;
};

struct OnnxNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<std::string> sparse_initializers;
  std::vector<OnnxValueInfo> inputs, outputs, value_info;
};

/// A model-local function.
struct OnnxFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<OnnxNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct OnnxModel {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // by domain; "ai.onnx" is written ""
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
};

/// What messages and patterns call a node: its name or, without one, its first result's.
const std::string& name_of(const OnnxNode& node);

/// The attribute of that name; null when the node has none.
const OnnxAttribute* find_attribute(const OnnxNode& node, std::string_view name);
/// Its number, or `fallback`.
int64_t integer_attribute(const OnnxNode& node, std::string_view name, int64_t fallback);
double real_attribute(const OnnxNode& node, std::string_view name, double fallback);

/// A new one.
OnnxAttribute made_attribute(std::string name, int64_t value);
OnnxAttribute made_attribute(std::string name, std::vector<int64_t> values);
OnnxAttribute made_attribute(std::string name, std::shared_ptr<const OnnxGraph> graph);

/// "float", "int64", "float8e4m3fn", … or "type 99".
std::string onnx_type_name(int64_t data_type);

/// Name of an attribute kind in messages.
std::string_view kind_name(OnnxAttribute::Kind kind);

}  // namespace backcast
