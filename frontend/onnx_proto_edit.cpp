// Edits files of ONNX messages: trained weights, quantised layers. All else in a file stays as it
// is, known to us or not.
#include <algorithm>
#include <climits>

#include "frontend/graph_names.h"
#include "frontend/onnx_proto.h"
#include "frontend/onnx_proto_messages.h"
#include "frontend/onnx_tensors.h"
#include "frontend/separate_statistics.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

void set_data(onnx::TensorProto& tensor, const Literal& value) {
  tensor.clear_float_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_double_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(value.bytes().data(), value.bytes().size());
}

void take_in(onnx::TensorProto& tensor, const std::filesystem::path& model_dir) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
  set_data(tensor, to_literal(mirror_of(tensor, nullptr), model_dir));
}

void take_in(onnx::GraphProto& graph, const std::filesystem::path& model_dir);

template <class Nodes>
void take_in_nodes(Nodes& nodes, const std::filesystem::path& model_dir) {
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) take_in(*attribute.mutable_t(), model_dir);
      if (attribute.has_g()) take_in(*attribute.mutable_g(), model_dir);
    }
  }
}

/// As deep as graphs are nested in nodes.
void take_in(onnx::GraphProto& graph, const std::filesystem::path& model_dir) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) take_in(tensor, model_dir);
  take_in_nodes(*graph.mutable_node(), model_dir);
}

bool is_used(const onnx::GraphProto& graph, const std::string& name) {
  for (const onnx::ValueInfoProto& output : graph.output()) {
    if (output.name() == name) return true;
  }
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (input == name) return true;
    }
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g() && is_used(attribute.g(), name)) return true;
    }
  }
  return false;
}

/// BatchNormalization by running statistics, Dropout that drops nothing: runtimes for inference
/// refuse the other. The statistics' new values are left out; if somebody uses them, nothing
/// changes.
void set_inference(onnx::NodeProto& node, const onnx::GraphProto& graph) {
  if (!domain_of(node.domain()).empty()) return;
  if (node.op_type() == "Dropout" && node.input_size() > 2) {
    node.mutable_input()->DeleteSubrange(2, node.input_size() - 2);
  }
  if (node.op_type() != "BatchNormalization") return;
  for (int i = 1; i < node.output_size(); ++i) {
    if (is_used(graph, node.output(i))) return;
  }
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.name() != "training_mode" || attribute.i() == 0) continue;
    attribute.set_i(0);
    node.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
  }
}

void set_inference(onnx::GraphProto& graph) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    set_inference(node, graph);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) set_inference(*attribute.mutable_g());
    }
  }
}

/// See separate_statistics.
void separate_statistics(onnx::GraphProto& graph) {
  for (const SharedStatistic& statistic : shared_statistics(mirror_of(graph, nullptr))) {
    const auto copy = [&](auto& list) {
      for (const auto& one : list) {
        if (one.name() != statistic.initializer) continue;
        auto own = one;
        own.set_name(statistic.name);
        *list.Add() = std::move(own);
        return;
      }
    };
    copy(*graph.mutable_initializer());
    copy(*graph.mutable_input());  // where old files list initializers as well
    onnx::NodeProto& node = *graph.mutable_node(static_cast<int>(statistic.node));
    node.set_input(static_cast<int>(statistic.input), statistic.name);
    if (!statistic.identity) continue;
    graph.mutable_node(static_cast<int>(*statistic.identity))->set_output(0, statistic.output);
  }
}

/// See unquantise.h.
void apply(const Unquantised& edit, onnx::GraphProto& graph) {
  const int32_t type = static_cast<int32_t>(
      edit.weights.empty() ? onnx_type::kFloat
                           : onnx_data_type_of(edit.weights.begin()->second.element()));
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    const std::map<std::string, Literal>::const_iterator value = edit.weights.find(tensor.name());
    if (value == edit.weights.end()) continue;
    tensor.set_data_type(type);
    set_data(tensor, value->second);
  }
  for (const Unquantised::PlainNode& plain : edit.nodes) {
    onnx::NodeProto& node = *graph.mutable_node(static_cast<int>(plain.node));
    node.set_op_type(plain.op_type());
    node.clear_domain();
    node.clear_attribute();
    node.mutable_input()->DeleteSubrange(1, node.input_size() - 1);
  }
  for (auto* infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
    for (onnx::ValueInfoProto& info : *infos) {
      if (!edit.weights.contains(info.name()) && !edit.values.contains(info.name())) continue;
      info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    }
  }
}

onnx::GraphProto message_of(const OnnxGraph& graph);

onnx::AttributeProto message_of(const OnnxAttribute& attribute) {
  onnx::AttributeProto message;
  message.set_name(attribute.name);
  switch (attribute.kind) {
    case OnnxAttribute::Kind::integer:
      message.set_type(onnx::AttributeProto::INT);
      message.set_i(attribute.i);
      break;
    case OnnxAttribute::Kind::string:
      message.set_type(onnx::AttributeProto::STRING);
      message.set_s(attribute.s);
      break;
    case OnnxAttribute::Kind::integers:
      message.set_type(onnx::AttributeProto::INTS);
      for (const int64_t value : attribute.ints) message.add_ints(value);
      break;
    case OnnxAttribute::Kind::graph:
      message.set_type(onnx::AttributeProto::GRAPH);
      *message.mutable_g() = message_of(*attribute.g);
      break;
    default:
      BC_CHECK(false, "{} is of another kind", attribute.name);
  }
  return message;
}

onnx::NodeProto message_of(const OnnxNode& node) {
  onnx::NodeProto message;
  message.set_name(node.name);
  message.set_op_type(node.op_type);
  message.set_domain(node.domain);
  for (const std::string& input : node.inputs) message.add_input(input);
  for (const std::string& output : node.outputs) message.add_output(output);
  for (const OnnxAttribute& attribute : node.attributes) {
    *message.add_attribute() = message_of(attribute);
  }
  return message;
}

/// Of nodes alone; shapes of inputs and outputs are left to who reads it.
onnx::GraphProto message_of(const OnnxGraph& graph) {
  onnx::GraphProto message;
  message.set_name(graph.name);
  for (const OnnxNode& node : graph.nodes) *message.add_node() = message_of(node);
  const auto add = [](const std::vector<OnnxValueInfo>& from, auto& to) {
    for (const OnnxValueInfo& info : from) {
      onnx::ValueInfoProto& value = *to.Add();
      value.set_name(info.name);
      value.mutable_type()->mutable_tensor_type()->set_elem_type(
          static_cast<int32_t>(info.element_type));
    }
  };
  add(graph.inputs, *message.mutable_input());
  add(graph.outputs, *message.mutable_output());
  return message;
}

/// The edit's part that names nodes by their places.
void edit_nodes(const GraphEdit& edit, onnx::GraphProto& graph) {
  for (const auto& [place, name] : edit.inputs) {
    onnx::NodeProto& node = *graph.mutable_node(static_cast<int>(place.first));
    while (node.input_size() <= static_cast<int>(place.second)) node.add_input("");
    node.set_input(static_cast<int>(place.second), name);
  }
  for (const auto& [place, name] : edit.outputs) {
    graph.mutable_node(static_cast<int>(place.first))
        ->set_output(static_cast<int>(place.second), name);
  }
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  std::map<std::optional<size_t>, std::vector<const OnnxNode*>> insertions;
  for (const GraphEdit::Insertion& insertion : edit.insertions) {
    insertions[insertion.behind].push_back(&insertion.node);
  }
  const auto insert = [&](std::optional<size_t> behind) {
    for (const OnnxNode* node : insertions[behind]) *nodes.Add() = message_of(*node);
  };
  insert(std::nullopt);
  for (size_t i = 0; i < static_cast<size_t>(graph.node_size()); ++i) {
    if (!edit.removed.contains(i)) nodes.Add()->Swap(graph.mutable_node(static_cast<int>(i)));
    insert(i);
  }
  graph.mutable_node()->Swap(&nodes);
}

/// Leaves out those elements of a repeated field whose names are among `names`.
template <class Field>
void remove(const std::set<std::string>& names, Field& field) {
  const auto is_removed = [&](const auto& one) { return names.contains(one.name()); };
  field.erase(std::remove_if(field.begin(), field.end(), is_removed), field.end());
}

/// Removes nodes of which all that was used, by `users`, is used no more.
void remove_unused_nodes(const std::map<std::string, std::set<size_t>>& users,
                         onnx::GraphProto& graph) {
  for (bool changed = true; changed;) {
    const auto users_now = users_of(mirror_of(graph, nullptr));
    const auto is_unused = [&](const onnx::NodeProto& node) {
      bool was_used = false, is_used = false;
      for (const std::string& output : node.output()) {
        was_used = was_used || users.contains(output);
        is_used = is_used || users_now.contains(output);
      }
      return was_used && !is_used;
    };
    auto& nodes = *graph.mutable_node();
    const auto unused = std::remove_if(nodes.begin(), nodes.end(), is_unused);
    changed = unused != nodes.end();
    nodes.erase(unused, nodes.end());
  }
}

/// Removes constants, as deep as graphs are nested in nodes.
void remove_constants(const std::set<std::string>& names, onnx::GraphProto& graph) {
  remove(names, *graph.mutable_initializer());
  remove(names, *graph.mutable_input());  // where old files list initializers as well
  auto& nodes = *graph.mutable_node();
  const auto is_one = [&](const onnx::NodeProto& node) {
    return node.op_type() == "Constant" && names.contains(node.output(0));
  };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), is_one), nodes.end());
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) remove_constants(names, *attribute.mutable_g());
    }
  }
}

/// See graph_edit.h.
void apply(const GraphEdit& edit, onnx::GraphProto& graph) {
  const OnnxGraph before = mirror_of(graph, nullptr);
  const auto users = users_of(before);
  edit_nodes(edit, graph);
  if (!edit.redefined.empty()) remove_constants(edit.redefined, graph);
  remove_unused_nodes(users, graph);
  const OnnxGraph after = mirror_of(graph, nullptr);
  const auto users_now = users_of(after);
  std::set<std::string> unused;
  for (const OnnxTensor& tensor : before.initializers) {
    if (users.contains(tensor.name) && !users_now.contains(tensor.name)) unused.insert(tensor.name);
  }
  std::set<std::string> gone = defined_names(before);
  for (const std::string& name : defined_names(after)) gone.erase(name);
  gone.insert(unused.begin(), unused.end());
  remove(gone, *graph.mutable_value_info());
  remove(unused, *graph.mutable_initializer());
  remove(unused, *graph.mutable_input());  // where old files list initializers as well
  for (const auto& [name, value] : edit.initializers) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(static_cast<int32_t>(onnx_data_type_of(value.element())));
    for (const int64_t extent : value.shape()) tensor.add_dims(extent);
    set_data(tensor, value);
  }
  for (auto* infos : {graph.mutable_input(), graph.mutable_output()}) {
    for (onnx::ValueInfoProto& info : *infos) {
      const auto type = edit.types.find(info.name());
      if (type == edit.types.end()) continue;
      info.mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int32_t>(type->second));
    }
  }
}

/// The model with its external data inside, for inference.
std::string serialized(onnx::ModelProto& model, const std::filesystem::path& model_dir) {
  take_in(*model.mutable_graph(), model_dir);
  set_inference(*model.mutable_graph());
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    take_in_nodes(*function.mutable_node(), model_dir);
  }
  if (model.ByteSizeLong() > static_cast<size_t>(INT_MAX)) {
    throw CompileError(
        "with its external data inside, the model takes 2 GB or more, which no ONNX file can hold");
  }
  return model.SerializeAsString();
}

}  // namespace

std::string trained_model(std::string_view bytes, const Unquantised& edit,
                          const std::map<std::string, Literal>& values,
                          const std::filesystem::path& model_dir) {
  const std::shared_ptr<onnx::ModelProto> model = parse_message<onnx::ModelProto>(bytes, "model");
  initialize_weights(*model->mutable_graph());
  separate_statistics(*model->mutable_graph());
  apply(edit, *model->mutable_graph());
  for (onnx::TensorProto& tensor : *model->mutable_graph()->mutable_initializer()) {
    const std::map<std::string, Literal>::const_iterator value = values.find(tensor.name());
    if (value == values.end()) continue;
    const Literal& data = value->second;
    BC_CHECK(onnx_data_type_of(data.element()) == tensor.data_type() &&
                 std::equal(data.shape().begin(), data.shape().end(), tensor.dims().begin(),
                            tensor.dims().end()),
             "\"{}\" is not {}", tensor.name(), to_string(data.type()));
    set_data(tensor, data);
  }
  return serialized(*model, model_dir);
}

std::string edited_model(std::string_view bytes, const GraphEdit& edit,
                         const std::filesystem::path& model_dir) {
  const std::shared_ptr<onnx::ModelProto> model = parse_message<onnx::ModelProto>(bytes, "model");
  initialize_weights(*model->mutable_graph());
  separate_statistics(*model->mutable_graph());
  apply(edit, *model->mutable_graph());
  for (const auto& [domain, version] : edit.opsets) {
    onnx::OperatorSetIdProto& opset = *model->add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  return serialized(*model, model_dir);
}

}  // namespace backcast
