#include "passes/graph/intervals.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "ir/graph/error.h"
#include "ir/ops/ops.h"
#include "passes/graph/value_ranges.h"

namespace backcast {
namespace {

double parse_end(const std::string& text, const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) {
    throw CompileError("--input-range " + word + ": expected off, LOW,HIGH or NAME=LOW,HIGH");
  }
  return value;
}

std::string range_text(double low, double high) {
  return low == -high ? fmt::format("within ±{:g}", high) : fmt::format("in {:g}..{:g}", low, high);
}

Bounds bounds_of_parameter(const Node& node, const InputBounds& inputs) {
  const TensorType& type = node.type.tensor();
  if (!is_float(type.element) || !inputs.known) return Bounds::of(type);
  const auto found = inputs.named.find(parameter_name(node));
  const auto [low, high] =
      found == inputs.named.end() ? std::pair(inputs.low, inputs.high) : found->second;
  return Bounds::between(type.rank(), low, high);
}

}  // namespace

std::string InputBounds::describe() const {
  if (!known) return {};
  std::string text = "inputs " + range_text(low, high);
  for (const auto& [name, range] : named) {
    text += fmt::format(", \"{}\" {}", name, range_text(range.first, range.second));
  }
  return text;
}

InputBounds parse_input_bounds(const std::vector<std::string>& words) {
  InputBounds bounds;
  for (const std::string& word : words) {
    if (word == "off") {
      bounds.known = false;
      continue;
    }
    const size_t equals = word.rfind('=');
    const std::string range = equals == std::string::npos ? word : word.substr(equals + 1);
    const size_t comma = range.find(',');
    const double low = parse_end(range.substr(0, comma), word);
    const double high = parse_end(comma == std::string::npos ? "" : range.substr(comma + 1), word);
    if (low > high) throw CompileError("--input-range " + word + ": the range is empty");
    if (equals == std::string::npos) {
      bounds.low = low;
      bounds.high = high;
    } else {
      bounds.named[word.substr(0, equals)] = {low, high};
    }
  }
  return bounds;
}

const Literal* known_elements(const Function& function, ValueId id) {
  const Node* node = &function.node(id);
  if (node->op == &ops::cast) {
    const Node& inner = function.node(node->operands[0]);
    if (inner.op != &ops::constant || !node->type.is_tensor()) return nullptr;
    const std::optional<ValueRange> from = range_of(inner.type.tensor().element);
    const std::optional<ValueRange> to = range_of(node->type.tensor().element);
    if (!from || !to || !to->contains(*from)) return nullptr;
    node = &inner;
  }
  return node->op == &ops::constant ? &node->attrs.as<ConstantAttrs>().value : nullptr;
}

std::vector<Bounds> bounds_of_values(const Module& module, const Function& function,
                                     const InputBounds& inputs) {
  std::vector<Bounds> bounds(function.nodes.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    const Node& node = function.nodes[i];
    if (!node.type.is_tensor()) continue;
    if (is_parameter(node)) {
      bounds[i] = bounds_of_parameter(node, inputs);
      continue;
    }
    if (node.op == &ops::constant) {
      bounds[i] = Bounds::of(node.attrs.as<ConstantAttrs>().value);
      continue;
    }
    std::vector<const TensorType*> types;
    std::vector<const Bounds*> operands;
    std::vector<const Literal*> constants;
    bool tensors = true;
    for (const ValueId id : node.operands) {
      const Node& operand = function.node(id);
      tensors = tensors && operand.type.is_tensor();
      if (!tensors) break;
      types.push_back(&operand.type.tensor());
      operands.push_back(&bounds[static_cast<size_t>(id.index)]);
      constants.push_back(known_elements(function, id));
    }
    bounds[i] = tensors ? interval_of({module, node, types, operands, constants})
                        : Bounds::of(node.type.tensor());
  }
  return bounds;
}

}  // namespace backcast
