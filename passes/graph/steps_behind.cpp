#include "passes/graph/steps_behind.h"

#include <algorithm>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

bool is_step(const Node& node) {
  static const OpDef* const kSteps[] = {&ops::floor, &ops::ceil, &ops::round_even,
                                        &ops::sign,  &ops::mod,  &ops::rem};
  if (node.op == &ops::cast) return !is_float(node.type.tensor().element);
  if (node.op == &ops::compare) {
    const Comparison direction = node.attrs.as<CompareAttrs>().direction;
    return direction == Comparison::eq || direction == Comparison::ne;
  }
  return std::find(std::begin(kSteps), std::end(kSteps), node.op) != std::end(kSteps);
}

/// What a step behind this operator sees of its operands: nearly all of their bits.
bool carries(const Node& node) {
  static const OpDef* const kCarriers[] = {
      &ops::add,     &ops::sub,       &ops::mul,   &ops::neg,  &ops::abs,    &ops::min,
      &ops::max,     &ops::clamp,     &ops::relu,  &ops::cast, &ops::select, &ops::broadcast,
      &ops::reshape, &ops::transpose, &ops::slice, &ops::pad,  &ops::concat, &ops::reverse};
  return std::find(std::begin(kCarriers), std::end(kCarriers), node.op) != std::end(kCarriers);
}

}  // namespace

std::vector<char> steps_behind(const Function& function) {
  std::vector<char> result(function.nodes.size(), 0);
  for (size_t i = function.nodes.size(); i-- > 0;) {
    const Node& node = function.nodes[i];
    if (!is_step(node) && !(result[i] && carries(node))) continue;
    for (const ValueId operand : node.operands) result[static_cast<size_t>(operand.index)] = 1;
  }
  return result;
}

}  // namespace backcast
