#include "passes/graph/drop_constant_channels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "ir/graph/builder.h"
#include "ir/ops/narrow.h"
#include "ir/ops/ops.h"
#include "passes/graph/contraction_axes.h"

namespace backcast {
namespace {

size_t at(ValueId id) { return static_cast<size_t>(id.index); }

/// Constants and what is spread or converted from them: parts of them cost nothing to leave out.
std::vector<bool> flexible_values(const Function& function) {
  std::vector<bool> flexible(function.nodes.size(), false);
  for (size_t i = 0; i < flexible.size(); ++i) {
    const Node& node = function.nodes[i];
    const bool spreads = node.op == &ops::broadcast || node.op == &ops::cast;
    flexible[i] = node.op == &ops::constant || (spreads && flexible[at(node.operands[0])]);
  }
  return flexible;
}

std::vector<char> live_values(const Function& function) {
  std::vector<char> live(function.nodes.size(), 0);
  live[at(function.result)] = 1;
  for (size_t i = live.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const ValueId operand : function.nodes[i].operands) live[at(operand)] = 1;
  }
  return live;
}

/// A NarrowContext with the lists it refers to.
struct View {
  View(const Module& module, const Function& function, const Node& node,
       const std::vector<Bounds>& all_bounds, const std::vector<bool>& all_flexible) {
    for (const ValueId id : node.operands) {
      const Node& operand = function.node(id);
      types.push_back(&operand.type.tensor());
      bounds.push_back(&all_bounds[at(id)]);
      constants.push_back(known_elements(function, id));
      flexible.push_back(all_flexible[at(id)]);
    }
    context.emplace(NarrowContext{module, node, types, bounds, constants, flexible});
  }

  std::vector<const TensorType*> types;
  std::vector<const Bounds*> bounds;
  std::vector<const Literal*> constants;
  std::vector<bool> flexible;
  std::optional<NarrowContext> context;
};

bool has_only_tensors(const Function& function, const Node& node) {
  return node.type.is_tensor() &&
         std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ValueId id) { return function.type(id).is_tensor(); });
}

/// Indices along axes of values, in classes of those that stand or fall together.
class Classes : public AxisRelations {
 public:
  Classes(const Function& function, const std::vector<Bounds>& bounds,
          const std::vector<bool>& flexible)
      : function_(function), bounds_(bounds) {
    first_.resize(function.nodes.size());
    for (size_t i = 0; i < first_.size(); ++i) {
      if (flexible[i] || !function.nodes[i].type.is_tensor()) continue;
      for (const Dim& dim : function.nodes[i].type.tensor().shape) {
        const bool counted = dim.is_constant() && dim.constant() > 0;
        first_[i].push_back(counted ? static_cast<int64_t>(parent_.size()) : -1);
        for (int64_t k = 0; counted && k < dim.constant(); ++k) parent_.push_back(parent_.size());
      }
    }
    stays_.assign(parent_.size(), 0);
  }

  /// The node that the relations which follow are about.
  void set_node(ValueId id) { node_ = id; }

  void link(AxisIndex a, AxisIndex b) override {
    const std::optional<size_t> left = element(a), right = element(b);
    if (left && right) {
      const size_t to = root(*left), from = root(*right);
      parent_[from] = to;
      if (from != to) stays_[to] = stays_[to] | stays_[from];
    } else if (left && !is_flexible(b)) {
      keep(*left);
    } else if (right && !is_flexible(a)) {
      keep(*right);
    }
  }
  void pin(int value, int64_t axis) override { pin_axis(id_of(value), axis); }
  void absorb(AxisIndex index, Without condition) override {
    const std::optional<size_t> e = element(index);
    if (!e) return;
    const Bounds& bounds = bounds_[at(id_of(index.value))];
    if (condition == Without::nothing_read && is_finite(bounds)) return;
    const std::optional<SharedValue> shared = shared_value(bounds, index.axis, index.index);
    const bool zero = shared && shared->exact && shared->value == 0;
    if (!(condition == Without::zero ? zero : shared.has_value())) keep(*e);
  }

  void pin_value(ValueId id) {
    for (size_t axis = 0; axis < first_[at(id)].size(); ++axis) {
      pin_axis(id, static_cast<int64_t>(axis));
    }
  }
  /// No axis loses everything.
  void keep_one_of_each() {
    for (size_t i = 0; i < first_.size(); ++i) {
      for (size_t axis = 0; axis < first_[i].size(); ++axis) {
        if (first_[i][axis] >= 0 && kept(i, axis).empty()) {
          keep(static_cast<size_t>(first_[i][axis]));
        }
      }
    }
  }
  /// What stays of an axis fills vectors: whole ones and one of a power of two of lanes, which are
  /// no narrower than 32 bits; and words, where it is of small integers.
  void fill(const ChannelUnits& units) {
    for (size_t i = 0; i < first_.size(); ++i) {
      for (size_t axis = 0; axis < first_[i].size(); ++axis) {
        if (first_[i][axis] < 0) continue;
        const ElementType element = function_.nodes[i].type.tensor().element;
        const int64_t bytes = byte_size(element);
        const int64_t word = is_integer(element) && bytes <= 2 ? units.word : 1;
        int64_t count = static_cast<int64_t>(kept(i, axis).size());
        const int64_t lanes = units.vector_bits / (8 * std::max<int64_t>(bytes, 4));
        const int64_t wanted = (filled(count, lanes) + word - 1) / word * word;
        for (int64_t k = 0; count < wanted && k < extent(i, axis); ++k) {
          const size_t e = static_cast<size_t>(first_[i][axis] + k);
          if (stays_[root(e)]) continue;
          keep(e);
          count = static_cast<int64_t>(kept(i, axis).size());
        }
      }
    }
  }
  /// The axes of a value that lose indices.
  KeptIndices kept_of(ValueId id) {
    KeptIndices result;
    for (size_t axis = 0; axis < first_[at(id)].size(); ++axis) {
      if (first_[at(id)][axis] < 0) continue;
      std::vector<int64_t> indices = kept(at(id), axis);
      if (static_cast<int64_t>(indices.size()) == extent(at(id), axis)) continue;
      result[static_cast<int64_t>(axis)] = std::move(indices);
    }
    return result;
  }

 private:
  ValueId id_of(int value) const {
    return value == kResult ? node_ : function_.node(node_).operands[static_cast<size_t>(value)];
  }
  bool is_flexible(AxisIndex index) const { return first_[at(id_of(index.value))].empty(); }
  std::optional<size_t> element(AxisIndex index) const {
    const std::vector<int64_t>& first = first_[at(id_of(index.value))];
    if (first.empty() || first[static_cast<size_t>(index.axis)] < 0) return std::nullopt;
    return static_cast<size_t>(first[static_cast<size_t>(index.axis)] + index.index);
  }
  static bool is_finite(const Bounds& bounds) {
    return std::all_of(bounds.planes[Bounds::high].begin(), bounds.planes[Bounds::high].end(),
                       [](double high) { return std::isfinite(high); });
  }
  static int64_t filled(int64_t count, int64_t lanes) {
    if (lanes < 2) return count;
    int64_t last = 1;
    while (last < count % lanes) last *= 2;
    return count % lanes == 0 ? count : count - count % lanes + last;
  }
  int64_t extent(size_t value, size_t axis) const {
    return function_.nodes[value].type.tensor().shape[axis].constant();
  }
  size_t root(size_t e) {
    while (parent_[e] != e) {
      parent_[e] = parent_[parent_[e]];
      e = parent_[e];
    }
    return e;
  }
  void keep(size_t e) { stays_[root(e)] = 1; }
  void pin_axis(ValueId id, int64_t axis) {
    const std::vector<int64_t>& first = first_[at(id)];
    if (first.empty() || first[static_cast<size_t>(axis)] < 0) return;
    for (int64_t i = 0; i < extent(at(id), static_cast<size_t>(axis)); ++i) {
      keep(static_cast<size_t>(first[static_cast<size_t>(axis)] + i));
    }
  }
  std::vector<int64_t> kept(size_t value, size_t axis) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < extent(value, axis); ++i) {
      if (stays_[root(static_cast<size_t>(first_[value][axis] + i))]) indices.push_back(i);
    }
    return indices;
  }

  const Function& function_;
  const std::vector<Bounds>& bounds_;
  ValueId node_;
  std::vector<std::vector<int64_t>> first_;  // by value and axis; -1: an extent of run time
  std::vector<size_t> parent_;
  std::vector<char> stays_;
};

/// Sums two constants whose dimensions have equal extents or 1.
Literal spread_sum(const Literal& a, const Literal& b) {
  std::vector<int64_t> shape = a.shape();
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = std::max(shape[d], b.shape()[d]);
  const std::vector<int64_t> a_strides = row_major_strides(a.shape());
  const std::vector<int64_t> b_strides = row_major_strides(b.shape());
  std::vector<double> sums;
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, from_a = 0, from_b = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      if (a.shape()[d] != 1) from_a += rest % shape[d] * a_strides[d];
      if (b.shape()[d] != 1) from_b += rest % shape[d] * b_strides[d];
      rest /= shape[d];
    }
    sums.push_back(a.as_double(from_a) + b.as_double(from_b));
  }
  return Literal::from_doubles(ElementType::f64, shape, sums);
}

bool is_float_sum(const Node& node) {
  return is_contraction(node) && is_float(node.type.tensor().element);
}

class Dropping {
 public:
  Dropping(const Module& module, const Function& from, const InputBounds& inputs,
           const ChannelUnits& units)
      : module_(module),
        from_(from),
        units_(units),
        exact_(!inputs.known),
        bounds_(bounds_of_values(module, from, inputs)),
        flexible_(flexible_values(from)),
        live_(live_values(from)),
        uses_(use_counts(from)),
        rewriter_(module, from),
        b_(rewriter_.builder()) {}

  Function run(int64_t& channels) {
    if (!find_kept()) return from_;
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      if (!live_[at(id)] || rewriter_.mapped(id)) continue;
      if (is_touched(id)) {
        rewrite(id, channels);
      } else {
        rewriter_.copy(id);
      }
    }
    return rewriter_.finish();
  }

 private:
  bool find_kept() {
    Classes classes(from_, bounds_, flexible_);
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      if (!live_[at(id)] || flexible_[at(id)]) continue;
      classes.set_node(id);
      if (has_only_tensors(from_, node) && !(exact_ && is_float_sum(node))) {
        relate_axes(*View(module_, from_, node, bounds_, flexible_).context, classes);
      } else {
        classes.pin_value(id);
        for (const ValueId operand : node.operands) classes.pin_value(operand);
      }
    }
    classes.pin_value(from_.result);
    classes.keep_one_of_each();
    classes.fill(units_);
    kept_.resize(from_.nodes.size());
    bool any = false;
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (!live_[i]) continue;
      kept_[i] = classes.kept_of(ValueId(static_cast<int64_t>(i)));
      any = any || !kept_[i].empty();
    }
    return any;
  }

  bool is_touched(ValueId id) const {
    const Node& node = from_.node(id);
    return !flexible_[at(id)] &&
           (!kept_[at(id)].empty() ||
            std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
              return !kept_[at(operand)].empty() || shifts_.count(operand.index) > 0;
            }));
  }

  void rewrite(ValueId id, int64_t& channels) {
    const Node& node = from_.node(id);
    const View view(module_, from_, node, bounds_, flexible_);
    std::vector<KeptIndices> kept;
    for (const ValueId operand : node.operands) kept.push_back(kept_[at(operand)]);
    const Narrowed narrowed = narrow(*view.context, kept, kept_[at(id)]);
    b_.set_loc(node.loc);
    if (merge_shift(id)) return;
    std::vector<ValueId> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      operands.push_back(view.flexible[k] ? part_of(node.operands[k], narrowed.flexible[k])
                                          : rewriter_[node.operands[k]]);
    }
    b_.set_loc(node.loc);
    ValueId now = b_.emit(*node.op, operands, narrowed.attrs);
    if (narrowed.shift) {
      shifts_[id.index] = {now, *narrowed.shift};
      now = shifted(now, *narrowed.shift);
    }
    for (const auto& [axis, indices] : kept_[at(id)]) {
      if (!narrowed.contracts) continue;
      channels += node.type.tensor().shape[static_cast<size_t>(axis)].constant() -
                  static_cast<int64_t>(indices.size());
    }
    rewriter_.map(id, now);
  }

  /// A flexible value without some of its indices.
  ValueId part_of(ValueId id, KeptIndices kept) {
    if (kept.empty()) return rewriter_[id];
    std::vector<std::pair<const Node*, Attrs>> spreads;  // from the outside in
    const Node* node = &from_.node(id);
    while (node->op != &ops::constant) {
      const View view(module_, from_, *node, bounds_, flexible_);
      const std::vector<KeptIndices> none(1);
      const Narrowed narrowed = narrow(*view.context, none, kept);
      spreads.emplace_back(node, narrowed.attrs);
      kept = narrowed.flexible[0];
      node = &from_.node(node->operands[0]);
    }
    b_.set_loc(node->loc);
    ValueId now = b_.constant(keep_indices(node->attrs.as<ConstantAttrs>().value, kept));
    while (!spreads.empty()) {
      b_.set_loc(spreads.back().first->loc);
      now = b_.emit(*spreads.back().first->op, {now}, spreads.back().second);
      spreads.pop_back();
    }
    return now;
  }

  /// value + shift, which has one dimension per dimension of the value.
  ValueId shifted(ValueId value, const Literal& shift) {
    const TensorType type = b_.tensor_type(value);
    BroadcastAttrs attrs{type.shape, {}};
    std::vector<int64_t> shape;
    for (size_t d = 0; d < shift.shape().size(); ++d) {
      if (shift.shape()[d] == 1) continue;
      shape.push_back(shift.shape()[d]);
      attrs.dims.push_back(static_cast<int64_t>(d));
    }
    const ValueId small =
        b_.constant(Literal::from_doubles(type.element, shape, shift.as_doubles()));
    return b_.emit(ops::add, {value, b_.emit(ops::broadcast, {small}, attrs)});
  }

  /// (contraction + shift) + constant needs one addition only.
  bool merge_shift(ValueId id) {
    const Node& node = from_.node(id);
    if (node.op != &ops::add) return false;
    for (const size_t side : {0u, 1u}) {
      const auto found = shifts_.find(node.operands[side].index);
      const ValueId other = node.operands[1 - side];
      if (found == shifts_.end() || uses_[at(node.operands[side])] != 1 || !flexible_[at(other)]) {
        continue;
      }
      const std::optional<Literal> constant = small_form(other, kept_[at(id)]);
      if (!constant) return false;
      const auto& [contraction, shift] = found->second;
      rewriter_.map(id, shifted(contraction, spread_sum(shift, *constant)));
      return true;
    }
    return false;
  }

  /// A constant or one that is spread once, with one dimension per dimension of the value.
  std::optional<Literal> small_form(ValueId id, const KeptIndices& kept) const {
    const Node* node = &from_.node(id);
    Ints dims(node->type.tensor().shape.size());
    std::iota(dims.begin(), dims.end(), 0);
    std::vector<int64_t> shape(dims.size(), 1);
    if (node->op == &ops::broadcast) {
      dims = node->attrs.as<BroadcastAttrs>().dims;
      node = &from_.node(node->operands[0]);
    }
    if (node->op != &ops::constant) return std::nullopt;
    Literal literal = node->attrs.as<ConstantAttrs>().value;
    KeptIndices own;
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto found = kept.find(dims[d]);
      if (found != kept.end() && literal.shape()[d] != 1) {
        own[static_cast<int64_t>(d)] = found->second;
      }
    }
    literal = keep_indices(literal, own);
    for (size_t d = 0; d < dims.size(); ++d) shape[size_t(dims[d])] = literal.shape()[d];
    return Literal(literal.element(), shape, {literal.bytes().begin(), literal.bytes().end()});
  }

  const Module& module_;
  const Function& from_;
  ChannelUnits units_;
  bool exact_;  // sums of floats stay as they are
  std::vector<Bounds> bounds_;
  std::vector<bool> flexible_;
  std::vector<char> live_;
  std::vector<int> uses_;
  std::vector<KeptIndices> kept_;                          // by value
  std::map<int64_t, std::pair<ValueId, Literal>> shifts_;  // by contraction: as it is now
  Rewriter rewriter_;
  Builder& b_;
};

}  // namespace

ChannelUnits channel_units(const TargetInfo& target) {
  const bool multiplies_words = target.pair_products || target.byte_products;
  return {target.vector_bits, multiplies_words ? 4 : 1};
}

bool sums_integers(const Module& module) {
  const auto is_sum = [](const Node& node) {
    return is_contraction(node) && node.type.is_tensor() && is_integer(node.type.tensor().element);
  };
  return std::any_of(module.functions.begin(), module.functions.end(), [&](const auto& named) {
    const std::vector<Node>& nodes = named.second.nodes;
    return std::any_of(nodes.begin(), nodes.end(), is_sum);
  });
}

Module drop_constant_channels(const Module& module, const InputBounds& inputs,
                              DroppedChannels* dropped, const ChannelUnits& units) {
  if (!module.states.empty()) return module;
  std::set<std::string> functions;
  for (const Entry& entry : entries_of(module)) functions.insert(entry.function);
  Module result = module;
  int64_t channels = 0;
  for (const std::string& name : functions) {
    result.functions[name] = Dropping(module, module.function(name), inputs, units).run(channels);
  }
  if (dropped != nullptr) dropped->channels = channels;
  return result;
}

}  // namespace backcast
