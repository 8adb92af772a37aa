#include "passes/graph/simplify.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/steps_behind.h"

namespace backcast {
namespace {

// A folded constant may be larger than what it came from by this much: beyond it, computing is
// cheaper than flash.
constexpr int64_t kMaxGrowthBytes = 4096;
// More bytes than these are not made wider: their reader, or fold_constants, decides.
constexpr int64_t kMostDecoded = 256;

int64_t bytes_of(const Type& type) {
  int64_t total = 0;
  for (const TensorType& t : flatten(type)) {
    if (!t.is_static()) return -1;
    total += t.element_count().constant() * byte_size(t.element);
  }
  return total;
}

class Simplification {
 public:
  Simplification(const Module& module, const Function& from)
      : module_(module),
        from_(from),
        builder_(module, from.name),
        steps_behind_(steps_behind(from)),
        decoded_(decoded_values(from)) {
    for (const Node& node : from.nodes) {
      if (node.op == &ops::scan && node.attrs.as<ScanAttrs>().trajectory) saved_.push_back(&node);
    }
  }

  Function run() {
    std::vector<char> live = needed();
    now_.resize(from_.nodes.size());
    for (int64_t i = 0; i < from_.size(); ++i) {
      if (live[static_cast<size_t>(i)]) now_[static_cast<size_t>(i)] = visit(ValueId(i));
    }
    return builder_.finish(now_[static_cast<size_t>(from_.result.index)], from_.result_names);
  }

 private:
  std::vector<char> needed() const {
    std::vector<ValueId> roots = from_.params;
    roots.push_back(from_.result);
    return needed_nodes(from_, roots);
  }

  ValueId visit(ValueId id) {
    const Node& old = from_.node(id);
    builder_.set_loc(old.loc);
    if (old.op == &ops::parameter) {
      return builder_.parameter(old.attrs.as<ParameterAttrs>().name, old.type);
    }
    Node node = old;
    for (ValueId& operand : node.operands) operand = now_[static_cast<size_t>(operand.index)];
    if (is_saved_elsewhere(old)) return save_trajectory(node);
    if (decoded_[static_cast<size_t>(id.index)] && is_bytes(node.operands[0])) return share(node);
    return improve(node, steps_behind_[static_cast<size_t>(id.index)]);
  }

  /// Whether a scan runs once more for its trajectory.
  bool is_saved_elsewhere(const Node& old) const {
    if (saved_.empty() || old.op != &ops::scan || old.attrs.as<ScanAttrs>().trajectory)
      return false;
    const Attrs saved = old.attrs.with({{"trajectory", true}});
    return std::any_of(saved_.begin(), saved_.end(), [&](const Node* other) {
      return other->operands == old.operands && other->attrs == saved;
    });
  }

  /// Once is enough.
  ValueId save_trajectory(const Node& node) {
    Node saving = node;
    saving.attrs = node.attrs.with({{"trajectory", true}});
    const ValueId scan = share(saving);
    std::vector<ValueId> parts;
    for (size_t i = 0; i < node.type.elements().size(); ++i) {
      parts.push_back(builder_.emit(ops::get, {scan}, GetAttrs{static_cast<int64_t>(i)}));
    }
    return builder_.emit(ops::tuple, parts);
  }

  /// Folds, or applies one rule, or shares. What a rule emits is looked at again in the next round.
  ValueId improve(const Node& node, bool exactly) {
    if (std::optional<ValueId> folded = fold(node)) return *folded;
    if (std::optional<ValueId> better = apply_rules(node, exactly)) return *better;
    return share(node);
  }

  std::optional<ValueId> apply_rules(const Node& node, bool exactly) {
    for (const AlgebraicRule& rule : algebraic_rules()) {
      if (rule.op != node.op || (exactly && !rule.keeps_bits)) continue;
      if (std::optional<ValueId> better = rule.apply(builder_, node)) return better;
    }
    return std::nullopt;
  }

  std::optional<ValueId> fold(const Node& node) {
    if (node.op == &ops::constant || node.op == &ops::tuple || !node.type.is_tensor()) return {};
    int64_t bytes = bytes_of(node.type), operand_bytes = 0;
    if (bytes < 0) return {};
    bool direct = node.operands.empty();
    std::vector<const Literal*> literals;
    for (ValueId operand : node.operands) {
      const Literal* literal = constant_of(builder_, operand);
      direct = direct || literal;
      if (!literal) literal = spread_or_cast_constant(operand);
      if (!literal) return {};
      literals.push_back(literal);
      operand_bytes += static_cast<int64_t>(literal->bytes().size());
    }
    if (!direct || mentions_symbols(node.attrs) || decodes(node)) return {};
    if (bytes > operand_bytes + kMaxGrowthBytes) return {};
    // A broadcast stays small: lowering reads the original.
    if (node.op == &ops::broadcast && bytes > 64) return {};
    std::vector<Value> values;
    for (size_t i = 0; i < literals.size(); ++i) {
      const Node& operand = builder_.node(node.operands[i]);
      const bool made = operand.op == &ops::broadcast || operand.op == &ops::cast;
      values.push_back(made ? evaluate_node(module_, operand, {*literals[i]})
                            : Value(*literals[i]));
    }
    Value value = evaluate_node(module_, node, values);
    return share_constant(value.tensor, node.loc);
  }

  /// Whether it makes floats of bytes, scaled or not.
  bool decodes(const Node& node) const {
    if (node.op == &ops::mul) {
      return std::any_of(node.operands.begin(), node.operands.end(),
                         [&](ValueId operand) { return decodes(builder_.node(operand)); });
    }
    return node.op == &ops::cast && is_float(node.type.tensor().element) &&
           is_bytes(node.operands[0]);
  }

  /// More constants of a byte than become wider on their own.
  bool is_bytes(ValueId id) const {
    const Literal* constant = constant_of(builder_, id);
    return constant && is_integer(constant->element()) && byte_size(constant->element()) == 1 &&
           constant->element_count() > kMostDecoded;
  }

  /// By value, whether it is a conversion of integers that, less a zero point or not, become
  /// floats.
  static std::vector<char> decoded_values(const Function& from) {
    std::vector<char> decoded(from.nodes.size(), 0);
    for (const Node& node : from.nodes) {
      if (node.op != &ops::cast || !is_float(node.type.tensor().element)) continue;
      ValueId whole = node.operands[0];
      if (from.node(whole).op == &ops::sub) whole = from.node(whole).operands[0];
      if (from.node(whole).op == &ops::cast) decoded[static_cast<size_t>(whole.index)] = 1;
    }
    return decoded;
  }

  /// The constant that a value is a broadcast or conversion of, which is not folded alone where
  /// that takes more room; null otherwise.
  const Literal* spread_or_cast_constant(ValueId id) const {
    const Node& node = builder_.node(id);
    if (bytes_of(node.type) < 0) return nullptr;
    return node.op == &ops::cast ? constant_of(builder_, node.operands[0])
                                 : spread_constant_of(builder_, id);
  }

  static bool mentions_symbols(const Attrs& attrs) {
    for (const AttrField& field : attrs.fields()) {
      const Dim* dim = std::get_if<Dim>(&field.value);
      if (dim && !dim->is_constant()) return true;
      const Dims* dims = std::get_if<Dims>(&field.value);
      for (size_t i = 0; dims && i < dims->size(); ++i) {
        if (!(*dims)[i].is_constant()) return true;
      }
    }
    return false;
  }

  ValueId share_constant(const Literal& value, const Loc& loc) {
    Node node{&ops::constant, {}, ConstantAttrs{value}, value.type(), loc};
    return share(node);
  }

  /// The value of an equal node emitted before, or a new node.
  ValueId share(const Node& node) {
    uint64_t hash = std::hash<const void*>()(node.op) ^ node.attrs.hash();
    for (ValueId operand : node.operands) {
      hash = hash * 1099511628211ull + static_cast<uint64_t>(operand.index);
    }
    for (ValueId candidate : known_[hash]) {
      const Node& other = builder_.node(candidate);
      if (other.op == node.op && other.operands == node.operands && other.attrs == node.attrs) {
        return candidate;
      }
    }
    ValueId id = builder_.emit(*node.op, node.operands, node.attrs);
    known_[hash].push_back(id);
    return id;
  }

  const Module& module_;
  const Function& from_;
  Builder builder_;
  const std::vector<char> steps_behind_, decoded_;  // of the nodes of `from_`
  std::vector<ValueId> now_;
  std::vector<const Node*> saved_;  // scans with a trajectory
  std::unordered_map<uint64_t, std::vector<ValueId>> known_;
};

Function simplify_function(const Module& module, Function function) {
  // Rules open doors for one another; the node count and a few rounds bound the work.
  for (int round = 0; round < 8; ++round) {
    Function better = Simplification(module, function).run();
    bool same = equal(better, function);
    function = std::move(better);
    if (same) break;
  }
  return function;
}

}  // namespace

Module simplify(const Module& module) {
  Module result = module;
  for (auto& [name, function] : result.functions) function = simplify_function(module, function);
  return result;
}

}  // namespace backcast
