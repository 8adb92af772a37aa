// One forward walk. Every value is held as a stored value and a permutation still to be applied
// (value = transpose(stored, permutation)); what works in any layout works on the stored one, and a
// transpose is emitted only where somebody needs the value as written.
#include "passes/graph/assign_layout.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/dimensions.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

struct Held {
  ValueId stored;
  Ints permutation;       // empty: not a tensor, or identity
  bool windowed = false;  // the order is what a window asked for, not what the model has
};

bool is_identity(const Ints& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

Ints inverse(const Ints& permutation) {
  Ints result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) result[size_t(permutation[i])] = int64_t(i);
  return result;
}

/// transpose(transpose(x, inner), outer) = transpose(x, compose(inner, outer)).
Ints compose(const Ints& inner, const Ints& outer) {
  Ints result;
  for (int64_t i : outer) result.push_back(inner[size_t(i)]);
  return result;
}

template <class T>
std::vector<T> permuted(const std::vector<T>& list, const Ints& order) {
  std::vector<T> result;
  for (int64_t i : order) result.push_back(list[size_t(i)]);
  return result;
}

class Layout {
 public:
  Layout(const Module& module, const Function& from)
      : from_(from), symbols_(module.symbols), b_(module, from.name) {}

  Function run() {
    held_.resize(from_.nodes.size());
    find_ways_to_windows();
    for (int64_t i = 0; i < from_.size(); ++i) {
      const Node& node = from_.node(ValueId(i));
      b_.set_loc(node.loc);
      Held& result = held_[size_t(i)] = visit(node);
      result.windowed = !result.permutation.empty() && (result.windowed || follows_window(node));
    }
    return b_.finish(as_written(from_.result), from_.result_names);
  }

 private:
  const Held& held(ValueId old) const { return held_[size_t(old.index)]; }

  ValueId as_written(ValueId old) {
    Held& h = held_[size_t(old.index)];
    if (!is_identity(h.permutation)) {
      h.stored = b_.emit(ops::transpose, {h.stored}, TransposeAttrs{h.permutation});
      h.permutation.clear();
    }
    return h.stored;
  }

  /// The stored form x with value = transpose(x, permutation).
  ValueId in_layout(ValueId old, const Ints& permutation) {
    const Held& h = held(old);
    Ints current = h.permutation;
    if (current.empty()) {
      current.resize(permutation.size());
      std::iota(current.begin(), current.end(), 0);
    }
    if (current == permutation) return h.stored;
    return b_.emit(ops::transpose, {h.stored},
                   TransposeAttrs{compose(current, inverse(permutation))});
  }

  Held visit(const Node& node) {
    if (node.op == &ops::parameter) {
      return {b_.parameter(node.attrs.as<ParameterAttrs>().name, node.type), {}};
    }
    if (node.op == &ops::transpose) return transpose(node);
    if (node.op == &ops::conv) return conv(node);
    if (node.op == &ops::reduce_window && pools_space(node)) return pool(node);
    std::optional<Ints> layout = operand_layout(node);
    if (layout) {
      if (is_elementwise(*node.op)) return elementwise(node, *layout);
      if (node.op == &ops::reduce) return reduce(node, *layout);
      if (node.op == &ops::concat && !lies_as_written(node, *layout)) return concat(node, *layout);
      if (node.op == &ops::pad) return pad(node, *layout);
      if (node.op == &ops::slice) return slice(node, *layout);
      if (node.op == &ops::broadcast && follows_window(node)) return broadcast(node, *layout);
      if (node.op == &ops::reshape && near_window(node)) return reshape(node, *layout);
      if (node.op == &ops::gather && takes_along_one(node)) return take(node, *layout);
      if (slides(*node.op) && keeps_numbers(node, *layout)) return window(node, *layout);
    }
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(as_written(operand));
    return {b_.emit(*node.op, operands, node.attrs), {}};
  }

  /// Marks what a window reads, itself or after operators that work in any layout.
  void find_ways_to_windows() {
    to_window_.assign(from_.nodes.size(), false);
    for (int64_t i = from_.size(); i-- > 0;) {
      const Node& node = from_.node(ValueId(i));
      const bool moves = is_elementwise(*node.op) || node.op == &ops::transpose ||
                         node.op == &ops::concat || node.op == &ops::pad ||
                         node.op == &ops::slice || node.op == &ops::reshape ||
                         (node.op == &ops::gather && takes_along_one(node));
      const bool is_window = node.op == &ops::conv || slides(*node.op);
      if (!is_window && !(moves && to_window_[size_t(i)])) continue;
      for (const ValueId operand : node.operands) to_window_[size_t(operand.index)] = true;
    }
  }

  bool follows_window(const Node& node) const {
    return std::any_of(node.operands.begin(), node.operands.end(),
                       [&](ValueId operand) { return held(operand).windowed; });
  }

  bool near_window(const Node& node) const {
    return follows_window(node) || to_window_[size_t(&node - from_.nodes.data())];
  }

  /// The permutation of the first operand that is not stored as written and fills the whole result.
  std::optional<Ints> operand_layout(const Node& node) const {
    for (ValueId operand : node.operands) {
      if (!held(operand).permutation.empty() && !is_identity(held(operand).permutation)) {
        return held(operand).permutation;
      }
    }
    return std::nullopt;
  }

  Held transpose(const Node& node) {
    const Held& h = held(node.operands[0]);
    const Ints& permutation = node.attrs.as<TransposeAttrs>().permutation;
    return {h.stored, h.permutation.empty() ? permutation : compose(h.permutation, permutation)};
  }

  Held elementwise(const Node& node, const Ints& layout) {
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) {
      bool scalar = from_.type(operand).tensor().rank() == 0;
      operands.push_back(scalar ? as_written(operand) : in_layout(operand, layout));
    }
    return {b_.emit(*node.op, operands, node.attrs), layout};
  }

  Held reduce(const Node& node, const Ints& layout) {
    ReduceAttrs attrs = node.attrs.as<ReduceAttrs>();
    for (int64_t& axis : attrs.axes) axis = layout[size_t(axis)];
    std::sort(attrs.axes.begin(), attrs.axes.end());
    // What remains: result dimension → place among the stored dimensions that stay.
    return {b_.emit(ops::reduce, {held(node.operands[0]).stored}, attrs),
            without(layout, attrs.axes)};
  }

  /// Dimensions of a value that are not 1, in the order in which memory has them.
  static Ints order_in_memory(const Shape& shape, const Ints& permutation) {
    Ints order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (!permutation.empty()) order = inverse(permutation);
    std::erase_if(order, [&](int64_t d) { return shape[size_t(d)] == Dim(1); });
    return order;
  }

  /// Whether a concatenation would move more to have its operands in the layout than to have them
  /// as written: new keys behind all earlier ones, say. Windows ask for their layout in any case.
  bool lies_as_written(const Node& node, const Ints& layout) const {
    if (near_window(node)) return false;
    int64_t in_layout = 0, as_written = 0;
    for (const ValueId operand : node.operands) {
      const TensorType& type = from_.type(operand).tensor();
      const int64_t elements = type.element_count().range(symbols_).max;
      const Ints order = order_in_memory(type.shape, held(operand).permutation);
      if (order != order_in_memory(type.shape, layout)) in_layout += elements;
      if (order != order_in_memory(type.shape, {})) as_written += elements;
    }
    return as_written < in_layout;
  }

  Held concat(const Node& node, const Ints& layout) {
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(in_layout(operand, layout));
    ConcatAttrs attrs{layout[size_t(node.attrs.as<ConcatAttrs>().axis)]};
    return {b_.emit(ops::concat, operands, attrs), layout};
  }

  Held pad(const Node& node, const Ints& layout) {
    if (held(node.operands[0]).permutation != layout) return plain(node);
    PadAttrs attrs = node.attrs.as<PadAttrs>();
    Ints order = inverse(layout);
    attrs.low = permuted(attrs.low, order);
    attrs.high = permuted(attrs.high, order);
    attrs.interior = permuted(attrs.interior, order);
    ValueId stored = held(node.operands[0]).stored;
    return {b_.emit(ops::pad, {stored, as_written(node.operands[1])}, attrs), layout};
  }

  Held slice(const Node& node, const Ints& layout) {
    SliceAttrs attrs = node.attrs.as<SliceAttrs>();
    Ints order = inverse(layout);
    attrs.start = permuted(attrs.start, order);
    attrs.limit = permuted(attrs.limit, order);
    attrs.stride = permuted(attrs.stride, order);
    return {b_.emit(ops::slice, {held(node.operands[0]).stored}, attrs), layout};
  }

  /// New dimensions are stored behind those they follow.
  Held broadcast(const Node& node, const Ints& layout) {
    const BroadcastAttrs& as_written = node.attrs.as<BroadcastAttrs>();
    const Ints order = inverse(layout);
    Ints permutation(as_written.shape.size());
    BroadcastAttrs attrs;
    const auto store = [&](size_t d) {
      permutation[d] = static_cast<int64_t>(attrs.shape.size());
      attrs.shape.push_back(as_written.shape[d]);
    };
    const auto store_from = [&](size_t d) {
      const auto is_new = [&](size_t other) {
        return std::find(as_written.dims.begin(), as_written.dims.end(), int64_t(other)) ==
               as_written.dims.end();
      };
      for (; d < as_written.shape.size() && is_new(d); ++d) store(d);
    };
    store_from(0);
    for (const int64_t d : permuted(as_written.dims, order)) {
      attrs.dims.push_back(static_cast<int64_t>(attrs.shape.size()));
      store(size_t(d));
      store_from(size_t(d) + 1);
    }
    return {b_.emit(ops::broadcast, {held(node.operands[0]).stored}, attrs), permutation};
  }

  /// Dimensions that are joined are stored side by side, where the innermost of them was; they are
  /// only brought there behind a window. Where parts of some are joined with parts of others,
  /// nothing is gained.
  Held reshape(const Node& node, const Ints& layout) {
    const Shape& from = from_.type(node.operands[0]).tensor().shape;
    const Shape& to = node.type.tensor().shape;
    const std::optional<std::vector<DimensionGroup>> groups = groups_of(from, to);
    const auto mixes = [](const DimensionGroup& group) {
      return group.from.size() > 1 && group.to.size() > 1;
    };
    if (!groups || std::any_of(groups->begin(), groups->end(), mixes)) return plain(node);
    std::vector<std::pair<int64_t, const DimensionGroup*>> places;
    for (const DimensionGroup& group : *groups) {
      int64_t last = 0;
      for (size_t d : group.from) last = std::max(last, layout[d]);
      places.emplace_back(last, &group);
    }
    std::sort(places.begin(), places.end());
    Ints order, permutation(to.size());
    Dims stored;
    for (const auto& [last, group] : places) {
      for (size_t d : group->from) order.push_back(layout[d]);
      for (size_t d : group->to) {
        permutation[d] = static_cast<int64_t>(stored.size());
        stored.push_back(to[d]);
      }
    }
    if (!is_identity(order) && !follows_window(node)) return plain(node);
    ValueId x = held(node.operands[0]).stored;
    if (!is_identity(order)) x = b_.emit(ops::transpose, {x}, TransposeAttrs{order});
    return {b_.emit(ops::reshape, {x}, ReshapeAttrs{stored}), permutation};
  }

  /// Whether a gather replaces one dimension by those places of it that a list of indices names, as
  /// resizing does.
  bool takes_along_one(const Node& node) const {
    const GatherAttrs& attrs = node.attrs.as<GatherAttrs>();
    const Shape& x = from_.type(node.operands[0]).tensor().shape;
    if (from_.type(node.operands[1]).tensor().rank() != 1 || attrs.index_vector_dim != 1) {
      return false;
    }
    if (attrs.start_index_map.size() != 1 || attrs.collapsed_slice_dims != attrs.start_index_map) {
      return false;
    }
    return attrs.offset_dims == all_but(attrs.start_index_map[0], x.size()) &&
           std::all_of(attrs.offset_dims.begin(), attrs.offset_dims.end(),
                       [&](int64_t d) { return attrs.slice_sizes[size_t(d)] == x[size_t(d)]; });
  }

  static Ints all_but(int64_t axis, size_t rank) {
    Ints result;
    for (int64_t d = 0; d < int64_t(rank); ++d) {
      if (d != axis) result.push_back(d);
    }
    return result;
  }

  Held take(const Node& node, const Ints& layout) {
    GatherAttrs attrs = node.attrs.as<GatherAttrs>();
    const int64_t axis = layout[size_t(attrs.start_index_map[0])];
    attrs.start_index_map = attrs.collapsed_slice_dims = {axis};
    attrs.offset_dims = all_but(axis, layout.size());
    attrs.slice_sizes = permuted(attrs.slice_sizes, inverse(layout));
    const ValueId stored = held(node.operands[0]).stored;
    return {b_.emit(ops::gather, {stored, as_written(node.operands[1])}, attrs), layout};
  }

  /// Operators whose attributes are a window over every dimension of their operands.
  static bool slides(const OpDef& op) {
    return &op == &ops::reduce_window || &op == &ops::arg_window || &op == &ops::gather_window ||
           &op == &ops::scatter_window;
  }

  /// Whether the elements of a window have the same row-major numbers in a layout.
  static bool keeps_numbers(const Node& node, const Ints& layout) {
    if (node.op == &ops::reduce_window) return true;
    int64_t last = -1;
    for (const AttrField& field : node.attrs.fields()) {
      if (field.name != "window") continue;
      const Ints& window = std::get<Ints>(field.value);
      for (size_t d = 0; d < window.size(); ++d) {
        if (window[d] == 1) continue;
        if (layout[d] < last) return false;
        last = layout[d];
      }
    }
    return true;
  }

  Held window(const Node& node, const Ints& layout) {
    const Ints order = inverse(layout);
    std::vector<AttrField> lists;  // all have one entry per dimension
    for (AttrField field : node.attrs.fields()) {
      if (Ints* ints = std::get_if<Ints>(&field.value)) {
        field.value = permuted(*ints, order);
      } else if (Dims* dims = std::get_if<Dims>(&field.value)) {
        field.value = permuted(*dims, order);
      } else {
        continue;
      }
      lists.push_back(field);
    }
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(in_layout(operand, layout));
    return {b_.emit(*node.op, operands, node.attrs.with(lists)), layout};
  }

  /// A window over dimensions 2… of a tensor in N, C, space order.
  static bool pools_space(const Node& node) {
    const ReduceWindowAttrs& attrs = node.attrs.as<ReduceWindowAttrs>();
    if (attrs.window.size() < 3 || attrs.window[0] != 1 || attrs.window[1] != 1) return false;
    return std::any_of(attrs.window.begin() + 2, attrs.window.end(),
                       [](int64_t w) { return w > 1; });
  }

  /// value[n, c, space…] = transpose(stored[n, space…, c], {0, rank - 1, 1, …}).
  static Ints channels_last(size_t rank) {
    Ints permutation{0, int64_t(rank) - 1};
    for (size_t i = 1; i + 1 < rank; ++i) permutation.push_back(int64_t(i));
    return permutation;
  }

  Held pool(const Node& node) {
    Held result = window(node, channels_last(node.type.tensor().shape.size()));
    result.windowed = true;
    return result;
  }

  /// The dimension numbers of an operand or result: two that are no spatial ones, and those.
  struct Roles {
    int64_t first, last;
    Ints spatial;

    /// The permutation that takes [first, space…, last] storage to the numbers as written.
    Ints layout() const {
      Ints permutation(spatial.size() + 2);
      permutation[size_t(first)] = 0;
      permutation[size_t(last)] = int64_t(spatial.size()) + 1;
      for (size_t i = 0; i < spatial.size(); ++i) permutation[size_t(spatial[i])] = int64_t(i) + 1;
      return permutation;
    }
  };

  /// The stored form of an operand; dimension numbers are those of the stored form from then on.
  ValueId as_stored(ValueId old, std::initializer_list<int64_t*> numbers, Ints& spatial) {
    const Held& h = held(old);
    if (h.permutation.empty()) return h.stored;
    for (int64_t* number : numbers) *number = h.permutation[size_t(*number)];
    for (int64_t& number : spatial) number = h.permutation[size_t(number)];
    return h.stored;
  }

  /// A convolution whose window is larger than its result is the gradient of a kernel: what it
  /// sums over is the batch, and features are what the other two numbers call batch.
  bool is_kernel_gradient(const Node& node, const ConvAttrs& attrs) const {
    const Shape& kernel = from_.type(node.operands[1]).tensor().shape;
    const Shape& result = node.type.tensor().shape;
    bool larger = !attrs.output_spatial.empty();
    for (size_t i = 0; i < attrs.output_spatial.size(); ++i) {
      const Dim& window = kernel[size_t(attrs.kernel_spatial[i])];
      const Dim& extent = result[size_t(attrs.output_spatial[i])];
      larger = larger && window.is_constant() && extent.is_constant() &&
               window.constant() >= extent.constant();
    }
    return larger && attrs.feature_groups == 1 && attrs.input_batch != 0;
  }

  Held conv(const Node& node) {
    ConvAttrs attrs = node.attrs.as<ConvAttrs>();
    const bool gradient = is_kernel_gradient(node, attrs);
    const Roles input{attrs.input_batch, attrs.input_feature, attrs.input_spatial};
    const Roles swapped{input.last, input.first, input.spatial};
    const Ints wanted = gradient ? swapped.layout() : input.layout();
    const ValueId x = in_layout(node.operands[0], wanted);
    const int64_t rank = static_cast<int64_t>(wanted.size());
    attrs.input_batch = gradient ? rank - 1 : 0;
    attrs.input_feature = gradient ? 0 : rank - 1;
    for (size_t i = 0; i < attrs.input_spatial.size(); ++i) {
      attrs.input_spatial[i] = int64_t(i) + 1;
    }
    const ValueId kernel = as_stored(node.operands[1], {&attrs.kernel_output, &attrs.kernel_input},
                                     attrs.kernel_spatial);
    if (gradient) return {b_.emit(ops::conv, {x, kernel}, attrs), {}};
    const Roles output{attrs.output_batch, attrs.output_feature, attrs.output_spatial};
    attrs.output_batch = 0;
    attrs.output_feature = rank - 1;
    attrs.output_spatial = attrs.input_spatial;
    return {b_.emit(ops::conv, {x, kernel}, attrs), output.layout(), true};
  }

  Held plain(const Node& node) {
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(as_written(operand));
    return {b_.emit(*node.op, operands, node.attrs), {}};
  }

  const Function& from_;
  const SymbolRanges& symbols_;
  Builder b_;
  std::vector<Held> held_;
  std::vector<bool> to_window_;
};

}  // namespace

Module assign_layout(const Module& module) {
  Module result = module;
  for (auto& [name, function] : result.functions) function = Layout(module, function).run();
  return result;
}

}  // namespace backcast
