// Lowering of gather and scatter (StableHLO's dimension numbers, see op_attrs.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/ops/ops.h"
#include "passes/lower/rule_table.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::Op;
using loop::Stmt;
using Indices = std::vector<Expr>;

bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// What gather and scatter share: result (or update) dimensions are window dimensions or places in
/// the index tensor; both give an address in the operand.
struct WindowNumbers {
  const Ints& window_dims;   // dimensions of the result that run inside the window
  const Ints& dropped_dims;  // operand dimensions without a window dimension
  const Ints& operand_batching;
  const Ints& indices_batching;
  const Ints& start_map;  // operand dimension of each index component
  int64_t index_vector_dim;
};

/// Start of the window (before clamping) and offset inside it, per operand dimension; an empty
/// start is 0.
struct Address {
  Indices start, offset;
};

template <class ReadIndex>
Address address(const WindowNumbers& numbers, int64_t operand_rank, const Indices& at,
                const ReadIndex& read_index) {
  Indices place, window;  // place: position in the index tensor less the index vector dimension
  for (size_t d = 0; d < at.size(); ++d) {
    (contains(numbers.window_dims, static_cast<int64_t>(d)) ? window : place).push_back(at[d]);
  }
  Address result{Indices(static_cast<size_t>(operand_rank)), {}};
  for (size_t component = 0; component < numbers.start_map.size(); ++component) {
    Indices from = place;
    if (numbers.index_vector_dim <= static_cast<int64_t>(place.size())) {
      from.insert(from.begin() + numbers.index_vector_dim, Expr(static_cast<int64_t>(component)));
    }
    result.start[static_cast<size_t>(numbers.start_map[component])] = read_index(from);
  }
  for (size_t j = 0; j < numbers.operand_batching.size(); ++j) {
    int64_t dim = numbers.indices_batching[j];
    int64_t position = dim > numbers.index_vector_dim ? dim - 1 : dim;
    result.start[static_cast<size_t>(numbers.operand_batching[j])] =
        place[static_cast<size_t>(position)];
  }
  size_t next = 0;
  for (int64_t d = 0; d < operand_rank; ++d) {
    bool dropped = contains(numbers.dropped_dims, d) || contains(numbers.operand_batching, d);
    result.offset.push_back(dropped ? Expr(0) : window[next++]);
  }
  return result;
}

/// Does an index type hold nothing that would have to be clamped?
bool is_always_inside(ElementType index, const Dim& extent, const Dim& size) {
  const Dim last = extent - size;
  return index == ElementType::u8 && last.is_constant() && last.constant() >= 255;
}

void lower_gather(KernelBuilder& k) {
  const GatherAttrs& attrs = k.attrs<GatherAttrs>();
  WindowNumbers numbers{attrs.offset_dims,           attrs.collapsed_slice_dims,
                        attrs.operand_batching_dims, attrs.indices_batching_dims,
                        attrs.start_index_map,       attrs.index_vector_dim};
  const Shape& shape = k.operand(0).shape;
  bool vector_is_element = attrs.index_vector_dim == k.operand(1).rank();
  k.map([&](const Indices& i) {
    Address address_of = address(numbers, k.operand(0).rank(), i, [&](Indices from) {
      if (vector_is_element) from.resize(k.operand(1).shape.size());
      return loop::cast({}, k.read(1, from));
    });
    Indices from;
    for (size_t d = 0; d < shape.size(); ++d) {
      Expr index = address_of.offset[d];
      if (address_of.start[d]) {
        bool inside = contains(attrs.operand_batching_dims, static_cast<int64_t>(d)) ||
                      is_always_inside(k.operand(1).element, shape[d], attrs.slice_sizes[d]);
        Expr last = loop::expr_of(shape[d]) - loop::expr_of(attrs.slice_sizes[d]);
        Expr start = address_of.start[d];
        if (!inside) start = loop::max(Expr(0), loop::min(start, last));
        index = start + index;
      }
      from.push_back(index);
    }
    return k.read(0, from);
  });
}

Expr combine(Combiner combiner, const Expr& old, const Expr& update) {
  switch (combiner) {
    case Combiner::assign:
      return update;
    case Combiner::add:
      return loop::binary(Op::add, old, update);
    case Combiner::mul:
      return loop::binary(Op::mul, old, update);
    case Combiner::min:
      return min_nan(old, update);
    case Combiner::max:
      return max_nan(old, update);
  }
  __builtin_unreachable();
}

void lower_scatter(KernelBuilder& k) {
  const ScatterAttrs& attrs = k.attrs<ScatterAttrs>();
  WindowNumbers numbers{attrs.update_window_dims,           attrs.inserted_window_dims,
                        attrs.input_batching_dims,          attrs.indices_batching_dims,
                        attrs.scatter_dims_to_operand_dims, attrs.index_vector_dim};
  const Shape& shape = k.result().shape;
  const Shape& updates = k.operand(2).shape;
  k.begin_with(0);

  const auto load = [&](int64_t operand, const Indices& at) {
    loop::Type stored{loop::scalar_of(k.operand(operand).element), 1};
    return loop::load(stored, fmt::format("a{}", operand),
                      loop::flat_index(k.operand(operand).shape, at));
  };
  std::vector<loop::Axis> axes = KernelBuilder::axes(updates, "u");
  Indices at = KernelBuilder::vars(axes);
  bool vector_is_element = attrs.index_vector_dim == k.operand(1).rank();
  std::vector<Stmt> starts;
  Address address_of = address(numbers, k.operand(0).rank(), at, [&](Indices from) {
    if (vector_is_element) from.resize(k.operand(1).shape.size());
    std::string name = fmt::format("start{}", starts.size());
    starts.push_back(loop::let(name, loop::cast({}, load(1, from))));
    return loop::var(name);
  });
  Indices to;
  Expr fits;  // the whole window: one that sticks out is left out
  size_t next = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    Expr index = address_of.offset[d];
    const bool dropped = contains(numbers.dropped_dims, static_cast<int64_t>(d)) ||
                         contains(numbers.operand_batching, static_cast<int64_t>(d));
    const Dim extent = dropped ? Dim(1) : updates[static_cast<size_t>(numbers.window_dims[next++])];
    if (address_of.start[d]) {
      const Expr start = address_of.start[d];
      index = start + index;
      Expr inside = (start >= Expr(0)) && (start < loop::expr_of(shape[d] - extent + Dim(1)));
      fits = fits ? (fits && inside) : inside;
    }
    to.push_back(index);
  }
  loop::Type stored{loop::scalar_of(k.result().element), 1};
  loop::Type type = compute_type(k.result().element);
  Expr flat = loop::flat_index(shape, to);
  const auto computed = [&](Expr e) { return stored == type ? e : loop::cast(type, e); };
  Expr old = computed(loop::load(stored, "out0", flat));
  Expr value = k.stored(combine(attrs.combiner, old, computed(load(2, at))));
  Stmt nest = loop::store("out0", flat, value);
  // Where a window lies is found once, outside of the loops over it.
  const auto find_place = [&] {
    starts.push_back(fits ? loop::if_branch(fits, nest) : nest);
    nest = loop::block(std::exchange(starts, {}));
  };
  const bool in_rows = !axes.empty() && !shape.empty() &&
                       contains(numbers.window_dims, static_cast<int64_t>(axes.size()) - 1) &&
                       !contains(numbers.dropped_dims, static_cast<int64_t>(shape.size()) - 1) &&
                       !contains(numbers.operand_batching, static_cast<int64_t>(shape.size()) - 1);
  for (size_t d = axes.size(); d-- > 0;) {
    if (std::any_of(starts.begin(), starts.end(), [&](const Stmt& start) {
          return start->kind == loop::StmtKind::let && mentions(start->exprs[0], axes[d].name);
        })) {
      find_place();
    }
    const bool is_row = in_rows && d + 1 == axes.size();
    nest = loop::for_loop(axes[d].name, Expr(0), axes[d].extent, nest,
                          is_row ? loop::ForKind::vectorized : loop::ForKind::serial);
  }
  if (!starts.empty()) find_place();
  k.statement(nest);
}

const LowerRow kRows[] = {
    {&ops::gather, lower_gather},
    {&ops::scatter, lower_scatter},
};

}  // namespace

std::span<const LowerRow> indexing_lowering() { return kRows; }

}  // namespace backcast
