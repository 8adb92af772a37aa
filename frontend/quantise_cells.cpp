#include "frontend/quantise_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/recurrent_cell.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

using Names = std::vector<std::string>;
using Attributes = std::vector<OnnxAttribute>;
using Kind = RecurrentCell::Kind;
namespace place = recurrent_input;

constexpr int64_t kScanOpset = 9, kSplitOpset = 18;  // the latter: with the number of parts

/// Appends nodes of ONNX to a list; what is emitted is the name of the result.
class Nodes {
 public:
  Nodes(QuantisedParts& parts, std::string prefix) : parts_(parts), prefix_(std::move(prefix)) {}

  std::string name(const std::string& what) { return parts_.free(prefix_ + "_" + what); }

  std::string emit(const std::string& op, Names inputs, Attributes attributes = {}) {
    return emit(op, std::move(inputs), 1, std::move(attributes))[0];
  }
  Names emit(const std::string& op, Names inputs, size_t results, Attributes attributes) {
    OnnxNode node{name(op), op, "", std::move(inputs), {}, std::move(attributes)};
    for (size_t i = 0; i < results; ++i) node.outputs.push_back(name(op + "_out"));
    list.push_back(node);
    return node.outputs;
  }
  std::string quantised(const std::string& x, const NamedFormat& format) {
    return linear("QuantizeLinear", x, format, {});
  }
  std::string decoded(const std::string& x, const NamedFormat& format,
                      std::optional<size_t> axis = {}) {
    return linear("DequantizeLinear", x, format, axis);
  }
  Names split(const std::string& x, int64_t axis, int64_t count) {
    if (count == 1) return {x};
    Attributes attributes = {made_attribute("axis", axis)};
    if (parts_.opset() >= kSplitOpset) attributes.push_back(made_attribute("num_outputs", count));
    return emit("Split", {x}, static_cast<size_t>(count), attributes);
  }
  std::string reshaped(const std::string& x, const std::vector<int64_t>& shape) {
    return emit("Reshape", {x, parts_.add_ints(prefix_ + "_shape", shape)});
  }
  std::string transposed(const std::string& x, const std::vector<int64_t>& axes) {
    return emit("Transpose", {x}, {made_attribute("perm", axes)});
  }
  /// One part is itself.
  std::string joined(const Names& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : emit("Concat", parts, {made_attribute("axis", axis)});
  }

  std::vector<OnnxNode> list;

 private:
  std::string linear(const char* op, const std::string& x, const NamedFormat& format,
                     std::optional<size_t> axis) {
    list.push_back(parts_.linear(op, x, format, name(std::string(op) + "_out"), axis));
    return list.back().outputs[0];
  }

  QuantisedParts& parts_;
  const std::string prefix_;
};

/// Of [directions, rows, columns] so many rows of one direction from `first` on, as the columns of
/// a matrix: a channel each.
Channels transposed(const Channels& all, int64_t direction, int64_t first, int64_t rows) {
  const int64_t columns = all.shape[2];
  Channels result{{columns, rows}, 1, {}};
  result.values.reserve(static_cast<size_t>(columns * rows));
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (direction * all.shape[1] + first + r) * columns + c;
      result.values.push_back(all.values[static_cast<size_t>(at)]);
    }
  }
  return result;
}

class CellQuantiser {
 public:
  CellQuantiser(QuantisedParts& parts, const OnnxNode& node, const CellFormats& formats)
      : parts_(parts),
        node_(node),
        cell_(recurrent_cell(node)),
        formats_(formats),
        prefix_(node.name.empty() ? node.op_type : node.name),
        all_(parts, prefix_),
        weights_(parts.read(node.inputs[place::kWeights])),
        recurrent_(parts.read(node.inputs[place::kRecurrentWeights])),
        hidden_(recurrent_.shape[2]),
        rounds_states_(formats.rounds_states) {
    if (has_input(node, place::kBias)) bias_ = parts.read(node.inputs[place::kBias]).values;
  }

  std::vector<OnnxNode> run() {
    std::string data = formats_.data;
    if (cell_.batch_first) data = all_.transposed(data, {1, 0, 2});
    take_initial();
    for (int64_t d = 0; d < cell_.directions(); ++d) loop(data, d);
    finish();
    return std::move(all_.list);
  }

 private:
  bool is_lstm() const { return cell_.kind == Kind::lstm; }
  bool keeps_hidden() const { return cell_.kind == Kind::gru; }  // in floating point, too
  std::string output(size_t i) const { return i < node_.outputs.size() ? node_.outputs[i] : ""; }
  int64_t width() const { return cell_.gates() * hidden_; }

  const std::string& activation(int64_t direction, size_t k) const {
    return cell_.activations[static_cast<size_t>(direction) * cell_.activations_of_direction() + k];
  }

  /// Of the data's products (0) or of the state's (1), for some gates in one direction.
  std::vector<double> bias(int64_t direction, int64_t which, int64_t first, int64_t gates) const {
    if (bias_.empty()) return {};
    const int64_t begin = ((2 * direction + which) * cell_.gates() + first) * hidden_;
    const auto at = bias_.begin() + static_cast<std::ptrdiff_t>(begin);
    return {at, at + static_cast<std::ptrdiff_t>(gates * hidden_)};
  }
  std::vector<double> whole_bias(int64_t direction, int64_t first, int64_t gates) const {
    std::vector<double> sum = bias(direction, 0, first, gates);
    std::ranges::transform(sum, bias(direction, 1, first, gates), sum.begin(), std::plus<>());
    return sum;
  }

  /// Each direction's first states, where the layer is given any.
  void take_initial() {
    const auto parts_of = [&](size_t input) -> Names {
      if (!has_input(node_, input)) return {};
      std::string all = node_.inputs[input];
      if (cell_.directions() == 1) return {all_.reshaped(all, {-1, hidden_})};
      if (cell_.batch_first) all = all_.transposed(all, {1, 0, 2});
      Names states = all_.split(all, 0, 2);
      for (std::string& state : states) state = all_.reshaped(state, {-1, hidden_});
      return states;
    };
    first_hidden_ = parts_of(place::kHidden);
    if (is_lstm()) first_cell_ = parts_of(place::kCell);
  }

  /// Zeros of the shape of a state.
  std::string zeros() {
    return all_.emit("Expand", {parts_.add_floats(prefix_ + "_zero", {1, 1}, {0}), *state_shape_});
  }

  void measure(const std::string& products) {
    if (state_shape_) return;
    const std::string batch = all_.emit(
        "Gather", {all_.emit("Shape", {products}), parts_.add_ints(prefix_ + "_axis", {1})},
        {made_attribute("axis", 0)});
    state_shape_ = all_.emit("Concat", {batch, parts_.add_ints(prefix_ + "_hidden", {hidden_})},
                             {made_attribute("axis", 0)});
  }

  std::string first(const Names& given, int64_t d) {
    return given.empty() ? zeros() : given[static_cast<size_t>(d)];
  }

  /// Of the data with a direction's weights, for all steps.
  std::string products_of_data(const std::string& data, int64_t d) {
    Channels weights = transposed(weights_, d, 0, width());
    const std::vector<double> scales = formats_.scales(place::kWeights, weights);
    return all_.emit("MatMul", {data, parts_.decoded(node_.inputs[place::kWeights], ElementType::i8,
                                                     weights, scales)});
  }

  void loop(const std::string& data, int64_t d) {
    const std::string products = products_of_data(data, d);
    if (first_hidden_.empty() || (is_lstm() && first_cell_.empty())) measure(products);
    const std::string hidden = first(first_hidden_, d);
    Names inputs = {all_.quantised(hidden, formats_.state)};
    if (keeps_hidden()) inputs.push_back(hidden);
    if (is_lstm()) inputs.push_back(first(first_cell_, d));
    inputs.push_back(products);
    const size_t states = inputs.size() - 1;
    Attributes attributes = {made_attribute("body", body(d)),
                             made_attribute("num_scan_inputs", int64_t{1})};
    const bool stacks = !output(0).empty();
    if (cell_.backward && (d == 1 || !cell_.forward)) {
      const std::vector<int64_t> back = {1};
      attributes.push_back(made_attribute("scan_input_directions", back));
      if (stacks) attributes.push_back(made_attribute("scan_output_directions", back));
    }
    const Names results = all_.emit("Scan", inputs, states + (stacks ? 1 : 0), attributes);
    last_hidden_.push_back(keeps_hidden() ? results[1] : results[0]);
    if (is_lstm()) last_cell_.push_back(results[1]);
    if (stacks) rows_.push_back(results.back());
  }

  /// The product of the state, in integers, with some of the gates' weights, and a bias.
  std::string product(Nodes& b, const std::string& state, int64_t d, int64_t first_gate,
                      int64_t gates, const std::vector<double>& bias) {
    Channels weights = transposed(recurrent_, d, first_gate * hidden_, gates * hidden_);
    const std::vector<double> scales = formats_.scales(place::kRecurrentWeights, weights);
    const QuantisedParts::Integers integers =
        parts_.integers(node_.inputs[place::kRecurrentWeights], ElementType::i8, weights, scales);
    const std::string state_again = b.decoded(state, formats_.state);
    const std::string decoded = b.decoded(integers.name, integers.format, 1);
    return with_bias(b, b.emit("MatMul", {state_again, decoded}), bias);
  }

  std::string with_bias(Nodes& b, const std::string& sums, const std::vector<double>& bias) {
    if (bias.empty()) return sums;
    const auto count = static_cast<int64_t>(bias.size());
    return b.emit("Add", {sums, parts_.add_floats(prefix_ + "_bias", {count}, bias)});
  }

  std::shared_ptr<const OnnxGraph> body(int64_t d) {
    Nodes b(parts_, prefix_ + (d == 0 ? "_step" : "_step_back"));
    const auto value = [](const std::string& name, int64_t type) {
      return OnnxValueInfo{name, OnnxValueInfo::Kind::tensor, "", type, std::nullopt};
    };
    auto graph = std::make_shared<OnnxGraph>();
    graph->name = b.name("body");
    const std::string hidden = b.name("hidden"), more = b.name("state"), row = b.name("products");
    graph->inputs = {value(hidden, onnx_type::kInt8)};
    const bool has_more = is_lstm() || keeps_hidden();
    if (has_more) graph->inputs.push_back(value(more, onnx_type::kFloat));
    graph->inputs.push_back(value(row, onnx_type::kFloat));
    std::string next_more;
    const std::string next = is_lstm()        ? lstm(b, d, hidden, more, row, next_more)
                             : keeps_hidden() ? gru(b, d, hidden, more, row)
                                              : rnn(b, d, hidden, row);
    const std::string next_hidden = b.quantised(next, formats_.state);
    graph->outputs = {value(next_hidden, onnx_type::kInt8)};
    if (has_more) graph->outputs.push_back(value(is_lstm() ? next_more : next, onnx_type::kFloat));
    if (!output(0).empty()) {
      const std::string stacked = b.emit("Identity", {rounds_states_ ? next_hidden : next});
      graph->outputs.push_back(
          value(stacked, rounds_states_ ? onnx_type::kInt8 : onnx_type::kFloat));
    }
    graph->nodes = std::move(b.list);
    return graph;
  }

  std::string rnn(Nodes& b, int64_t d, const std::string& hidden, const std::string& row) {
    return b.emit(activation(d, 0),
                  {b.emit("Add", {row, product(b, hidden, d, 0, 1, whole_bias(d, 0, 1))})});
  }

  /// Gates are input, output, forget, cell.
  std::string lstm(Nodes& b, int64_t d, const std::string& hidden, const std::string& cell,
                   const std::string& row, std::string& next_cell) {
    const Names gates =
        b.split(b.emit("Add", {row, product(b, hidden, d, 0, 4, whole_bias(d, 0, 4))}), 1, 4);
    const std::string in = b.emit(activation(d, 0), {gates[0]});
    const std::string out = b.emit(activation(d, 0), {gates[1]});
    const std::string forget = b.emit(activation(d, 0), {gates[2]});
    const std::string fresh = b.emit(activation(d, 1), {gates[3]});
    next_cell = b.emit("Add", {b.emit("Mul", {forget, cell}), b.emit("Mul", {in, fresh})});
    return b.emit("Mul", {out, b.emit(activation(d, 2), {next_cell})});
  }

  /// Gates are update, reset, hidden: (1 - z)·n + z·h.
  std::string gru(Nodes& b, int64_t d, const std::string& hidden, const std::string& state,
                  const std::string& row) {
    const Names of_data = b.split(row, 1, 3);
    const bool before = cell_.linear_before_reset;
    std::vector<double> biases = whole_bias(d, 0, 2);
    if (before) {
      const std::vector<double> last = bias(d, 1, 2, 1);
      biases.insert(biases.end(), last.begin(), last.end());
    }
    const int64_t gates = before ? 3 : 2;
    const Names of_state = b.split(product(b, hidden, d, 0, gates, biases), 1, gates);
    const auto gate = [&](size_t k) {
      return b.emit(activation(d, 0), {b.emit("Add", {of_data[k], of_state[k]})});
    };
    const std::string update = gate(0), reset = gate(1);
    std::string fresh_sum;
    if (before) {
      fresh_sum = b.emit(
          "Add", {with_bias(b, of_data[2], bias(d, 0, 2, 1)), b.emit("Mul", {reset, of_state[2]})});
    } else {
      const std::string kept = b.quantised(b.emit("Mul", {reset, state}), formats_.state);
      fresh_sum = b.emit("Add", {of_data[2], product(b, kept, d, 2, 1, whole_bias(d, 2, 1))});
    }
    const std::string fresh = b.emit(activation(d, 1), {fresh_sum});
    return b.emit("Add", {fresh, b.emit("Mul", {update, b.emit("Sub", {state, fresh})})});
  }

  /// The layer's outputs as ONNX lays them out.
  void finish() {
    if (!output(0).empty()) {
      for (std::string& rows : rows_) rows = all_.reshaped(rows, {0, 1, -1, hidden_});
      std::string states = all_.joined(rows_, 1);
      if (cell_.batch_first) states = all_.transposed(states, {2, 0, 1, 3});
      if (rounds_states_) states = all_.decoded(states, formats_.state);
      all_.list.back().outputs[0] = output(0);
    }
    const auto last = [&](const std::string& name, Names states, bool integers) {
      if (name.empty()) return;
      for (std::string& state : states) state = all_.reshaped(state, {1, -1, hidden_});
      std::string all = all_.joined(states, 0);
      if (cell_.batch_first) all = all_.transposed(all, {1, 0, 2});
      if (integers) all = all_.decoded(all, formats_.state);
      all_.list.back().outputs[0] = name;
    };
    last(output(1), last_hidden_, !keeps_hidden());
    last(output(2), last_cell_, false);
  }

  QuantisedParts& parts_;
  const OnnxNode& node_;
  const RecurrentCell cell_;
  const CellFormats& formats_;
  const std::string prefix_;
  Nodes all_;
  const Channels weights_, recurrent_;  // [directions, gates · hidden, columns]
  const int64_t hidden_;
  const bool rounds_states_;
  std::vector<double> bias_;  // [directions, 2, gates · hidden], or none
  std::optional<std::string> state_shape_;
  Names first_hidden_, first_cell_, last_hidden_, last_cell_, rows_;  // of the directions
};

}  // namespace

void quantise_cell(QuantisedParts& parts, const OnnxNode& node, size_t place,
                   const CellFormats& formats) {
  if (parts.opset() < kScanOpset) {
    throw CompileError(fmt::format(
        "{} ({}): opset {} has no loop for its steps; convert the file to opset 9 or later, or "
        "leave the layer as it is with --float",
        name_of(node), node.op_type, parts.opset()));
  }
  std::vector<OnnxNode> nodes = CellQuantiser(parts, node, formats).run();
  std::vector<GraphEdit::Insertion> insertions;
  for (OnnxNode& made : nodes) insertions.push_back({place, std::move(made)});
  std::vector<GraphEdit::Insertion>& all = parts.edit.insertions;
  all.insert(all.begin(), std::make_move_iterator(insertions.begin()),
             std::make_move_iterator(insertions.end()));
  parts.edit.removed.insert(place);
}

}  // namespace backcast
