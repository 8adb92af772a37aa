// Translates protobuf messages into the plain mirror. Parsed messages are kept alive by the tensors
// that point into them, so big weights are never copied again.
#include "frontend/onnx_proto.h"

#include <algorithm>

#include "frontend/onnx_proto_messages.h"
#include "frontend/onnx_tensors.h"
#include "frontend/separate_statistics.h"

namespace backcast {
namespace {

using Owner = MessageOwner;

template <class T, class Field>
std::span<const T> span_of(const Field& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

}  // namespace

OnnxTensor mirror_of(const onnx::TensorProto& from, const Owner& owner) {
  OnnxTensor to;
  to.name = from.name();
  to.data_type = from.data_type();
  to.dims.assign(from.dims().begin(), from.dims().end());
  if (from.has_raw_data()) {
    to.raw_data = std::as_bytes(std::span(from.raw_data().data(), from.raw_data().size()));
  }
  to.float_data = span_of<float>(from.float_data());
  to.int32_data = span_of<int32_t>(from.int32_data());
  to.int64_data = span_of<int64_t>(from.int64_data());
  to.double_data = span_of<double>(from.double_data());
  to.uint64_data = span_of<uint64_t>(from.uint64_data());
  to.external = from.data_location() == onnx::TensorProto::EXTERNAL;
  for (const onnx::StringStringEntryProto& entry : from.external_data()) {
    to.external_data[entry.key()] = entry.value();
  }
  to.owner = owner;
  return to;
}

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

namespace {

OnnxValueInfo convert(const onnx::ValueInfoProto& from) {
  OnnxValueInfo to;
  to.name = from.name();
  const onnx::TypeProto& type = from.type();
  switch (type.value_case()) {
    case onnx::TypeProto::kTensorType:
      to.kind = OnnxValueInfo::Kind::tensor;
      to.kind_name = "tensor";
      break;
    case onnx::TypeProto::VALUE_NOT_SET:
      return to;
    default:
      to.kind = OnnxValueInfo::Kind::other;
      to.kind_name = type.has_sequence_type()   ? "sequence"
                     : type.has_optional_type() ? "optional"
                     : type.has_map_type()      ? "map"
                                                : "sparse tensor";
      return to;
  }
  to.element_type = type.tensor_type().elem_type();
  if (!type.tensor_type().has_shape()) return to;
  to.shape.emplace();
  for (const onnx::TensorShapeProto::Dimension& dim : type.tensor_type().shape().dim()) {
    OnnxDim d;
    if (dim.has_dim_value()) d.value = dim.dim_value();
    if (dim.has_dim_param()) d.symbol = dim.dim_param();
    to.shape->push_back(std::move(d));
  }
  return to;
}

OnnxAttribute::Kind kind_of(const onnx::AttributeProto& from) {
  using Kind = OnnxAttribute::Kind;
  switch (from.type()) {
    case onnx::AttributeProto::FLOAT:
      return Kind::real;
    case onnx::AttributeProto::INT:
      return Kind::integer;
    case onnx::AttributeProto::STRING:
      return Kind::string;
    case onnx::AttributeProto::TENSOR:
      return Kind::tensor;
    case onnx::AttributeProto::GRAPH:
      return Kind::graph;
    case onnx::AttributeProto::FLOATS:
      return Kind::reals;
    case onnx::AttributeProto::INTS:
      return Kind::integers;
    case onnx::AttributeProto::STRINGS:
      return Kind::strings;
    case onnx::AttributeProto::UNDEFINED:
      break;
    default:
      return Kind::other;
  }
  // Files of the first ONNX versions leave the kind out.
  if (from.has_f()) return Kind::real;
  if (from.has_i()) return Kind::integer;
  if (from.has_s()) return Kind::string;
  if (from.has_t()) return Kind::tensor;
  if (from.has_g()) return Kind::graph;
  if (from.floats_size() > 0) return Kind::reals;
  if (from.ints_size() > 0) return Kind::integers;
  if (from.strings_size() > 0) return Kind::strings;
  return Kind::undefined;
}

OnnxAttribute convert(const onnx::AttributeProto& from, const Owner& owner) {
  OnnxAttribute to;
  to.name = from.name();
  to.ref_attr_name = from.ref_attr_name();
  to.kind = kind_of(from);
  to.f = from.f();
  to.i = from.i();
  to.s = from.s();
  to.floats.assign(from.floats().begin(), from.floats().end());
  to.ints.assign(from.ints().begin(), from.ints().end());
  to.strings.assign(from.strings().begin(), from.strings().end());
  if (from.has_t()) to.t = std::make_shared<const OnnxTensor>(mirror_of(from.t(), owner));
  if (from.has_g()) to.g = std::make_shared<const OnnxGraph>(mirror_of(from.g(), owner));
  return to;
}

OnnxNode convert(const onnx::NodeProto& from, const Owner& owner) {
  OnnxNode to;
  to.name = from.name();
  to.op_type = from.op_type();
  to.domain = domain_of(from.domain());
  to.inputs.assign(from.input().begin(), from.input().end());
  to.outputs.assign(from.output().begin(), from.output().end());
  for (const onnx::AttributeProto& attribute : from.attribute()) {
    to.attributes.push_back(convert(attribute, owner));
  }
  return to;
}

}  // namespace

OnnxGraph mirror_of(const onnx::GraphProto& from, const Owner& owner) {
  OnnxGraph to;
  to.name = from.name();
  for (const onnx::NodeProto& node : from.node()) to.nodes.push_back(convert(node, owner));
  for (const onnx::TensorProto& tensor : from.initializer()) {
    to.initializers.push_back(mirror_of(tensor, owner));
  }
  for (const onnx::SparseTensorProto& tensor : from.sparse_initializer()) {
    to.sparse_initializers.push_back(tensor.values().name());
  }
  for (const onnx::ValueInfoProto& value : from.input()) to.inputs.push_back(convert(value));
  for (const onnx::ValueInfoProto& value : from.output()) to.outputs.push_back(convert(value));
  for (const onnx::ValueInfoProto& value : from.value_info()) {
    to.value_info.push_back(convert(value));
  }
  return to;
}

namespace {

template <class OpsetImports>
std::map<std::string, int64_t> opsets_of(const OpsetImports& imports) {
  std::map<std::string, int64_t> result;
  for (const onnx::OperatorSetIdProto& opset : imports) {
    result[domain_of(opset.domain())] = opset.version();
  }
  return result;
}

OnnxFunction convert(const onnx::FunctionProto& from, const Owner& owner) {
  OnnxFunction to;
  to.name = from.name();
  to.domain = domain_of(from.domain());
  to.inputs.assign(from.input().begin(), from.input().end());
  to.outputs.assign(from.output().begin(), from.output().end());
  to.attributes.assign(from.attribute().begin(), from.attribute().end());
  for (const onnx::NodeProto& node : from.node()) to.nodes.push_back(convert(node, owner));
  to.opsets = opsets_of(from.opset_import());
  return to;
}

bool is_floating(const onnx::TensorProto& tensor) {
  const std::optional<ElementType> element = element_type_of(tensor.data_type());
  return element && is_float(*element);
}

/// The floating-point tensor of one axis or more that a node of type Constant holds, or null.
onnx::TensorProto* weights_of(onnx::NodeProto& node) {
  if (node.op_type() != "Constant" || !domain_of(node.domain()).empty()) return nullptr;
  if (node.attribute_size() != 1 || node.output_size() != 1 || !node.attribute(0).has_t()) {
    return nullptr;
  }
  onnx::TensorProto* tensor = node.mutable_attribute(0)->mutable_t();
  return tensor->dims_size() > 0 && is_floating(*tensor) ? tensor : nullptr;
}

void count_definitions(const onnx::GraphProto& graph, std::map<std::string, int>& counts) {
  for (const onnx::TensorProto& tensor : graph.initializer()) ++counts[tensor.name()];
  for (const onnx::ValueInfoProto& input : graph.input()) ++counts[input.name()];
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) ++counts[output];
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) count_definitions(attribute.g(), counts);
    }
  }
}

/// Makes initializers of `to` of what nodes of type Constant hold in `from` and in graphs inside.
void initialize_weights(onnx::GraphProto& from, const std::map<std::string, int>& definitions,
                        onnx::GraphProto& to) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> rest;
  for (onnx::NodeProto& node : *from.mutable_node()) {
    onnx::TensorProto* weights = weights_of(node);
    if (weights && definitions.at(node.output(0)) == 1) {
      onnx::TensorProto& initializer = *to.add_initializer();
      initializer.Swap(weights);
      initializer.set_name(node.output(0));
      continue;
    }
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) initialize_weights(*attribute.mutable_g(), definitions, to);
    }
    rest.Add()->Swap(&node);
  }
  from.mutable_node()->Swap(&rest);
}

}  // namespace

void initialize_weights(onnx::GraphProto& graph) {
  if (std::any_of(graph.initializer().begin(), graph.initializer().end(), is_floating)) return;
  std::map<std::string, int> definitions;
  count_definitions(graph, definitions);
  initialize_weights(graph, definitions, graph);
}

OnnxModel parse_model_proto(std::string_view bytes) {
  const std::shared_ptr<onnx::ModelProto> from = parse_message<onnx::ModelProto>(bytes, "model");
  if (!from->has_graph()) {
    throw CompileError("the ONNX model has no graph; is this a file of another kind?");
  }
  initialize_weights(*from->mutable_graph());
  OnnxModel to;
  to.ir_version = from->ir_version();
  to.producer = from->producer_name();
  to.opsets = opsets_of(from->opset_import());
  to.graph = mirror_of(from->graph(), from);
  separate_statistics(to.graph);
  for (const onnx::FunctionProto& function : from->functions()) {
    to.functions.push_back(convert(function, from));
  }
  return to;
}

OnnxTensor parse_tensor_proto(std::string_view bytes) {
  // A tensor with every field at its default is an empty message.
  const std::shared_ptr<onnx::TensorProto> from = parse_message<onnx::TensorProto>(bytes, "tensor");
  return mirror_of(*from, from);
}

std::string serialize_tensor_proto(const std::string& name, int64_t data_type,
                                   const std::vector<int64_t>& dims,
                                   std::span<const std::byte> raw_data) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(static_cast<int32_t>(data_type));
  for (const int64_t extent : dims) tensor.add_dims(extent);
  tensor.set_raw_data(raw_data.data(), raw_data.size());
  return tensor.SerializeAsString();
}

}  // namespace backcast
