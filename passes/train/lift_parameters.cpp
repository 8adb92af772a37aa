#include "passes/train/lift_parameters.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

/// Elements begin … end-1 along an axis.
Literal part_of(const Literal& whole, int64_t axis, int64_t begin, int64_t end) {
  std::vector<int64_t> shape = whole.shape();
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    if (i < axis) outer *= shape[static_cast<size_t>(i)];
    if (i > axis) inner *= shape[static_cast<size_t>(i)];
  }
  const int64_t extent = shape[static_cast<size_t>(axis)];
  const size_t row = static_cast<size_t>(inner) * whole.bytes().size() /
                     static_cast<size_t>(std::max<int64_t>(whole.element_count(), 1));
  const size_t bytes = static_cast<size_t>(end - begin) * row;
  std::vector<std::byte> part(static_cast<size_t>(outer) * bytes);
  for (int64_t i = 0; i < outer; ++i) {
    std::memcpy(part.data() + static_cast<size_t>(i) * bytes,
                whole.bytes().data() + static_cast<size_t>(i * extent + begin) * row, bytes);
  }
  shape[static_cast<size_t>(axis)] = end - begin;
  return Literal(whole.element(), shape, std::move(part));
}

class Lifting {
 public:
  Lifting(const Module& module, const Function& from) : from_(from), builder_(module, from.name) {}

  Function run(const std::vector<LiftedTensor>& tensors) {
    std::map<std::string, ValueId> constants;
    for (int64_t i = 0; i < from_.size(); ++i) {
      const std::string name = initializer_name(from_.node(ValueId(i)));
      if (!name.empty()) constants.emplace(name, ValueId(i));
    }
    now_.resize(from_.nodes.size());
    for (ValueId param : from_.params) {
      const Node& node = from_.node(param);
      builder_.set_loc(node.loc);
      at(param) = builder_.parameter(parameter_name(node), node.type);
    }
    std::map<std::string, std::pair<ValueId, LiftedTensor>> lifted;
    for (const LiftedTensor& tensor : tensors) {
      const std::map<std::string, ValueId>::const_iterator found = constants.find(tensor.name);
      if (found == constants.end()) continue;
      builder_.set_loc({tensor.name, "initializer", Origin::imported});
      TensorType type = from_.type(found->second).tensor();
      if (tensor.axis >= 0)
        type.shape[static_cast<size_t>(tensor.axis)] = tensor.end - tensor.begin;
      const bool is_new =
          lifted.emplace(tensor.name, std::pair(builder_.parameter(tensor.name, type), tensor))
              .second;
      BC_CHECK(is_new, "{} is lifted twice", tensor.name);
    }
    for (int64_t i = 0; i < from_.size(); ++i) {
      const Node& node = from_.node(ValueId(i));
      if (is_parameter(node)) continue;
      builder_.set_loc(node.loc);
      const auto found = lifted.find(initializer_name(node));
      at(ValueId(i)) = found == lifted.end()
                           ? copy(node)
                           : whole(node, found->second.first, found->second.second);
    }
    return builder_.finish(at(from_.result), from_.result_names);
  }

 private:
  ValueId& at(ValueId old) { return now_[static_cast<size_t>(old.index)]; }

  ValueId copy(const Node& node) {
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(at(operand));
    return builder_.emit(*node.op, std::move(operands), node.attrs);
  }

  /// The parameter with the frozen elements around it.
  ValueId whole(const Node& node, ValueId part, const LiftedTensor& tensor) {
    if (tensor.axis < 0) return part;
    const Literal& value = node.attrs.as<ConstantAttrs>().value;
    const int64_t extent = value.shape()[static_cast<size_t>(tensor.axis)];
    std::vector<ValueId> parts;
    if (tensor.begin > 0) {
      parts.push_back(builder_.constant(part_of(value, tensor.axis, 0, tensor.begin)));
    }
    parts.push_back(part);
    if (tensor.end < extent) {
      parts.push_back(builder_.constant(part_of(value, tensor.axis, tensor.end, extent)));
    }
    if (parts.size() == 1) return part;
    return builder_.emit(ops::concat, parts, ConcatAttrs{tensor.axis});
  }

  const Function& from_;
  Builder builder_;
  std::vector<ValueId> now_;
};

}  // namespace

std::string initializer_name(const Node& node) {
  const bool is_one = node.op == &ops::constant && node.loc.op_type == "initializer" &&
                      node.loc.origin == Origin::imported;
  return is_one ? node.loc.node : "";
}

Literal lifted_value(const Literal& whole, const LiftedTensor& tensor) {
  return tensor.axis < 0 ? whole : part_of(whole, tensor.axis, tensor.begin, tensor.end);
}

Function lift_parameters(const Module& module, const Function& function,
                         const std::vector<LiftedTensor>& tensors) {
  return Lifting(module, function).run(tensors);
}

}  // namespace backcast
