// Access to inputs and attributes of a node, with the complaints that belong to it.
#include "frontend/node_context.h"

#include <algorithm>
#include <set>

#include "frontend/onnx_tensors.h"
#include "frontend/symbols.h"
#include "ir/graph/error.h"

namespace backcast {

NodeContext::NodeContext(ImportServices& services, const OnnxNode& node, Loc loc, int64_t opset,
                         std::vector<ValueId> inputs)
    : e(services.builder),
      services_(services),
      node_(node),
      loc_(std::move(loc)),
      opset_(opset),
      inputs_(std::move(inputs)),
      outputs_(node.outputs.size()) {}

void NodeContext::fail(const std::string& message) const { throw CompileError(loc_, message); }

ValueId NodeContext::input(size_t i) const {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  return inputs_[i];
}

std::vector<ValueId> NodeContext::all_inputs() const {
  std::vector<ValueId> result;
  for (size_t i = 0; i < inputs_.size(); ++i) result.push_back(input(i));
  return result;
}

std::optional<Dims> NodeContext::known_dims(size_t i) const {
  return services_.known.dims(input(i));
}

std::optional<Ints> NodeContext::known_ints_of(ValueId id) const {
  const std::optional<Literal> literal = services_.known.literal(id);
  if (!literal || is_float(literal->element())) return std::nullopt;
  return literal->as_ints();
}

std::optional<Ints> NodeContext::known_ints(size_t i) const { return known_ints_of(input(i)); }

Dims NodeContext::dims(size_t i) const {
  const std::optional<Dims> known = known_dims(i);
  if (known) return *known;
  fail(
      fmt::format("input {} (\"{}\") depends on data that is only known at run time; make it an "
                  "initializer or compute it from shapes",
                  i, input_name(i)));
}

Ints NodeContext::ints(size_t i) const {
  Ints result;
  for (const Dim& dim : dims(i)) {
    if (!dim.is_constant()) {
      fail(fmt::format("input {} (\"{}\") depends on the dimension {}; bind it with --dim", i,
                       input_name(i), dim.to_string()));
    }
    result.push_back(dim.constant());
  }
  return result;
}

Dim NodeContext::dim(size_t i) const {
  const Dims all = dims(i);
  if (all.size() != 1) fail(fmt::format("input {} has to hold one number", i));
  return all[0];
}

int64_t NodeContext::index(size_t i) const {
  const Ints all = ints(i);
  if (all.size() != 1) fail(fmt::format("input {} has to hold one number", i));
  return all[0];
}

std::vector<ValueId> NodeContext::elements(size_t i) {
  const ValueId sequence = input(i);
  if (!e.builder().type(sequence).is_tuple()) {
    fail(fmt::format("input {} (\"{}\") is a tensor and has to be a sequence", i, input_name(i)));
  }
  return e.elements(sequence);
}

std::optional<double> NodeContext::known_number(size_t i) const {
  if (!has(i)) return std::nullopt;
  const std::optional<Literal> literal = known_literal(i);
  if (!literal || literal->element_count() != 1) return std::nullopt;
  return literal->as_double(0);
}

const OnnxAttribute* NodeContext::find(std::string_view name) const {
  return find_attribute(node_, name);
}

int64_t NodeContext::attr_int(std::string_view name, int64_t fallback) const {
  const OnnxAttribute* attribute = find(name);
  return attribute ? attribute->i : fallback;
}

double NodeContext::attr_float(std::string_view name, double fallback) const {
  const OnnxAttribute* attribute = find(name);
  return attribute ? attribute->f : fallback;
}

std::string NodeContext::attr_string(std::string_view name, std::string_view fallback) const {
  const OnnxAttribute* attribute = find(name);
  return attribute ? attribute->s : std::string(fallback);
}

std::optional<Ints> NodeContext::attr_ints(std::string_view name) const {
  const OnnxAttribute* attribute = find(name);
  if (!attribute) return std::nullopt;
  return attribute->ints;
}

std::vector<float> NodeContext::attr_floats(std::string_view name) const {
  const OnnxAttribute* attribute = find(name);
  return attribute ? attribute->floats : std::vector<float>();
}

std::optional<Literal> NodeContext::attr_tensor(std::string_view name) const {
  const OnnxAttribute* attribute = find(name);
  if (!attribute) return std::nullopt;
  if (!attribute->t) fail(fmt::format("attribute \"{}\" holds no tensor", name));
  return services_.literal(*attribute->t);
}

ElementType NodeContext::attr_element(std::string_view name, ElementType fallback) const {
  const OnnxAttribute* attribute = find(name);
  if (!attribute) return fallback;
  const std::optional<ElementType> element = element_type_of(attribute->i);
  if (!element) {
    fail(fmt::format("attribute \"{}\": element type {} is not supported", name,
                     onnx_type_name(attribute->i)));
  }
  return *element;
}

int64_t NodeContext::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    fail(fmt::format("axis {} is out of range for a tensor of rank {}", axis, rank));
  }
  return axis < 0 ? axis + rank : axis;
}

Ints NodeContext::axes(const Ints& axes, int64_t rank) const {
  std::set<int64_t> result;
  for (const int64_t a : axes) {
    if (!result.insert(axis(a, rank)).second) fail(fmt::format("axis {} is given twice", a));
  }
  return Ints(result.begin(), result.end());
}

int64_t NodeContext::attr_axis(std::string_view name, int64_t fallback, int64_t rank) const {
  return axis(attr_int(name, fallback), rank);
}

void NodeContext::set(size_t k, ValueId value) {
  if (k < outputs_.size()) outputs_[k] = value;
}

std::optional<Shape> NodeContext::declared(size_t k) const {
  if (!wants(k)) return std::nullopt;
  return services_.declared_shape(node_.outputs[k]);
}

void NodeContext::note(const std::string& message) {
  std::vector<std::string>& notes = services_.notes;
  if (std::find(notes.begin(), notes.end(), message) == notes.end()) notes.push_back(message);
}

std::string NodeContext::initializer(size_t i) const {
  const Node& node = e.builder().node(input(i));
  const bool is_one = node.op == &ops::constant && node.loc.op_type == "initializer";
  return is_one ? node.loc.node : "";
}

ValueId measured_prefix(Module& module, const Emitter& e, const std::string& wish, ValueId x,
                        ValueId count, int64_t axis) {
  const std::string name = symbol_name(wish) + "_count";
  std::string fresh = name;
  for (int i = 2; module.symbols.contains(fresh); ++i) fresh = fmt::format("{}_{}", name, i);
  module.symbols[fresh] = {0, e.extent(x, axis).range(module.symbols).max};
  return e.builder().emit(ops::prefix, {x, count}, PrefixAttrs{axis, Dim::symbol(fresh)});
}

ValueId NodeContext::prefix(ValueId x, ValueId count, int64_t axis) {
  const std::string& output = node_.outputs[0];
  return measured_prefix(services_.module, e, output.empty() ? op_type() : output, x, count, axis);
}

FunctionRef NodeContext::function(
    const std::string& name, const std::vector<Type>& params,
    const std::function<ValueId(Emitter&, const std::vector<ValueId>&)>& body) {
  std::string fresh = name;
  for (int64_t n = 1; services_.module.functions.count(fresh) > 0 || fresh == "main"; ++n) {
    fresh = fmt::format("{}_{}", name, n);
  }
  services_.module.functions[fresh];  // the body may add others, and the name is taken
  Builder builder(services_.module, fresh);
  builder.set_loc({name, op_type(), Origin::imported});
  std::vector<ValueId> values;
  for (size_t i = 0; i < params.size(); ++i) {
    values.push_back(builder.parameter(fmt::format("x{}", i), params[i]));
  }
  Emitter emitter(builder);
  const ValueId result = body(emitter, values);
  services_.module.functions.insert_or_assign(fresh, builder.finish(result));
  return {fresh};
}

FunctionRef NodeContext::scan_body(
    const Emitter& around, const std::vector<ValueId>& operands, const ScanAttrs& attrs,
    const std::function<ValueId(Emitter&, const std::vector<ValueId>&)>& body) {
  std::vector<Type> types;
  for (size_t i = 1; i < operands.size(); ++i) {
    TensorType type = around.type(operands[i]);
    const int64_t x = static_cast<int64_t>(i) - 1 - attrs.carries;
    if (x >= 0 && x < attrs.xs) type.shape.erase(type.shape.begin());
    types.push_back(type);
  }
  return function(loc_.node, types, body);
}

ValueId NodeContext::composite(
    const std::string& name, const std::string& variant, const std::vector<ValueId>& operands,
    const std::function<ValueId(Emitter&, const std::vector<ValueId>&)>& body) {
  std::string signature = name + "|" + variant;
  for (const ValueId operand : operands) signature += "|" + to_string(e.type(operand));
  std::string& function = services_.composites[signature];
  if (function.empty()) {
    std::vector<Type> params;
    for (const ValueId operand : operands) params.push_back(e.builder().type(operand));
    function = this->function(name, params, body).name;
  }
  return e.emit(ops::composite, operands, CompositeAttrs{name, FunctionRef{function}});
}

}  // namespace backcast
