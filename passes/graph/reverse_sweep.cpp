#include "passes/graph/reverse_sweep.h"

#include "ir/graph/error.h"
#include "ir/ops/adjoint.h"

namespace backcast {

bool has_float(const Type& type) {
  for (const TensorType& tensor : flatten(type)) {
    if (is_float(tensor.element)) return true;
  }
  return false;
}

ReverseSweep::ReverseSweep(Builder& builder, const Function& function, GradientServices& services,
                           const std::vector<ValueId>& arguments)
    : builder_(builder),
      function_(function),
      services_(services),
      now_(function.nodes.size()),
      adjoints_(function.nodes.size()) {
  for (size_t i = 0; i < function.params.size(); ++i) {
    now_[static_cast<size_t>(function.params[i].index)] = arguments[i];
  }
}

void ReverseSweep::copy_forward(const std::vector<ValueId>& needed) {
  const std::vector<char> live = needed_nodes(function_, needed);
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i] || now_[i].valid()) continue;
    const Node& node = function_.nodes[i];
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(copy_of(operand));
    builder_.set_loc(node.loc);
    now_[i] = builder_.emit(*node.op, std::move(operands), node.attrs);
  }
}

void ReverseSweep::seed(ValueId old, const Adjoint& cotangent) {
  Adjoint& adjoint = adjoints_[static_cast<size_t>(old.index)];
  adjoint = add(builder_, adjoint, cotangent);
}

std::vector<char> ReverseSweep::active_values() const {
  std::vector<char> active(function_.nodes.size(), 0);
  for (ValueId id : wrt_) active[static_cast<size_t>(id.index)] = 1;
  for (size_t i = 0; i < active.size(); ++i) {
    const Node& node = function_.nodes[i];
    if (node.op->gradient.is_zero() || !has_float(node.type)) continue;
    for (ValueId operand : node.operands) {
      active[i] = active[i] || active[static_cast<size_t>(operand.index)];
    }
  }
  return active;
}

void ReverseSweep::run() {
  const std::vector<char> active = active_values();
  for (int64_t i = function_.size(); i-- > 0;) {
    if (active[static_cast<size_t>(i)] && !adjoint(ValueId(i)).is_zero()) visit(ValueId(i), active);
  }
}

void ReverseSweep::visit(ValueId old, const std::vector<char>& active) {
  const Node& node = function_.node(old);
  std::vector<bool> wanted;
  bool any = false;
  for (ValueId operand : node.operands) {
    wanted.push_back(active[static_cast<size_t>(operand.index)] != 0);
    any = any || wanted.back();
  }
  if (!any || node.op->gradient.is_zero()) return;
  const GradientRule rule = node.op->gradient.rule();
  if (rule == nullptr) {
    throw CompileError(node.loc, fmt::format("core operator \"{}\" has no gradient: {}",
                                             node.op->name, node.op->gradient.reason()));
  }
  const Node copy = builder_.node(copy_of(old));  // the builder's nodes move when it emits
  builder_.set_loc({node.loc.node, node.loc.op_type, Origin::adjoint_of});
  const Adjoint cotangent = adjoint(old);
  GradientContext context{builder_, copy, copy_of(old), cotangent, wanted, services_};
  const std::vector<Adjoint> results = rule(context);
  BC_CHECK(results.size() <= node.operands.size(), "{} gives more adjoints than it has operands",
           node.op->name);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!wanted[i] || results[i].is_zero()) continue;
    const ValueId operand = node.operands[i];
    if (results[i].value) {
      BC_CHECK(builder_.type(*results[i].value) == function_.type(operand),
               "the gradient of {} gives {} for an operand of type {}", node.op->name,
               builder_.type(*results[i].value).to_string(), function_.type(operand).to_string());
    }
    seed(operand, results[i]);
  }
}

}  // namespace backcast
