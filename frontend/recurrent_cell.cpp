#include "frontend/recurrent_cell.h"

#include <algorithm>
#include <set>

namespace backcast {
namespace {

using Kind = RecurrentCell::Kind;

Kind kind_of_cell(const OnnxNode& node) {
  if (node.op_type == "LSTM") return Kind::lstm;
  return node.op_type == "GRU" ? Kind::gru : Kind::rnn;
}

std::string direction_of(const OnnxNode& node) {
  const OnnxAttribute* direction = find_attribute(node, "direction");
  return direction ? direction->s : "forward";
}

std::vector<std::string> default_activations(Kind kind) {
  if (kind == Kind::rnn) return {"Tanh"};
  if (kind == Kind::gru) return {"Sigmoid", "Tanh"};
  return {"Sigmoid", "Tanh", "Tanh"};
}

}  // namespace

bool is_recurrent(const OnnxNode& node) {
  return node.domain.empty() &&
         (node.op_type == "LSTM" || node.op_type == "GRU" || node.op_type == "RNN");
}

bool has_input(const OnnxNode& node, size_t place) {
  return node.inputs.size() > place && !node.inputs[place].empty();
}

std::string why_not_plain(const OnnxNode& node) {
  static const std::set<std::string> kPlain = {"Relu", "Sigmoid", "Tanh"};
  if (has_input(node, recurrent_input::kLengths)) return "sequences have lengths of their own";
  if (has_input(node, recurrent_input::kPeepholes)) return "it has peepholes";
  if (find_attribute(node, "clip")) return "it clips";
  if (integer_attribute(node, "input_forget", 0) != 0) return "its gates are coupled";
  const RecurrentCell cell = recurrent_cell(node);
  const size_t needed = cell.activations_of_direction() * static_cast<size_t>(cell.directions());
  const bool known =
      cell.activations.size() == needed &&
      std::ranges::all_of(cell.activations, [](const auto& name) { return kPlain.contains(name); });
  return known ? "" : "its activations have parameters of their own";
}

RecurrentCell recurrent_cell(const OnnxNode& node) {
  RecurrentCell cell;
  cell.kind = kind_of_cell(node);
  const std::string direction = direction_of(node);
  cell.forward = direction != "reverse";
  cell.backward = direction != "forward";
  cell.batch_first = integer_attribute(node, "layout", 0) != 0;
  cell.linear_before_reset = integer_attribute(node, "linear_before_reset", 0) != 0;
  if (const OnnxAttribute* activations = find_attribute(node, "activations")) {
    cell.activations = activations->strings;
    return cell;
  }
  const std::vector<std::string> usual = default_activations(cell.kind);
  for (int64_t d = 0; d < cell.directions(); ++d) {
    cell.activations.insert(cell.activations.end(), usual.begin(), usual.end());
  }
  return cell;
}

}  // namespace backcast
