#include "passes/graph/promote.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"

namespace backcast {
namespace {

/// Whether a node's elements are those of several operands.
bool joins_elements(const Node& node) {
  return node.op == &ops::concat || node.op == &ops::pad ||
         (node.op == &ops::scatter && node.attrs.as<ScatterAttrs>().combiner == Combiner::assign);
}

/// Which element types become which, and what keeps its own at the edges.
struct Promotion {
  std::function<bool(ElementType)> narrow;
  ElementType wide;
  bool keeps_entries = false;  // and constants, but for these
  HalfPromotion but = {};
};

class Promoter {
 public:
  Promoter(const Module& module, const Promotion& how)
      : how_(how), module_(module), result_(module) {
    for (const Entry& entry : entries_of(module)) entries_.insert(entry.function);
  }

  Module run() {
    result_.functions.clear();
    if (!how_.keeps_entries) {
      for (StateVariable& state : result_.states) state.initial = promoted(state.initial);
    }
    // Callees first: the type of a call is its function's.
    while (result_.functions.size() < module_.functions.size()) {
      const size_t before = result_.functions.size();
      for (const auto& [name, function] : module_.functions) {
        if (!result_.functions.contains(name) && is_ready(function)) {
          result_.functions.emplace(name, promoted(function));
        }
      }
      BC_CHECK(result_.functions.size() > before, "functions call each other in a circle");
    }
    return std::move(result_);
  }

 private:
  bool is_ready(const Function& function) const {
    for (const Node& node : function.nodes) {
      for (const std::string& callee : called_functions(node)) {
        if (!result_.functions.contains(callee)) return false;
      }
    }
    return true;
  }

  Literal promoted(const Literal& literal) const {
    return how_.narrow(literal.element()) ? literal.converted_to(how_.wide) : literal;
  }

  // Types nest as deeply as the tuples of a model do, which is shallow.
  Type promoted(const Type& type) const {
    if (type.is_tensor()) {
      TensorType tensor = type.tensor();
      if (how_.narrow(tensor.element)) tensor.element = how_.wide;
      return tensor;
    }
    std::vector<Type> elements;
    for (const Type& element : type.elements()) elements.push_back(promoted(element));
    return Type::tuple(elements);
  }

  Attrs promoted(const Attrs& attrs) const {
    std::vector<AttrField> replaced;
    for (const AttrField& field : attrs.fields()) {
      const ElementType* element = std::get_if<ElementType>(&field.value);
      if (element && how_.narrow(*element)) replaced.push_back({field.name, how_.wide});
      const Literal* literal = std::get_if<Literal>(&field.value);
      if (literal) replaced.push_back({field.name, promoted(*literal)});
    }
    return replaced.empty() ? attrs : attrs.with(replaced);
  }

  Function promoted(const Function& from) const {
    const bool keeps = how_.keeps_entries && entries_.contains(from.name);
    Builder builder(result_, from.name);
    std::vector<ValueId> now(from.nodes.size());
    const auto at = [&](ValueId old) -> ValueId& { return now[static_cast<size_t>(old.index)]; };
    for (ValueId param : from.params) {
      const Node& node = from.node(param);
      builder.set_loc(node.loc);
      at(param) = builder.parameter(parameter_name(node), keeps ? node.type : promoted(node.type));
    }
    for (ValueId param : from.params) {
      builder.set_loc(from.node(param).loc);
      at(param) = widened(builder, at(param));
    }
    for (int64_t i = 0; i < from.size(); ++i) {
      const Node& node = from.node(ValueId(i));
      if (is_parameter(node)) continue;
      std::vector<ValueId> operands;
      for (ValueId operand : node.operands) operands.push_back(at(operand));
      builder.set_loc(node.loc);
      at(ValueId(i)) = copy(builder, node, operands, from);
    }
    const ValueId result = at(from.result);
    return builder.finish(
        keeps && !how_.but.results ? as_before(builder, result, from.result_type()) : result,
        from.result_names);
  }

  ValueId copy(Builder& builder, const Node& node, const std::vector<ValueId>& operands,
               const Function& from) const {
    if (how_.keeps_entries && node.op == &ops::constant &&
        !how_.but.learned.contains(node.loc.node)) {
      return widened(builder, builder.emit(*node.op, {}, node.attrs));
    }
    if (node.op != &ops::cast) {
      if (how_.keeps_entries && joins_elements(node)) {
        if (const std::optional<ValueId> joined = join(builder, node, operands)) return *joined;
      }
      return builder.emit(*node.op, operands, promoted(node.attrs));
    }
    const ElementType to = node.type.tensor().element;
    const ElementType before = from.type(node.operands[0]).tensor().element;
    ValueId value = operands[0];
    if (how_.keeps_entries) {
      // Integers are those of the narrow type: what is nearly 3 there is 3.
      if (how_.narrow(before) && !is_float(to)) {
        value = widened(builder, converted(builder, value, before));
      }
      if (how_.narrow(to) && is_float(before) && before != to)
        value = converted(builder, value, to);
    }
    const bool idle = builder.tensor_type(value).element == (how_.narrow(to) ? how_.wide : to);
    return idle ? value : builder.emit(ops::cast, {value}, promoted(node.attrs));
  }

  /// What is put together with a tensor that memory holds in the narrow type, such as a new key
  /// behind cached ones, is rounded to it: the other way round, all of it would be converted.
  std::optional<ValueId> join(Builder& builder, const Node& node,
                              const std::vector<ValueId>& operands) const {
    const ElementType element = node.type.tensor().element;
    const auto before = [&](ValueId id) { return builder.node(id).operands[0]; };
    const auto is_held = [&](ValueId id) {
      const Node& value = builder.node(id);
      return value.op == &ops::cast && builder.tensor_type(before(id)).element == element &&
             builder.node(before(id)).op != &ops::constant;
    };
    if (!how_.narrow(element) || std::ranges::none_of(operands, is_held)) return std::nullopt;
    std::vector<ValueId> narrow;
    for (const ValueId id : operands) {
      const bool converts = builder.tensor_type(id).element == how_.wide;
      narrow.push_back(!converts ? id : is_held(id) ? before(id) : converted(builder, id, element));
    }
    return widened(builder, builder.emit(*node.op, narrow, node.attrs));
  }

  /// A tensor of a narrow type in the wide one.
  ValueId widened(Builder& builder, ValueId value) const {
    const Type type = builder.type(value);
    const bool narrow = type.is_tensor() && how_.narrow(type.tensor().element);
    return narrow ? converted(builder, value, how_.wide) : value;
  }

  /// The result of an entry, in the types that it had.
  ValueId as_before(Builder& builder, ValueId value, const Type& type) const {
    if (type.is_tensor()) return converted(builder, value, type.tensor().element);
    std::vector<ValueId> parts;
    for (size_t i = 0; i < type.elements().size(); ++i) {
      const ValueId part = builder.emit(ops::get, {value}, GetAttrs{static_cast<int64_t>(i)});
      parts.push_back(as_before(builder, part, type.elements()[i]));
    }
    return builder.emit(ops::tuple, parts);
  }

  const Promotion& how_;
  const Module& module_;
  Module result_;
  std::set<std::string> entries_;
};

bool has_halves(const Type& type) {
  if (type.is_tensor()) return is_half(type.tensor().element);
  return std::ranges::any_of(type.elements(), has_halves);
}

}  // namespace

bool has_halves(const Module& module) {
  for (const auto& [name, function] : module.functions) {
    for (const Node& node : function.nodes) {
      if (has_halves(node.type)) return true;
    }
  }
  return false;
}

Module promote_f64(const Module& module) {
  const auto narrow = [](ElementType e) { return is_float(e) && e != ElementType::f64; };
  return Promoter(module, {narrow, ElementType::f64}).run();
}

Module promote_halves(const Module& module, const HalfPromotion& how) {
  if (!has_halves(module)) return module;
  return Promoter(module, {is_half, ElementType::f32, true, how}).run();
}

}  // namespace backcast
