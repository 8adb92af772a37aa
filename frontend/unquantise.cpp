#include "frontend/unquantise.h"

#include <algorithm>
#include <optional>

#include "frontend/graph_names.h"
#include "frontend/node_kinds.h"
#include "frontend/onnx_tensors.h"

namespace backcast {
namespace {

bool is_linear(const OnnxNode& node, std::string_view op_type) {
  return node.op_type == op_type && (node.domain.empty() || node.domain == "com.microsoft") &&
         node.inputs.size() >= 2 && node.outputs.size() == 1;
}
bool is_quantize(const OnnxNode& node) { return is_linear(node, "QuantizeLinear"); }
bool is_dequantize(const OnnxNode& node) { return is_linear(node, "DequantizeLinear"); }

bool is_quantised_type(int64_t type) {
  using namespace onnx_type;
  const int64_t all[] = {kInt4, kUint4, kInt8, kUint8, kInt16, kUint16, kInt32};
  return std::ranges::find(all, type) != std::end(all);
}

/// Which scale or zero point belongs to an element of a tensor: the one for all, the one of its
/// place along an axis, or of its block of places there.
class Places {
 public:
  Places(const std::vector<int64_t>& shape, int64_t axis, int64_t block) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    axis_ = axis < 0 ? axis + rank : axis;
    for (int64_t i = 0; i < rank; ++i) {
      if (i > axis_) inner_ *= shape[static_cast<size_t>(i)];
    }
    is_valid_ = axis_ >= 0 && axis_ < rank;
    if (is_valid_) extent_ = shape[static_cast<size_t>(axis_)];
    block_ = std::clamp<int64_t>(block, 1, std::max<int64_t>(extent_, 1));
  }

  bool fit(const Literal& parameters, int64_t count) const {
    if (parameters.element_count() == 1) return true;
    if (!is_valid_) return false;
    if (parameters.shape().size() == 1) return parameters.element_count() == extent_;
    return parameters.element_count() == count / extent_ * rows();
  }

  int64_t of(const Literal& parameters, int64_t i) const {
    if (parameters.element_count() == 1) return 0;
    const int64_t along = i / inner_ % extent_;
    if (parameters.shape().size() == 1) return along;
    return (i / (inner_ * extent_) * rows() + along / block_) * inner_ + i % inner_;
  }

 private:
  int64_t rows() const { return (extent_ + block_ - 1) / block_; }

  int64_t axis_ = 0, block_ = 1, inner_ = 1, extent_ = 0;
  bool is_valid_ = false;
};

class Editor {
 public:
  Editor(const OnnxGraph& graph, const std::filesystem::path& model_dir)
      : graph_(graph),
        model_dir_(model_dir),
        users_(users_of(graph)),
        constants_(constants_of(graph)) {}

  /// The DequantizeLinear that alone reads an initializer.
  const OnnxNode* reader(const OnnxTensor& weight) const {
    const auto found = users_.find(weight.name);
    if (!is_quantised_type(weight.data_type) || found == users_.end()) return nullptr;
    if (found->second.size() != 1 || *found->second.begin() >= graph_.nodes.size()) return nullptr;
    const OnnxNode& node = graph_.nodes[*found->second.begin()];
    const bool known = is_dequantize(node) && node.inputs[0] == weight.name &&
                       node.inputs[1] != weight.name && constants_.contains(node.inputs[1]) &&
                       (!has_zero(node) || constants_.contains(node.inputs[2]));
    return known && integer_attribute(node, "output_dtype", 0) == 0 ? &node : nullptr;
  }

  Unquantised edit(const std::set<std::string>& names) {
    for (const OnnxTensor& tensor : graph_.initializers) {
      if (!names.contains(tensor.name)) continue;
      const std::optional<ElementType> element = element_type_of(tensor.data_type);
      if (element && is_float(*element)) learns_.insert(tensor.name);
      const OnnxNode* node = reader(tensor);
      if (!node) continue;
      if (std::optional<Literal> value = dequantised(*node)) {
        edit_.weights.emplace(tensor.name, std::move(*value));
      }
    }
    for (const size_t i : topological_order(graph_.nodes)) visit(i);
    return std::move(edit_);
  }

 private:
  static bool has_zero(const OnnxNode& node) {
    return node.inputs.size() > 2 && !node.inputs[2].empty();
  }

  Literal literal(const std::string& name) const {
    const OnnxTensor& tensor = *constants_.at(name);
    if (std::optional<Literal> wide = widened(tensor, model_dir_)) return *wide;
    return to_literal(tensor, model_dir_);
  }

  /// What the node makes of a constant; none when it is empty or its scales do not fit, which
  /// import complains of.
  std::optional<Literal> dequantised(const OnnxNode& node) const {
    const Literal q = literal(node.inputs[0]), scale = literal(node.inputs[1]);
    const Literal zero = has_zero(node) ? literal(node.inputs[2]) : Literal::from_ints({}, {0});
    const int64_t count = q.element_count();
    if (count == 0) return std::nullopt;
    const Places places(q.shape(), integer_attribute(node, "axis", q.shape().size() == 1 ? 0 : 1),
                        integer_attribute(node, "block_size", 1));
    if (!is_float(scale.element()) || !places.fit(scale, count) || !places.fit(zero, count)) {
      return std::nullopt;
    }
    std::vector<double> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const double steps = q.as_double(i) - zero.as_double(places.of(zero, i));
      values[static_cast<size_t>(i)] = steps * scale.as_double(places.of(scale, i));
    }
    return Literal::from_doubles(scale.element(), q.shape(), values);
  }

  /// Whether both are one constant, or none.
  bool same(const OnnxNode& a, const OnnxNode& b, size_t input) const {
    const auto name = [&](const OnnxNode& node) {
      return input < node.inputs.size() ? node.inputs[input] : std::string();
    };
    if (name(a) == name(b)) return true;
    if (!constants_.contains(name(a)) || !constants_.contains(name(b))) return false;
    return literal(name(a)) == literal(name(b));
  }

  /// Whether all that reads what `quantize` gave can take what was quantised instead; adds the
  /// nodes and values that change.
  bool takes_floats(const OnnxNode& quantize, Unquantised& change) const {
    std::vector<std::string> todo = {quantize.outputs[0]};
    while (!todo.empty()) {
      const std::string value = todo.back();
      todo.pop_back();
      const auto found = users_.find(value);
      if (value.empty() || !change.values.insert(value).second || found == users_.end()) continue;
      for (const size_t user : found->second) {
        if (user == graph_.nodes.size()) continue;  // an output of the model
        const OnnxNode& node = graph_.nodes[user];
        if (std::ranges::count(node.inputs, value) != 1 || node.inputs[0] != value) return false;
        if (is_dequantize(node) && same(node, quantize, 1) && same(node, quantize, 2)) {
          change.nodes.push_back({user, false});
        } else if (is_movement(node)) {
          todo.insert(todo.end(), node.outputs.begin(), node.outputs.end());
        } else {
          return false;
        }
      }
    }
    return true;
  }

  /// Whether a format holds nothing below zero.
  bool zero_is_least(const OnnxNode& node) const {
    const int64_t type = integer_attribute(node, "output_dtype", 0);
    if (!has_zero(node)) return is_quantize(node) && (type == 0 || type == onnx_type::kUint8);
    if (!constants_.contains(node.inputs[2])) return false;
    const Literal zero = literal(node.inputs[2]);
    return is_integer(zero.element()) && zero.is_splat(lowest_value(zero.element()));
  }

  /// Whether the result is nowhere below zero, or stands for nothing below it.
  bool is_nonnegative(const OnnxNode& node) const {
    if (node.inputs.empty() || constants_.contains(node.inputs[0])) return false;
    if ((is_quantize(node) || is_dequantize(node)) && zero_is_least(node)) return true;
    const bool pools = node.op_type == "AveragePool" || node.op_type == "GlobalAveragePool";
    if (node.op_type == "Relu") return node.domain.empty();
    return (is_movement(node) || (pools && node.domain.empty()) || is_dequantize(node)) &&
           nonnegative_.contains(node.inputs[0]);
  }

  bool learns(const OnnxNode& node) const {
    const auto is_it = [&](const std::string& name) { return learns_.contains(name); };
    return std::ranges::any_of(node.inputs, is_it) ||
           std::ranges::any_of(names_of_bodies(node), is_it);
  }

  void visit(size_t i) {
    const OnnxNode& node = graph_.nodes[i];
    const bool is_weight = is_dequantize(node) && edit_.weights.contains(node.inputs[0]);
    if (is_weight) edit_.nodes.push_back({i, false});
    bool goes_on = is_weight || learns(node);
    if (goes_on && is_quantize(node)) {
      Unquantised change;
      goes_on = takes_floats(node, change);
      if (goes_on) {
        const bool is_activation = !constants_.contains(node.inputs[0]);
        const bool rectifies =
            is_activation && zero_is_least(node) && !nonnegative_.contains(node.inputs[0]);
        edit_.nodes.push_back({i, rectifies});
        edit_.nodes.insert(edit_.nodes.end(), change.nodes.begin(), change.nodes.end());
        edit_.values.merge(change.values);
      } else {
        ++edit_.kept;
      }
    }
    if (goes_on) learns_.insert(node.outputs.begin(), node.outputs.end());
    if (is_nonnegative(node)) nonnegative_.insert(node.outputs.begin(), node.outputs.end());
    learns_.erase("");
  }

  const OnnxGraph& graph_;
  const std::filesystem::path& model_dir_;
  const std::map<std::string, std::set<size_t>> users_;
  const std::map<std::string, const OnnxTensor*> constants_;
  Unquantised edit_;
  std::set<std::string> learns_;       // values that depend on the weights
  std::set<std::string> nonnegative_;  // values that no rectifier changes
};

}  // namespace

std::vector<std::string> quantised_weights(const OnnxGraph& graph) {
  std::vector<std::string> names;
  if (std::ranges::none_of(graph.nodes, is_dequantize)) return names;
  const std::filesystem::path nowhere;  // no data is read
  const Editor editor(graph, nowhere);
  for (const OnnxTensor& tensor : graph.initializers) {
    if (editor.reader(tensor)) names.push_back(tensor.name);
  }
  return names;
}

Unquantised unquantise(const OnnxGraph& graph, const std::set<std::string>& names,
                       const std::filesystem::path& model_dir) {
  return names.empty() ? Unquantised() : Editor(graph, model_dir).edit(names);
}

void apply(const Unquantised& edit, OnnxGraph& graph) {
  for (OnnxTensor& tensor : graph.initializers) {
    const std::map<std::string, Literal>::const_iterator value = edit.weights.find(tensor.name);
    if (value != edit.weights.end()) tensor = to_tensor(tensor.name, value->second);
  }
  for (const Unquantised::PlainNode& plain : edit.nodes) {
    OnnxNode& node = graph.nodes[plain.node];
    node.op_type = plain.op_type();
    node.domain.clear();
    node.inputs.resize(1);
    node.attributes.clear();
  }
}

}  // namespace backcast
