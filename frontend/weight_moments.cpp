#include "frontend/weight_moments.h"

#include <utility>
#include <vector>

#include "frontend/node_kinds.h"
#include "frontend/recurrent_cell.h"

namespace backcast {
namespace {

// Weights of a channel. A depthwise kernel has 9 of them, a network's first one 27.
constexpr size_t kFewestWeights = 32;

// Of more weights each is rounded by itself: moments take their square (512 channels by 3 × 3).
constexpr int64_t kMostWeights = 4608;

class MomentWriter {
 public:
  MomentWriter(const OnnxModel& model, const ComputedConstants& computed,
               const std::filesystem::path& model_dir)
      : nodes_(model.graph.nodes), parts_(model, computed, model_dir) {}

  MomentNodes run(const QuantisationPlan& plan) {
    for (const QuantisationPlan::Cell& cell : plan.cells) {
      states_[cell.node] = cell.states;
      if (!cell.is_named) parts_.edit.outputs[{cell.node, 0}] = cell.states;
    }
    for (const GraphEdit::Place& place : plan.narrow) {
      node_ = place.first;
      const OnnxNode& node = nodes_[node_];
      Channels weights = parts_.read(node.inputs[place.second]);
      weights.axis = channel_axis(node, place.second, weights.shape.size());
      const std::vector<int64_t>& shape = weights.shape;
      if (static_cast<int64_t>(weights.values.size() / weights.count()) > kMostWeights) continue;
      if (node.op_type == "Conv") {
        values_[place] = of_convolution(node, shape);
      } else if (is_recurrent(node)) {
        const bool of_data = place.second == recurrent_input::kWeights;
        const std::string& rows = of_data ? node.inputs[recurrent_input::kData] : states_.at(node_);
        values_[place] = of_rows(rows, shape[2]);
      } else if (multiplies_rows(node, place.second, shape)) {
        values_[place] = of_rows(node.inputs[0], shape[*channel_axis(node, 1, 2) == 0 ? 1 : 0]);
      }
    }
    return {std::move(parts_.edit), std::move(values_)};
  }

 private:
  static bool multiplies_rows(const OnnxNode& node, size_t input,
                              const std::vector<int64_t>& shape) {
    return input == 1 && shape.size() == 2 &&
           (node.op_type == "MatMul" ||
            (node.op_type == "Gemm" && integer_attribute(node, "transA", 0) == 0));
  }

  /// With unit weights a convolution gives what weights are multiplied by, a channel for each.
  std::string of_convolution(const OnnxNode& node, std::vector<int64_t> shape) {
    const int64_t groups = integer_attribute(node, "group", 1);
    int64_t size = 1;
    for (size_t d = 1; d < shape.size(); ++d) size *= shape[d];
    shape[0] = groups * size;
    std::vector<double> units(static_cast<size_t>(groups * size * size), 0);
    for (int64_t i = 0; i < groups * size; ++i) {
      units[static_cast<size_t>(i * size + i % size)] = 1;
    }
    OnnxNode columns;
    columns.op_type = node.op_type;
    columns.domain = node.domain;
    for (const OnnxAttribute& attribute : node.attributes) {
      using Kind = OnnxAttribute::Kind;
      const bool is_known = attribute.kind == Kind::integer || attribute.kind == Kind::integers ||
                            attribute.kind == Kind::string;
      if (is_known) columns.attributes.push_back(attribute);
    }
    columns.inputs = {node.inputs[0], parts_.add_floats("units", shape, units)};
    const std::string all = add(std::move(columns));
    const std::string by_group =
        add("Reshape", {all, parts_.add_ints("shape", {0, groups, size, -1})});
    return add("MatMul", {by_group, transposed(by_group)});
  }

  std::string of_rows(const std::string& name, int64_t size) {
    const std::string rows = add("Reshape", {name, parts_.add_ints("shape", {1, 1, -1, size})});
    return add("MatMul", {transposed(rows), rows});
  }

  std::string transposed(const std::string& matrices) {
    OnnxNode node;
    node.op_type = "Transpose";
    node.inputs = {matrices};
    node.attributes = {made_attribute("perm", std::vector<int64_t>{0, 1, 3, 2})};
    return add(std::move(node));
  }

  std::string add(const std::string& op_type, std::vector<std::string> inputs) {
    OnnxNode node;
    node.op_type = op_type;
    node.inputs = std::move(inputs);
    return add(std::move(node));
  }

  /// Behind the product; its result's name.
  std::string add(OnnxNode node) {
    const std::string result = parts_.free("moments");
    node.outputs = {result};
    parts_.insert(node_, std::move(node));
    return result;
  }

  const std::vector<OnnxNode>& nodes_;
  QuantisedParts parts_;
  size_t node_ = 0;
  std::map<size_t, std::string> states_;  // of recurrent layers
  std::map<GraphEdit::Place, std::string> values_;
};

}  // namespace

void narrow_weights(QuantisationPlan& plan, const OnnxModel& model,
                    const ComputedConstants& computed, const StaysFloat& keeps_bytes,
                    const std::filesystem::path& model_dir) {
  const QuantisedParts parts(model, computed, model_dir);
  const auto narrow = [&](size_t place, size_t input) {
    const OnnxNode& node = model.graph.nodes[place];
    if (keeps_bytes(node)) return;
    Channels weights = parts.read(node.inputs[input]);
    weights.axis = channel_axis(node, input, weights.shape.size());
    if (!weights.axis) return;
    // Directions of recurrent layers share no channel.
    const size_t channels = weights.count() * (is_recurrent(node) ? weights.shape[0] : 1);
    if (weights.values.size() >= kFewestWeights * channels) plan.narrow.insert({place, input});
  };
  for (const QuantisationPlan::Product& product : plan.products) {
    if (product.weight) narrow(product.node, *product.weight);
  }
  for (const QuantisationPlan::Cell& cell : plan.cells) {
    narrow(cell.node, recurrent_input::kWeights);
    narrow(cell.node, recurrent_input::kRecurrentWeights);
  }
}

MomentNodes moment_nodes(const OnnxModel& model, const QuantisationPlan& plan,
                         const ComputedConstants& computed,
                         const std::filesystem::path& model_dir) {
  return MomentWriter(model, computed, model_dir).run(plan);
}

}  // namespace backcast
