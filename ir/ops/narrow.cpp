// Leaving indices out of what moves elements or works on each; the table of all operators.
#include "ir/ops/narrow.h"

#include <algorithm>

#include "ir/ops/narrow_rules.h"
#include "ir/ops/ops.h"
#include "ir/ops/pointwise.h"

namespace backcast {

namespace narrowing {

const TensorType& type_of(const NarrowContext& c, int value) {
  return value == kResult ? c.node.type.tensor() : *c.types[static_cast<size_t>(value)];
}

int64_t extent_of(const NarrowContext& c, int value, int64_t axis) {
  const Dim& dim = type_of(c, value).shape[static_cast<size_t>(axis)];
  return dim.is_constant() ? dim.constant() : -1;
}

void pin_all(const NarrowContext& c, int value, AxisRelations& r) {
  for (int64_t axis = 0; axis < type_of(c, value).rank(); ++axis) r.pin(value, axis);
}

void link_range(const NarrowContext& c, int a, int64_t a_axis, int64_t offset, int b,
                int64_t b_axis, AxisRelations& r) {
  const int64_t count = extent_of(c, b, b_axis);
  if (count < 0 || extent_of(c, a, a_axis) < 0) {
    r.pin(a, a_axis);
    r.pin(b, b_axis);
    return;
  }
  for (int64_t i = 0; i < count; ++i) r.link({a, a_axis, offset + i}, {b, b_axis, i});
}

void link_axis(const NarrowContext& c, int operand, int64_t axis, int64_t result_axis,
               AxisRelations& r) {
  link_range(c, operand, axis, 0, kResult, result_axis, r);
}

}  // namespace narrowing

namespace {

using namespace narrowing;  // NOLINT: this file's own

using Relate = void (*)(const NarrowContext&, AxisRelations&);
using Narrow = void (*)(const NarrowContext&, std::span<const KeptIndices>, const KeptIndices&,
                        Narrowed&);

void relate_elementwise(const NarrowContext& c, AxisRelations& r) {
  for (size_t k = 0; k < c.types.size(); ++k) {
    for (int64_t axis = 0; axis < c.types[k]->rank(); ++axis) {
      link_axis(c, static_cast<int>(k), axis, axis, r);
    }
  }
}

void narrow_elementwise(const NarrowContext& c, std::span<const KeptIndices>,
                        const KeptIndices& result, Narrowed& narrowed) {
  for (size_t k = 0; k < c.types.size(); ++k) {
    if (c.flexible[k] && c.types[k]->rank() != 0) narrowed.flexible[k] = result;
  }
}

void relate_transpose(const NarrowContext& c, AxisRelations& r) {
  const Ints& permutation = c.node.attrs.as<TransposeAttrs>().permutation;
  for (size_t d = 0; d < permutation.size(); ++d) {
    link_axis(c, 0, permutation[d], static_cast<int64_t>(d), r);
  }
}

void narrow_transpose(const NarrowContext& c, std::span<const KeptIndices>,
                      const KeptIndices& result, Narrowed& narrowed) {
  const Ints& permutation = c.node.attrs.as<TransposeAttrs>().permutation;
  for (const auto& [axis, kept] : result) {
    narrowed.flexible[0][permutation[static_cast<size_t>(axis)]] = kept;
  }
}

void relate_reverse(const NarrowContext& c, AxisRelations& r) {
  const Ints& reversed = c.node.attrs.as<ReverseAttrs>().axes;
  for (int64_t axis = 0; axis < c.types[0]->rank(); ++axis) {
    const bool turned = std::count(reversed.begin(), reversed.end(), axis) > 0;
    if (turned) r.pin(0, axis), r.pin(kResult, axis);
    if (!turned) link_axis(c, 0, axis, axis, r);
  }
}

void relate_slice(const NarrowContext& c, AxisRelations& r) {
  const SliceAttrs& attrs = c.node.attrs.as<SliceAttrs>();
  for (int64_t axis = 0; axis < c.types[0]->rank(); ++axis) {
    const size_t d = static_cast<size_t>(axis);
    if (attrs.start[d].is_constant() && attrs.stride[d] == 1) {
      link_range(c, 0, axis, attrs.start[d].constant(), kResult, axis, r);
    } else {
      r.pin(0, axis);
      r.pin(kResult, axis);
    }
  }
}

void narrow_slice(const NarrowContext& c, std::span<const KeptIndices> operands, const KeptIndices&,
                  Narrowed& narrowed) {
  SliceAttrs attrs = c.node.attrs.as<SliceAttrs>();
  for (const auto& [axis, kept] : operands[0]) {
    const size_t d = static_cast<size_t>(axis);
    const auto place = [&](const Dim& at) {
      return static_cast<int64_t>(std::lower_bound(kept.begin(), kept.end(), at.constant()) -
                                  kept.begin());
    };
    const int64_t start = place(attrs.start[d]), limit = place(attrs.limit[d]);
    attrs.start[d] = start;
    attrs.limit[d] = limit;
  }
  narrowed.attrs = attrs;
}

void relate_concat(const NarrowContext& c, AxisRelations& r) {
  const int64_t joined = c.node.attrs.as<ConcatAttrs>().axis;
  bool known = true;  // a constant part stays whole
  for (size_t k = 0; k < c.types.size(); ++k) {
    known = known && !c.flexible[k] && extent_of(c, static_cast<int>(k), joined) >= 0;
  }
  int64_t offset = 0;
  for (size_t k = 0; k < c.types.size(); ++k) {
    const int operand = static_cast<int>(k);
    for (int64_t axis = 0; axis < c.types[k]->rank(); ++axis) {
      if (axis != joined) {
        link_axis(c, operand, axis, axis, r);
      } else if (known) {
        link_range(c, kResult, axis, offset, operand, axis, r);
      } else {
        r.pin(operand, axis);
        r.pin(kResult, axis);
      }
    }
    offset += extent_of(c, operand, joined);
  }
}

void narrow_concat(const NarrowContext& c, std::span<const KeptIndices>, const KeptIndices& result,
                   Narrowed& narrowed) {
  for (size_t k = 0; k < c.types.size(); ++k) {
    if (c.flexible[k]) narrowed.flexible[k] = result;
  }
}

void relate_pad(const NarrowContext& c, AxisRelations& r) {
  const PadAttrs& attrs = c.node.attrs.as<PadAttrs>();
  for (int64_t axis = 0; axis < c.types[0]->rank(); ++axis) {
    const size_t d = static_cast<size_t>(axis);
    if (attrs.low[d] == Dim(0) && attrs.high[d] == Dim(0) && attrs.interior[d] == 0) {
      link_axis(c, 0, axis, axis, r);
    } else {
      r.pin(0, axis);
      r.pin(kResult, axis);
    }
  }
}

void relate_window(const NarrowContext& c, AxisRelations& r) {
  const ReduceWindowAttrs& attrs = c.node.attrs.as<ReduceWindowAttrs>();
  for (int64_t axis = 0; axis < c.types[0]->rank(); ++axis) {
    const size_t d = static_cast<size_t>(axis);
    if (attrs.window[d] == 1 && attrs.strides[d] == 1 && attrs.pad_low[d] == Dim(0) &&
        attrs.pad_high[d] == Dim(0)) {
      link_axis(c, 0, axis, axis, r);
    } else {
      r.pin(0, axis);
      r.pin(kResult, axis);
    }
  }
}

void relate_reduce(const NarrowContext& c, AxisRelations& r) {
  const Ints& axes = c.node.attrs.as<ReduceAttrs>().axes;
  int64_t to = 0;
  for (int64_t axis = 0; axis < c.types[0]->rank(); ++axis) {
    if (std::count(axes.begin(), axes.end(), axis)) {
      r.pin(0, axis);
    } else {
      link_axis(c, 0, axis, to++, r);
    }
  }
}

void relate_broadcast(const NarrowContext& c, AxisRelations& r) {
  const Ints& dims = c.node.attrs.as<BroadcastAttrs>().dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i);
    if (c.types[0]->shape[i] == c.node.type.tensor().shape[static_cast<size_t>(dims[i])]) {
      link_axis(c, 0, axis, dims[i], r);
    } else {
      r.pin(0, axis);
    }
  }
}

Dims shape_without(const NarrowContext& c, const KeptIndices& result) {
  Dims shape = c.node.type.tensor().shape;
  for (const auto& [axis, kept] : result) {
    shape[static_cast<size_t>(axis)] = static_cast<int64_t>(kept.size());
  }
  return shape;
}

void narrow_broadcast(const NarrowContext& c, std::span<const KeptIndices>,
                      const KeptIndices& result, Narrowed& narrowed) {
  BroadcastAttrs attrs = c.node.attrs.as<BroadcastAttrs>();
  attrs.shape = shape_without(c, result);
  narrowed.attrs = attrs;
  if (!c.flexible[0]) return;
  for (size_t i = 0; i < attrs.dims.size(); ++i) {
    const auto found = result.find(attrs.dims[i]);
    if (found == result.end() || c.types[0]->shape[i] == Dim(1)) continue;
    narrowed.flexible[0][static_cast<int64_t>(i)] = found->second;
  }
}

/// Dimensions [from, from_end) of the operand hold what one dimension of the result holds, or the
/// other way round: the longest of the several gives the indices, the others stay whole.
void relate_merged(const NarrowContext& c, int several, int64_t from, int64_t from_end, int one,
                   int64_t one_axis, AxisRelations& r) {
  int64_t chosen = from;
  for (int64_t axis = from; axis < from_end; ++axis) {
    if (extent_of(c, several, axis) >= extent_of(c, several, chosen)) chosen = axis;
  }
  int64_t inner = 1;
  for (int64_t axis = from; axis < from_end; ++axis) {
    if (axis != chosen) r.pin(several, axis);
    if (axis > chosen) inner *= extent_of(c, several, axis);
  }
  const int64_t extent = extent_of(c, several, chosen), count = extent_of(c, one, one_axis);
  for (int64_t i = 0; i < count; ++i) {
    r.link({several, chosen, i / inner % extent}, {one, one_axis, i});
  }
}

void relate_reshape(const NarrowContext& c, AxisRelations& r) {
  const Shape &from = c.types[0]->shape, &to = c.node.type.tensor().shape;
  const auto pin_rest = [&](int64_t i, int64_t j) {
    for (; i < static_cast<int64_t>(from.size()); ++i) r.pin(0, i);
    for (; j < static_cast<int64_t>(to.size()); ++j) r.pin(kResult, j);
  };
  int64_t i = 0, j = 0;
  while (i < static_cast<int64_t>(from.size()) && j < static_cast<int64_t>(to.size())) {
    if (from[size_t(i)] == to[size_t(j)]) {
      link_axis(c, 0, i++, j++, r);
      continue;
    }
    int64_t i_end = i, j_end = j, left = 1, right = 1;
    do {
      const bool take_left = left <= right && i_end < static_cast<int64_t>(from.size());
      if (!take_left && j_end == static_cast<int64_t>(to.size())) return pin_rest(i, j);
      const int64_t extent = take_left ? extent_of(c, 0, i_end++) : extent_of(c, kResult, j_end++);
      if (extent <= 0) return pin_rest(i, j);
      (take_left ? left : right) *= extent;
    } while (left != right);
    if (j_end == j) {
      r.pin(0, i);
    } else if (j_end == j + 1) {
      relate_merged(c, 0, i, i_end, kResult, j, r);
    } else if (i_end == i + 1) {
      relate_merged(c, kResult, j, j_end, 0, i, r);
    } else {
      for (int64_t axis = i; axis < i_end; ++axis) r.pin(0, axis);
      for (int64_t axis = j; axis < j_end; ++axis) r.pin(kResult, axis);
    }
    i = i_end;
    j = j_end;
  }
  pin_rest(i, j);
}

void narrow_reshape(const NarrowContext& c, std::span<const KeptIndices>, const KeptIndices& result,
                    Narrowed& narrowed) {
  narrowed.attrs = ReshapeAttrs{shape_without(c, result)};
}

struct Row {
  Relate relate;
  Narrow narrow;
  bool leaves_constants = false;  // a flexible operand stays as it is, and so does the result
};

const Row* row_of(const OpDef& op) {
  static const Row elementwise{relate_elementwise, narrow_elementwise};
  static const std::map<const OpDef*, Row> table{
      {&ops::transpose, {relate_transpose, narrow_transpose}},
      {&ops::reverse, {relate_reverse, nullptr, true}},
      {&ops::slice, {relate_slice, narrow_slice, true}},
      {&ops::concat, {relate_concat, narrow_concat}},
      {&ops::pad, {relate_pad, nullptr, true}},
      {&ops::reduce, {relate_reduce, nullptr, true}},
      {&ops::reduce_window, {relate_window, nullptr, true}},
      {&ops::broadcast, {relate_broadcast, narrow_broadcast}},
      {&ops::reshape, {relate_reshape, narrow_reshape, true}},
      {&ops::conv, {relate_conv, narrow_conv}},
      {&ops::dot_general, {relate_dot, narrow_dot}},
  };
  if (ops::is_pointwise(op)) return &elementwise;
  const auto found = table.find(&op);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace

void relate_axes(const NarrowContext& c, AxisRelations& relations) {
  const Row* row = row_of(*c.node.op);
  if (row != nullptr && !(row->leaves_constants && c.flexible[0])) {
    return row->relate(c, relations);
  }
  for (size_t k = 0; k < c.types.size(); ++k) pin_all(c, static_cast<int>(k), relations);
  pin_all(c, kResult, relations);
}

Narrowed narrow(const NarrowContext& c, std::span<const KeptIndices> operands,
                const KeptIndices& result) {
  Narrowed narrowed;
  narrowed.attrs = c.node.attrs;
  narrowed.flexible.resize(operands.size());
  const Row* row = row_of(*c.node.op);
  if (row != nullptr && row->narrow != nullptr) row->narrow(c, operands, result, narrowed);
  return narrowed;
}

Literal keep_indices(const Literal& literal, const KeptIndices& kept) {
  if (kept.empty()) return literal;
  std::vector<int64_t> shape = literal.shape();
  for (const auto& [axis, indices] : kept) {
    shape[static_cast<size_t>(axis)] = static_cast<int64_t>(indices.size());
  }
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const std::vector<int64_t> strides = row_major_strides(literal.shape());
  const size_t size = static_cast<size_t>(byte_size(literal.element()));
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      const int64_t at = rest % shape[d];
      rest /= shape[d];
      const auto found = kept.find(static_cast<int64_t>(d));
      from += (found == kept.end() ? at : found->second[static_cast<size_t>(at)]) * strides[d];
    }
    const std::byte* begin = literal.bytes().data() + static_cast<size_t>(from) * size;
    bytes.insert(bytes.end(), begin, begin + size);
  }
  return Literal(literal.element(), shape, std::move(bytes));
}

}  // namespace backcast
