// Lowering of the operators that move elements. What keeps the order of the bytes is a view.
#include <algorithm>

#include "ir/ops/ops.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::Op;
using Indices = std::vector<Expr>;

void lower_dimension(KernelBuilder& k) {
  Expr value = loop::expr_of(k.attrs<DimensionAttrs>().value);
  k.map([&](const Indices&) { return loop::cast({loop::Scalar::i64, 1}, value); });
}

void lower_iota(KernelBuilder& k) {
  const IotaAttrs& attrs = k.attrs<IotaAttrs>();
  loop::Type type = compute_type(attrs.element);
  k.map([&](const Indices& i) { return loop::cast(type, i[static_cast<size_t>(attrs.axis)]); });
}

void lower_broadcast(KernelBuilder& k) {
  const BroadcastAttrs& attrs = k.attrs<BroadcastAttrs>();
  if (k.operand(0).element_count() == k.result().element_count()) return k.view(0);
  k.map([&](const Indices& i) {
    Indices from;
    for (size_t d = 0; d < attrs.dims.size(); ++d) {
      bool stretched = k.operand(0).shape[d] == Dim(1);
      from.push_back(stretched ? Expr(0) : i[static_cast<size_t>(attrs.dims[d])]);
    }
    return k.read(0, from);
  });
}

void lower_reshape(KernelBuilder& k) { k.view(0); }

void lower_transpose(KernelBuilder& k) {
  const Ints& permutation = k.attrs<TransposeAttrs>().permutation;
  // The order of the bytes changes only when two dimensions larger than 1 change places.
  int64_t last = -1;
  bool moves = false;
  for (int64_t from : permutation) {
    if (k.operand(0).shape[static_cast<size_t>(from)] == Dim(1)) continue;
    moves = moves || from < last;
    last = from;
  }
  if (!moves) return k.view(0);
  k.map([&](const Indices& i) {
    Indices from(permutation.size());
    for (size_t d = 0; d < permutation.size(); ++d)
      from[static_cast<size_t>(permutation[d])] = i[d];
    return k.read(0, from);
  });
}

void lower_slice(KernelBuilder& k) {
  const SliceAttrs& attrs = k.attrs<SliceAttrs>();
  // A view when, after leading dimensions of extent 1, one dimension is cut and the rest is whole.
  Dim offset = 0;
  bool is_view = true, cut_seen = false;
  for (size_t d = 0; d < attrs.start.size(); ++d) {
    const Dim& extent = k.operand(0).shape[d];
    const Dim& result = k.result().shape[d];
    offset = offset * extent + attrs.start[d];
    bool whole = result == extent;
    if (cut_seen && !whole) is_view = false;
    if (!(result == Dim(1))) {
      if (attrs.stride[d] != 1) is_view = false;
      cut_seen = true;
    }
  }
  if (is_view) return k.view(0, offset);
  k.map([&](const Indices& i) {
    Indices from;
    for (size_t d = 0; d < i.size(); ++d) {
      from.push_back(loop::expr_of(attrs.start[d]) + i[d] * Expr(attrs.stride[d]));
    }
    return k.read(0, from);
  });
}

void lower_pad(KernelBuilder& k) {
  const PadAttrs& attrs = k.attrs<PadAttrs>();
  k.map([&](const Indices& i) {
    Indices from;
    Expr inside;
    const auto require = [&](Expr condition) {
      inside = inside ? (inside && condition) : condition;
    };
    for (size_t d = 0; d < i.size(); ++d) {
      int64_t step = attrs.interior[d] + 1;
      Expr extent = loop::expr_of(k.operand(0).shape[d]);
      Expr position = i[d] - loop::expr_of(attrs.low[d]);
      bool padded = !(attrs.low[d] == Dim(0) && attrs.high[d] == Dim(0));
      if (padded || step > 1) {
        require(position >= Expr(0));
        require(position < (extent - Expr(1)) * Expr(step) + Expr(1));
      }
      if (step > 1) {
        require(loop::binary(Op::eq, loop::floor_mod(position, Expr(step)), Expr(0)));
        position = loop::floor_div(position, Expr(step));
      }
      from.push_back(position);
    }
    Expr value = k.read(0, from);
    return inside ? loop::if_then_else(inside, value, k.read(1, {})) : value;
  });
}

void lower_concat(KernelBuilder& k) {
  size_t axis = static_cast<size_t>(k.attrs<ConcatAttrs>().axis);
  if (k.operand_count() == 1) return k.view(0);
  // Along the outermost dimension that counts the parts lie one after another.
  const Shape& shape = k.result().shape;
  if (std::all_of(shape.begin(), shape.begin() + static_cast<int64_t>(axis),
                  [](const Dim& extent) { return extent == Dim(1); })) {
    return k.join();
  }
  k.map([&](const Indices& i) {
    std::vector<Expr> ends;
    Dim end = 0;
    std::vector<Dim> begins;
    for (int64_t operand = 0; operand < k.operand_count(); ++operand) {
      begins.push_back(end);
      end = end + k.operand(operand).shape[axis];
      ends.push_back(loop::expr_of(end));
    }
    Expr value;
    for (int64_t operand = k.operand_count() - 1; operand >= 0; --operand) {
      Indices from = i;
      from[axis] = i[axis] - loop::expr_of(begins[static_cast<size_t>(operand)]);
      Expr part = k.read(operand, from);
      value = value ? loop::if_then_else(i[axis] < ends[static_cast<size_t>(operand)], part, value)
                    : part;
    }
    return value;
  });
}

/// The first rows lie where they lie.
void lower_prefix(KernelBuilder& k) {
  const Shape& shape = k.result().shape;
  const auto end = shape.begin() + k.attrs<PrefixAttrs>().axis;
  if (std::all_of(shape.begin(), end, [](const Dim& extent) { return extent == Dim(1); })) {
    return k.view(0);
  }
  k.map([&](const Indices& i) { return k.read(0, i); });
}

void lower_reverse(KernelBuilder& k) {
  k.map([&](const Indices& i) {
    Indices from = i;
    for (int64_t axis : k.attrs<ReverseAttrs>().axes) {
      size_t a = static_cast<size_t>(axis);
      from[a] = loop::expr_of(k.result().shape[a]) - Expr(1) - i[a];
    }
    return k.read(0, from);
  });
}

const LowerRow kRows[] = {
    {&ops::dimension, lower_dimension},   {&ops::iota, lower_iota},
    {&ops::broadcast, lower_broadcast},   {&ops::reshape, lower_reshape},
    {&ops::stop_gradient, lower_reshape}, {&ops::transpose, lower_transpose},
    {&ops::slice, lower_slice},           {&ops::pad, lower_pad},
    {&ops::concat, lower_concat},         {&ops::reverse, lower_reverse},
    {&ops::prefix, lower_prefix},
};

}  // namespace

std::span<const LowerRow> shape_lowering() { return kRows; }

}  // namespace backcast
