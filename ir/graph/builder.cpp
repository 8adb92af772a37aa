// Building functions: from scratch (Builder) and from an older version (Rewriter).
#include "ir/graph/builder.h"

#include "ir/graph/error.h"
#include "ir/graph/infer.h"

namespace backcast {
namespace {

const OpDef& core_op(std::string_view name) {
  const OpDef* op = find_op(name);
  BC_CHECK(op != nullptr, "there is no operator {}", name);
  return *op;
}

}  // namespace

Type infer_type(const Module& module, const OpDef& op, const std::vector<Type>& operands,
                const Attrs& attrs) {
  const int count = static_cast<int>(operands.size());
  if (count < op.min_operands || (op.max_operands >= 0 && count > op.max_operands)) {
    const std::string most =
        op.max_operands < 0 ? "or more" : fmt::format("to {}", op.max_operands);
    const std::string wanted = op.min_operands == op.max_operands
                                   ? fmt::format("{}", op.min_operands)
                                   : fmt::format("{} {}", op.min_operands, most);
    throw CompileError(fmt::format("{} takes {} operands and has {}", op.name, wanted, count));
  }
  BC_CHECK(attrs.same_struct(op.default_attrs), "{} has attributes of another operator", op.name);
  return op.infer({module, operands, attrs});
}

Builder::Builder(const Module& module, std::string function_name) : module_(module) {
  function_.name = std::move(function_name);
}

ValueId Builder::parameter(const std::string& name, Type type) {
  BC_CHECK(function_.nodes.size() == function_.params.size(),
           "@{}: parameter {} comes after other nodes", function_.name, name);
  const OpDef& op = core_op("parameter");
  const ValueId id(function_.size());
  Node node{&op,
            {},
            op.default_attrs.with({{"name", name}, {"index", int64_t{id.index}}}),
            std::move(type),
            loc_};
  if (node.loc.empty()) node.loc = parameter_loc(name, id.index);
  function_.nodes.push_back(std::move(node));
  function_.params.push_back(id);
  return id;
}

ValueId Builder::emit(const OpDef& op, std::vector<ValueId> operands, Attrs attrs) {
  BC_CHECK(op.name != "parameter", "@{}: parameters are made by parameter()", function_.name);
  BC_CHECK(!loc_.empty(), "@{}: {} is emitted without a location", function_.name, op.name);
  if (attrs.empty()) attrs = op.default_attrs;
  std::vector<Type> types;
  types.reserve(operands.size());
  for (const ValueId operand : operands) {
    BC_CHECK(operand.valid() && operand.index < function_.size(),
             "@{}: {} uses the value {}, which does not exist yet", function_.name, op.name,
             operand.index);
    types.push_back(function_.type(operand));
  }
  Type type;
  try {
    type = infer_type(module_, op, types, attrs);
  } catch (const CompileError& error) {
    throw CompileError(loc_, error.what());
  }
  const ValueId id(function_.size());
  function_.nodes.push_back({&op, std::move(operands), std::move(attrs), std::move(type), loc_});
  return id;
}

ValueId Builder::constant(Literal value) {
  const OpDef& op = core_op("constant");
  return emit(op, {}, op.default_attrs.with({{"value", std::move(value)}}));
}

ValueId Builder::scalar(ElementType element, double value) {
  return constant(Literal::scalar(element, value));
}

Function Builder::finish(ValueId result, std::vector<std::string> result_names) {
  BC_CHECK(result.valid() && result.index < function_.size(), "@{}: the result is no value",
           function_.name);
  function_.result = result;
  function_.result_names = std::move(result_names);
  return std::move(function_);
}

std::vector<ValueId> copy_parameters(Builder& builder, const Function& function) {
  std::vector<ValueId> copies;
  copies.reserve(function.params.size());
  for (const ValueId param : function.params) {
    const Node& node = function.node(param);
    builder.set_loc(node.loc);
    copies.push_back(builder.parameter(parameter_name(node), node.type));
  }
  return copies;
}

Rewriter::Rewriter(const Module& module, const Function& from)
    : from_(from),
      builder_(module, from.name),
      now_(from.nodes.size()),
      measured_(measured_symbols(from)) {
  const std::vector<ValueId> copies = copy_parameters(builder_, from);
  for (size_t i = 0; i < copies.size(); ++i) map(from.params[i], copies[i]);
  builder_.set_loc({});
}

ValueId Rewriter::operator[](ValueId old) const {
  BC_CHECK(mapped(old), "@{}: the old value {} has no new one", from_.name, old.index);
  return now_[static_cast<size_t>(old.index)];
}

bool Rewriter::mapped(ValueId old) const {
  BC_CHECK(old.valid() && old.index < from_.size(), "@{}: there is no old value {}", from_.name,
           old.index);
  return now_[static_cast<size_t>(old.index)].valid();
}

void Rewriter::map(ValueId old, ValueId now) {
  BC_CHECK(old.valid() && old.index < from_.size(), "@{}: there is no old value {}", from_.name,
           old.index);
  BC_CHECK(now.valid(), "@{}: the old value {} is mapped to nothing", from_.name, old.index);
  now_[static_cast<size_t>(old.index)] = now;
}

ValueId Rewriter::copy(ValueId old) {
  if (mapped(old)) return (*this)[old];
  const Node& node = from_.node(old);
  if (!measured_.empty()) copy_symbols(node);
  std::vector<ValueId> operands;
  operands.reserve(node.operands.size());
  for (const ValueId operand : node.operands) operands.push_back((*this)[operand]);
  const Loc current = builder_.loc();
  builder_.set_loc(node.loc);
  const ValueId now = builder_.emit(*node.op, std::move(operands), node.attrs);
  builder_.set_loc(current);
  map(old, now);
  return now;
}

/// A symbol has its value before a type mentions it.
void Rewriter::copy_symbols(const Node& node) {
  for (const std::string& symbol : mentioned_symbols(node)) {
    const auto source = measured_.find(symbol);
    if (source != measured_.end() && &from_.node(source->second) != &node) {
      copy_all(source->second);
    }
  }
}

ValueId Rewriter::copy_all(ValueId old) {
  if (mapped(old)) return (*this)[old];
  for (const ValueId operand : from_.node(old).operands) copy_all(operand);
  return copy(old);
}

Function Rewriter::finish() {
  std::vector<char> given(now_.size());
  for (size_t i = 0; i < given.size(); ++i) given[i] = now_[i].valid();
  const std::vector<char> needed = needed_nodes(from_, {from_.result}, given);
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) copy(ValueId(static_cast<int64_t>(i)));
  }
  return builder_.finish((*this)[from_.result], from_.result_names);
}

}  // namespace backcast
