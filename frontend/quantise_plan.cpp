#include "frontend/quantise_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "frontend/constant_names.h"
#include "frontend/graph_names.h"
#include "frontend/node_kinds.h"
#include "frontend/recurrent_cell.h"

namespace backcast {
namespace {

/// What is known of a value that depends on inputs of the model.
struct Dependent {
  bool is_integer_born = false;  // products, and what kinds make of them, alone led to it
  bool accumulates = false;      // a product, or the first function of several values
  bool is_absorbed = false;      // its only reader computes with the accumulators
  bool is_wanted = false;        // as integers, by a reader
  std::string source;            // of which alone it is an elementwise function, or itself
  size_t position = 0;           // of its node in the order
};

/// Disjoint sets of numbers.
class Groups {
 public:
  size_t add() {
    parents_.push_back(parents_.size());
    return parents_.size() - 1;
  }
  size_t of(size_t i) const {
    while (parents_[i] != i) i = parents_[i];
    return i;
  }
  void join(size_t a, size_t b) { parents_[of(a)] = of(b); }

 private:
  std::vector<size_t> parents_;
};

/// Whether there are products or recurrent layers in graphs within a node.
bool has_products_within(const OnnxNode& node, int depth = 0) {
  if (depth > kMaxGraphDepth) return false;
  return std::ranges::any_of(node.attributes, [&](const OnnxAttribute& attribute) {
    return attribute.g && std::ranges::any_of(attribute.g->nodes, [&](const OnnxNode& inner) {
             const NodeKind kind = kind_of(inner);
             return kind == NodeKind::product || kind == NodeKind::recurrent ||
                    has_products_within(inner, depth + 1);
           });
  });
}

class Planner {
 public:
  Planner(const OnnxGraph& graph, const StaysFloat& stays_float)
      : graph_(graph),
        order_(topological_order(graph.nodes)),
        users_(users_of(graph)),
        constants_(graph),
        taken_(defined_names(graph)) {
    for (const OnnxNode& node : graph.nodes) kinds_.push_back(kind_of(node));
    for (const OnnxValueInfo& input : graph.inputs) {
      if (constants_.is_constant(input.name) || input.element_type != onnx_type::kFloat) continue;
      values_[input.name] = {.is_integer_born = true, .source = input.name};
    }
    for (const OnnxNode& node : graph.nodes) {
      if (node.op_type != "DequantizeLinear") continue;
      dequantised_.insert(node.outputs.begin(), node.outputs.end());
    }
    for (size_t k = 0; k < order_.size(); ++k) follow(order_[k], k);
    for (const size_t i : order_) choose(i, stays_float);
    for (auto i = order_.rbegin(); i != order_.rend(); ++i) want(*i);
  }

  QuantisationPlan plan() {
    for (const OnnxValueInfo& input : graph_.inputs) add(input.name);
    for (const size_t i : order_) {
      for (const std::string& output : graph_.nodes[i].outputs) add(output);
    }
    join_formats();
    note_computed();
    return std::move(plan_);
  }

 private:
  /// Operands that are no constants.
  std::vector<std::string> variables(const OnnxNode& node) const {
    std::vector<std::string> names;
    for (const size_t i : operands(node)) {
      if (!constants_.is_constant(node.inputs[i])) names.push_back(node.inputs[i]);
    }
    return names;
  }

  /// The only node that reads it; none when there are several or it is an output of the model.
  std::optional<size_t> only_reader(const std::string& name) const {
    const auto found = users_.find(name);
    if (found == users_.end() || found->second.size() != 1) return std::nullopt;
    const size_t reader = *found->second.begin();
    return reader < graph_.nodes.size() ? std::optional(reader) : std::nullopt;
  }

  /// Whether products led to it, or an input of the model in f32.
  bool is_born(const std::string& name) const {
    const auto found = values_.find(name);
    return found != values_.end() && found->second.is_integer_born;
  }

  bool has_f32_factor(const OnnxNode& product) const {
    if (is_recurrent(product))
      return constants_.is_float(product.inputs[recurrent_input::kWeights]);
    return std::ranges::any_of(operands(product), [&](size_t i) {
      return constants_.is_float(product.inputs[i]) || is_born(product.inputs[i]);
    });
  }

  void choose(size_t i, const StaysFloat& stays_float) {
    const OnnxNode& node = graph_.nodes[i];
    const auto leave = [&](const std::string& why) {
      plan_.left.push_back(fmt::format("{} ({}): {}", name_of(node), node.op_type, why));
    };
    if (has_products_within(node)) return leave("products within it");
    const std::vector<std::string> data = variables(node);
    if (!has_products(i) || data.empty()) return;
    if (stays_float(node)) return leave("as was asked");
    if (kinds_[i] == NodeKind::recurrent) {
      const std::string why = why_cell_stays(node);
      return why.empty() ? add_cell(i) : leave(why);
    }
    QuantisationPlan::Product product{.node = i, .weight = {}, .norm = {}};
    for (const size_t input : operands(node)) {
      if (constants_.is_constant(node.inputs[input])) product.weight = input;
    }
    const auto is_quantised = [&](const std::string& name) { return dequantised_.contains(name); };
    if (std::ranges::any_of(data, is_quantised)) return leave("it is quantised already");
    const bool is_convolution = node.op_type.starts_with("Conv");
    if (is_convolution && product.weight != 1u) return leave("its weights are computed");
    if (product.weight && !constants_.is_float(node.inputs[*product.weight])) {
      return leave("its weights are no f32");
    }
    if (!has_f32_factor(node)) return leave("neither factor is known to be f32");
    if (is_convolution) product.norm = norm_behind(node);
    products_.insert(i);
    plan_.products.push_back(product);
  }

  /// Products, or a cell with some.
  bool has_products(size_t i) const {
    return kinds_[i] == NodeKind::product || kinds_[i] == NodeKind::recurrent;
  }

  std::string why_cell_stays(const OnnxNode& node) const {
    namespace place = recurrent_input;
    for (const size_t i : {place::kWeights, place::kRecurrentWeights, place::kBias}) {
      if (i == place::kBias && !has_input(node, i)) continue;
      if (!constants_.is_constant(node.inputs[i])) return "its weights are computed";
      if (!constants_.is_float(node.inputs[i])) return "its weights are no f32";
    }
    if (dequantised_.contains(node.inputs[place::kData])) return "it is quantised already";
    return why_not_plain(node);
  }

  void add_cell(size_t i) {
    const OnnxNode& node = graph_.nodes[i];
    QuantisationPlan::Cell cell{.node = i, .format = groups_.add()};
    cell.is_named = !node.outputs[0].empty();
    cell.states = cell.is_named ? node.outputs[0] : free_name(name_of(node) + "_states", taken_);
    if (has_input(node, recurrent_input::kHidden)) {
      cell.initial = node.inputs[recurrent_input::kHidden];
    }
    products_.insert(i);
    plan_.cells.push_back(std::move(cell));
  }

  /// A BatchNormalization of constants that alone reads a convolution.
  std::optional<size_t> norm_behind(const OnnxNode& convolution) const {
    const std::optional<size_t> reader = only_reader(convolution.outputs[0]);
    if (!reader || kinds_[*reader] != NodeKind::elementwise) return std::nullopt;
    const OnnxNode& norm = graph_.nodes[*reader];
    if (norm.op_type != "BatchNormalization" || norm.inputs.size() != 5) return std::nullopt;
    if (convolution.op_type == "ConvTranspose" && integer_attribute(convolution, "group", 1) != 1)
      return std::nullopt;
    const bool has_bias = convolution.inputs.size() > 2 && !convolution.inputs[2].empty();
    std::vector<std::string> needed(norm.inputs.begin() + 1, norm.inputs.end());
    if (has_bias) needed.push_back(convolution.inputs[2]);
    const bool known = std::ranges::all_of(
        needed, [&](const std::string& name) { return constants_.is_float(name); });
    return known ? reader : std::nullopt;
  }

  /// From what a node reads to what is known of its results.
  void follow(size_t i, size_t position) {
    const OnnxNode& node = graph_.nodes[i];
    const std::vector<std::string> data = variables(node);
    if (kinds_[i] == NodeKind::other || data.empty()) return;
    const bool is_product = kinds_[i] == NodeKind::product;
    const bool is_cell = kinds_[i] == NodeKind::recurrent;
    const auto born = [&](const std::string& name) { return is_born(name); };
    const bool result_is_born =
        has_products(i) ? has_f32_factor(node) : std::ranges::all_of(data, born);
    std::set<std::string> sources;
    for (const std::string& name : data) {
      const auto found = values_.find(name);
      sources.insert(found == values_.end() ? name : found->second.source);
    }
    for (const std::string& output : node.outputs) {
      if (output.empty() || (is_cell && &output - node.outputs.data() > 1)) continue;
      Dependent& result = values_[output];
      result = {.is_integer_born = result_is_born, .source = output, .position = position};
      if (kinds_[i] == NodeKind::elementwise && !absorbs(i, data) && sources.size() == 1) {
        result.source = *sources.begin();
      } else {
        result.accumulates = is_product || kinds_[i] == NodeKind::elementwise;
      }
    }
  }

  /// Whether an elementwise node computes with accumulators: those of the last one that it reads,
  /// since the other operands are there by then.
  bool absorbs(size_t i, const std::vector<std::string>& data) {
    if (!is_cheap(graph_.nodes[i])) return false;
    Dependent* last = nullptr;
    for (const std::string& name : data) {
      const auto found = values_.find(name);
      if (found == values_.end() || !found->second.accumulates || only_reader(name) != i) continue;
      if (!last || last->position < found->second.position) last = &found->second;
    }
    if (last) last->is_absorbed = true;
    return last != nullptr;
  }

  /// From who reads a node's results to whether its operands are wanted as integers.
  void want(size_t i) {
    const OnnxNode& node = graph_.nodes[i];
    bool wanted = products_.contains(i);
    if (kinds_[i] != NodeKind::other && !has_products(i)) {
      wanted = std::ranges::any_of(node.outputs, [&](const std::string& output) {
        const auto found = values_.find(output);
        return found != values_.end() && found->second.is_integer_born &&
               (found->second.is_wanted || shrinks(node));
      });
    }
    if (!wanted) return;
    for (const std::string& name : variables(node)) values_[name].is_wanted = true;
  }

  /// Within a function of one value, which is not rounded there.
  bool is_inner(const std::string& name, const Dependent& value) const {
    if (value.source == name || value.source.empty()) return false;
    const std::set<size_t>& readers = users_.at(name);
    return std::ranges::all_of(readers, [&](size_t reader) {
      if (reader >= graph_.nodes.size() || kinds_[reader] != NodeKind::elementwise) return false;
      const auto result = values_.find(graph_.nodes[reader].outputs[0]);
      return result != values_.end() && result->second.source == value.source;
    });
  }

  void add(const std::string& name) {
    const auto found = values_.find(name);
    if (name.empty() || found == values_.end() || !found->second.is_wanted ||
        !users_.contains(name))
      return;
    const Dependent& value = found->second;
    if (value.is_absorbed || is_inner(name, value)) return;
    QuantisationPlan::Value result{.name = name, .format = groups_.add(), .readers = {}};
    for (const size_t reader : users_.at(name)) {
      if (reader >= graph_.nodes.size()) continue;
      // What computes in floating point all the same reads what is not rounded.
      const bool takes = value.is_integer_born || products_.contains(reader);
      const std::vector<std::string>& inputs = graph_.nodes[reader].inputs;
      if (takes && std::ranges::count(inputs, name) > 0) result.readers.push_back(reader);
    }
    if (!result.readers.empty()) plan_.values.push_back(std::move(result));
  }

  /// Elements that are moved keep their scale; what is concatenated has the result's, and what a
  /// cell gives its state's.
  void join_formats() {
    std::map<std::string, size_t> formats;
    for (const QuantisationPlan::Value& value : plan_.values) formats[value.name] = value.format;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const bool is_concatenation = kinds_[i] == NodeKind::concatenation;
      if (kinds_[i] != NodeKind::movement && !is_concatenation) continue;
      for (const std::string& from : variables(graph_.nodes[i])) {
        if (!formats.contains(from) || (is_concatenation && only_reader(from) != i)) continue;
        for (const std::string& to : graph_.nodes[i].outputs) {
          if (formats.contains(to)) groups_.join(formats.at(from), formats.at(to));
        }
      }
    }
    for (const QuantisationPlan::Cell& cell : plan_.cells) {
      const std::vector<std::string>& outputs = graph_.nodes[cell.node].outputs;
      for (size_t k = 0; k < std::min<size_t>(outputs.size(), 2); ++k) {
        if (formats.contains(outputs[k])) groups_.join(formats.at(outputs[k]), cell.format);
      }
    }
    std::map<size_t, size_t> numbers;
    const auto number = [&](size_t format) {
      return numbers.emplace(groups_.of(format), numbers.size()).first->second;
    };
    for (QuantisationPlan::Value& value : plan_.values) {
      value.format = number(value.format);
    }
    for (QuantisationPlan::Cell& cell : plan_.cells) cell.format = number(cell.format);
    plan_.formats = numbers.size();
  }

  /// Weights and biases that nodes compute.
  void note_computed() {
    const auto add = [&](const std::string& name) {
      if (constants_.is_computed(name)) plan_.computed.insert(name);
    };
    for (const QuantisationPlan::Product& product : plan_.products) {
      if (!product.weight) continue;
      const OnnxNode& node = graph_.nodes[product.node];
      add(node.inputs[*product.weight]);
      if (node.inputs.size() > 2) add(node.inputs[2]);
      if (!product.norm) continue;
      for (const std::string& name : graph_.nodes[*product.norm].inputs) add(name);
    }
    for (const QuantisationPlan::Cell& cell : plan_.cells) {
      const OnnxNode& node = graph_.nodes[cell.node];
      for (size_t i = recurrent_input::kWeights; i <= recurrent_input::kBias; ++i) {
        if (has_input(node, i)) add(node.inputs[i]);
      }
    }
  }

  const OnnxGraph& graph_;
  const std::vector<size_t> order_;
  const std::map<std::string, std::set<size_t>> users_;
  const ConstantNames constants_;
  std::vector<NodeKind> kinds_;
  std::set<std::string> taken_;  // names
  std::set<std::string> dequantised_;
  std::set<size_t> products_;  // that take integers
  std::map<std::string, Dependent> values_;
  Groups groups_;
  QuantisationPlan plan_;
};

}  // namespace

std::vector<QuantisationPlan::Observed> QuantisationPlan::observed() const {
  std::vector<Observed> result;
  std::set<std::string> names;
  const auto add = [&](const std::string& name, size_t format) {
    if (!name.empty() && names.insert(name).second) result.push_back({name, format});
  };
  for (const Value& value : values) add(value.name, value.format);
  for (const Cell& cell : cells) {
    add(cell.states, cell.format);
    add(cell.initial, cell.format);
  }
  return result;
}

QuantisationPlan plan_quantisation(const OnnxGraph& graph, const StaysFloat& stays_float) {
  return Planner(graph, stays_float).plan();
}

}  // namespace backcast
