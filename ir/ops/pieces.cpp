// See pieces.h. Rules take the axis that pieces of an operand are of and give that of the result's.
#include "ir/ops/pieces.h"

#include <algorithm>
#include <functional>
#include <map>

#include "ir/ops/ops.h"
#include "ir/ops/pointwise.h"
#include "ir/ops/reduction.h"
#include "ir/ops/scan_layout.h"

namespace backcast {
namespace {

using Kind = OperandPieces::Kind;
using Result = std::optional<Pieces>;

const Shape& shape_of(const PiecesContext& c, size_t operand) {
  return c.function.type(c.node.operands[operand]).tensor().shape;
}
ElementType element_of(const PiecesContext& c, size_t operand) {
  return c.function.type(c.node.operands[operand]).tensor().element;
}
int64_t extent(const Dims& dims, int64_t axis) {
  return dims[static_cast<size_t>(axis)].constant();
}

bool contains(const Ints& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}
int64_t index_of(const Ints& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) - axes.begin();
}
template <class Values>
auto& at(Values& values, int64_t i) {
  return values[static_cast<size_t>(i)];
}

/// The node with all operands whole and a result of one tensor.
Pieces whole_operands(const PiecesContext& c, int64_t result_axis) {
  Pieces pieces;
  pieces.operands.resize(c.node.operands.size());
  pieces.axes = {result_axis};
  return pieces;
}

/// Of one operand, by its only pieces.
Pieces of_first(const PiecesContext& c, int64_t result_axis, Reach reach = {}) {
  Pieces pieces = whole_operands(c, result_axis);
  pieces.operands[0] = {Kind::pieces, c.axes[0], reach, {}};
  return pieces;
}

/// The elements in front of the first position, where any of them is read.
void pad_with(Pieces& pieces, const Literal& value) {
  if (pieces.operands[0].reach.before > 0) pieces.operands[0].padding = value;
}

bool others_are_whole(const PiecesContext& c) {
  return std::all_of(c.axes.begin() + 1, c.axes.end(), [](int64_t axis) { return axis < 0; });
}

/// Operands side by side: all of them along one axis, or the same along it.
Result side_by_side(const PiecesContext& c) {
  Pieces pieces = whole_operands(c, -1);
  for (const int64_t axis : c.axes) {
    if (axis < 0) continue;
    if (pieces.axes[0] >= 0 && pieces.axes[0] != axis) return std::nullopt;
    pieces.axes[0] = axis;
  }
  for (size_t k = 0; k < c.axes.size(); ++k) {
    if (shape_of(c, k).empty()) continue;
    pieces.operands[k].kind = c.axes[k] < 0 ? Kind::same : Kind::pieces;
    pieces.operands[k].axis = pieces.axes[0];
  }
  return pieces;
}

Result concat_pieces(const PiecesContext& c) {
  Result pieces = side_by_side(c);
  if (pieces && pieces->axes[0] == c.node.attrs.as<ConcatAttrs>().axis) return std::nullopt;
  return pieces;
}

Result broadcast_pieces(const PiecesContext& c) {
  const int64_t to = c.node.attrs.as<BroadcastAttrs>().dims[static_cast<size_t>(c.axes[0])];
  const bool repeats = extent(shape_of(c, 0), c.axes[0]) != extent(c.node.type.tensor().shape, to);
  return repeats ? std::nullopt : Result(of_first(c, to));
}

Result transpose_pieces(const PiecesContext& c) {
  return of_first(c, index_of(c.node.attrs.as<TransposeAttrs>().permutation, c.axes[0]));
}

/// The axis may take part of what follows, or leave part of itself to it.
Result reshape_pieces(const PiecesContext& c) {
  const Shape &from = shape_of(c, 0), &to = c.node.type.tensor().shape;
  const int64_t count = extent(from, c.axes[0]);
  int64_t before = 1, passed = 1;
  for (int64_t d = 0; d < c.axes[0]; ++d) before *= extent(from, d);
  Result found;
  for (int64_t d = 0; d < static_cast<int64_t>(to.size()) && passed <= before; ++d) {
    const int64_t here = extent(to, d);
    if (here <= 0 || count <= 0) return std::nullopt;
    if (passed == before) {
      if (here == count) return of_first(c, d);
      if (!found && here > 1 && here % count == 0) {
        found = of_first(c, d, {.dilation = here / count});
      } else if (!found && here > 1 && count % here == 0) {
        found = of_first(c, d, {.reach = count / here, .stride = count / here});
      }
    }
    passed *= here;
  }
  return found;
}

/// A result of one position moves by nothing.
int64_t stride_along(const PiecesContext& c, int64_t axis, int64_t stride) {
  return extent(c.node.type.tensor().shape, axis) == 1 ? 1 : stride;
}

Result slice_pieces(const PiecesContext& c) {
  const SliceAttrs& attrs = c.node.attrs.as<SliceAttrs>();
  const size_t d = static_cast<size_t>(c.axes[0]);
  return of_first(c, c.axes[0],
                  {.stride = stride_along(c, c.axes[0], attrs.stride[d]),
                   .before = -attrs.start[d].constant()});
}

Result pad_pieces(const PiecesContext& c) {
  const PadAttrs& attrs = c.node.attrs.as<PadAttrs>();
  const size_t d = static_cast<size_t>(c.axes[0]);
  const Node& value = c.function.node(c.node.operands[1]);
  Pieces pieces = of_first(c, c.axes[0],
                           {.before = attrs.low[d].constant(), .dilation = attrs.interior[d] + 1});
  if (value.op == &ops::constant) {
    pad_with(pieces, value.attrs.as<ConstantAttrs>().value);
    pieces.operands[0].fills = true;
  } else if (attrs.low[d].constant() > 0) {
    return std::nullopt;
  }
  return pieces;
}

Result reverse_pieces(const PiecesContext& c) {
  if (contains(c.node.attrs.as<ReverseAttrs>().axes, c.axes[0])) return std::nullopt;
  return of_first(c, c.axes[0]);
}

Result gather_pieces(const PiecesContext& c) {
  const GatherAttrs& attrs = c.node.attrs.as<GatherAttrs>();
  const int64_t rank = c.node.type.tensor().rank();
  Ints windows, batch;  // dimensions of the result
  for (int64_t d = 0; d < rank; ++d)
    (contains(attrs.offset_dims, d) ? windows : batch).push_back(d);
  if (c.axes[0] < 0) {
    const int64_t axis = c.axes[1];
    if (axis == attrs.index_vector_dim || contains(attrs.indices_batching_dims, axis)) {
      return std::nullopt;
    }
    Pieces pieces = whole_operands(c, at(batch, axis - (axis > attrs.index_vector_dim)));
    pieces.operands[1] = {Kind::pieces, axis, {}, {}};
    return pieces;
  }
  const int64_t axis = c.axes[0];
  int64_t before = 0;  // window dimensions in front
  for (int64_t d = 0; d <= axis; ++d) {
    const bool gone =
        contains(attrs.collapsed_slice_dims, d) || contains(attrs.operand_batching_dims, d);
    if (gone && d == axis) return std::nullopt;
    before += !gone && d < axis;
  }
  const bool whole = extent(attrs.slice_sizes, axis) == extent(shape_of(c, 0), axis);
  if (c.axes[1] >= 0 || !whole || contains(attrs.start_index_map, axis)) return std::nullopt;
  return of_first(c, at(windows, before));
}

Result dot_pieces(const PiecesContext& c) {
  const DotGeneralAttrs& attrs = c.node.attrs.as<DotGeneralAttrs>();
  const Ints* const batch[] = {&attrs.lhs_batch, &attrs.rhs_batch};
  const Ints* const contract[] = {&attrs.lhs_contract, &attrs.rhs_contract};
  Pieces pieces = whole_operands(c, -1);
  for (size_t k = 0; k < 2; ++k) {
    if (c.axes[k] < 0) continue;
    if (contains(*contract[k], c.axes[k])) return std::nullopt;
    int64_t to = index_of(*batch[k], c.axes[k]);
    const bool batched = contains(*batch[k], c.axes[k]);
    if (!batched) {
      to = static_cast<int64_t>(batch[k]->size());
      const int64_t lhs_rank = static_cast<int64_t>(shape_of(c, 0).size());
      if (k == 1) to = lhs_rank - static_cast<int64_t>(contract[0]->size());
      for (int64_t d = 0; d < c.axes[k]; ++d) {
        to += !contains(*batch[k], d) && !contains(*contract[k], d);
      }
    } else {
      // The other side's batch goes along.
      pieces.operands[1 - k] = {Kind::same, (*batch[1 - k])[static_cast<size_t>(to)], {}, {}};
    }
    if (pieces.axes[0] >= 0 && pieces.axes[0] != to) return std::nullopt;
    pieces.axes[0] = to;
  }
  for (size_t k = 0; k < 2; ++k) {
    if (c.axes[k] >= 0) pieces.operands[k] = {Kind::pieces, c.axes[k], {}, {}};
  }
  return pieces;
}

Result conv_pieces(const PiecesContext& c) {
  const ConvAttrs& attrs = c.node.attrs.as<ConvAttrs>();
  if (c.axes[1] >= 0) return std::nullopt;
  if (c.axes[0] == attrs.input_batch && attrs.batch_groups == 1) {
    return of_first(c, attrs.output_batch);
  }
  if (!contains(attrs.input_spatial, c.axes[0])) return std::nullopt;
  const size_t i = static_cast<size_t>(index_of(attrs.input_spatial, c.axes[0]));
  const int64_t taps = extent(shape_of(c, 1), attrs.kernel_spatial[i]);
  if (taps < 1) return std::nullopt;
  Pieces pieces = of_first(c, attrs.output_spatial[i],
                           {.reach = (taps - 1) * attrs.kernel_dilation[i] + 1,
                            .stride = stride_along(c, attrs.output_spatial[i], attrs.strides[i]),
                            .before = attrs.pad_low[i].constant(),
                            .dilation = attrs.input_dilation[i]});
  pad_with(pieces, Literal::scalar(element_of(c, 0), 0));
  return pieces;
}

Result reduce_window_pieces(const PiecesContext& c) {
  const ReduceWindowAttrs& attrs = c.node.attrs.as<ReduceWindowAttrs>();
  const size_t d = static_cast<size_t>(c.axes[0]);
  Pieces pieces = of_first(c, c.axes[0],
                           {.reach = (attrs.window[d] - 1) * attrs.dilation[d] + 1,
                            .stride = stride_along(c, c.axes[0], attrs.strides[d]),
                            .before = attrs.pad_low[d].constant()});
  ops::visit_codec(element_of(c, 0), [&](auto codec) {
    using T = typename decltype(codec)::Value;
    const T identity = ops::reduction_identity<T>(attrs.kind);
    ops::ResultBuffer value(element_of(c, 0), {});
    ops::encode<decltype(codec)>(&identity, value);
    pad_with(pieces, value.finish());
  });
  return pieces;
}

template <class A>
Result reduced(const PiecesContext& c, const A& axes) {
  if (contains(axes, c.axes[0])) return std::nullopt;
  return of_first(c, c.axes[0] - std::count_if(axes.begin(), axes.end(),
                                               [&](int64_t axis) { return axis < c.axes[0]; }));
}

Result reduce_pieces(const PiecesContext& c) {
  return reduced(c, c.node.attrs.as<ReduceAttrs>().axes);
}

Result arg_reduce_pieces(const PiecesContext& c) {
  return reduced(c, Ints{c.node.attrs.as<ArgReduceAttrs>().axis});
}

Result cumulative_pieces(const PiecesContext& c) {
  if (c.node.attrs.as<CumulativeAttrs>().axis == c.axes[0]) return std::nullopt;
  return of_first(c, c.axes[0]);
}

/// What it carries stays, trip by trip.
Result scan_pieces(const PiecesContext& c) {
  const ScanAttrs& attrs = c.node.attrs.as<ScanAttrs>();
  const ops::ScanLayout layout = ops::scan_layout(c.node);
  const Node& trips = c.function.node(c.node.operands[0]);
  if (attrs.reverse || attrs.conditional || attrs.trajectory || trips.op != &ops::constant ||
      trips.attrs.as<ConstantAttrs>().value.as_int(0) < attrs.length.constant()) {
    return std::nullopt;
  }
  Pieces pieces = whole_operands(c, -1);
  for (int64_t k = 0; k < static_cast<int64_t>(c.axes.size()); ++k) {
    const int64_t axis = c.axes[static_cast<size_t>(k)];
    const bool scanned = k >= layout.first_x() && k < layout.first_invariant();
    if (axis > 0 || (axis == 0 && !scanned)) return std::nullopt;
    if (scanned) at(pieces.operands, k) = {axis < 0 ? Kind::same : Kind::pieces, 0, {}, {}};
  }
  pieces.axes.assign(static_cast<size_t>(layout.carries + layout.ys), 0);
  for (int64_t i = 0; i < layout.carries; ++i) {
    at(pieces.axes, i) = -1;
    pieces.carried.push_back({static_cast<size_t>(i + 1), static_cast<size_t>(i)});
  }
  pieces.count = 0;
  return pieces;
}

Attrs piece_of_window(const PiecesContext& c, const Pieces& pieces, const PieceExtents&) {
  ReduceWindowAttrs attrs = c.node.attrs.as<ReduceWindowAttrs>();
  at(attrs.strides, pieces.axes[0]) = pieces.operands[0].reach.stride;
  at(attrs.pad_low, pieces.axes[0]) = at(attrs.pad_high, pieces.axes[0]) = 0;
  return attrs;
}

Attrs piece_of_conv(const PiecesContext& c, const Pieces& pieces, const PieceExtents& extents) {
  ConvAttrs attrs = c.node.attrs.as<ConvAttrs>();
  if (c.axes[0] == attrs.input_batch) return attrs;
  const int64_t i = index_of(attrs.input_spatial, c.axes[0]);
  at(attrs.strides, i) = pieces.operands[0].reach.stride;
  at(attrs.pad_low, i) = extents.pad_low;
  at(attrs.pad_high, i) = extents.pad_high;
  return attrs;
}

Attrs piece_of_pad(const PiecesContext& c, const Pieces& pieces, const PieceExtents& extents) {
  PadAttrs attrs = c.node.attrs.as<PadAttrs>();
  at(attrs.low, pieces.axes[0]) = extents.pad_low;
  at(attrs.high, pieces.axes[0]) = extents.pad_high;
  return attrs;
}

Attrs piece_of_slice(const PiecesContext& c, const Pieces& pieces, const PieceExtents& extents) {
  SliceAttrs attrs = c.node.attrs.as<SliceAttrs>();
  at(attrs.start, pieces.axes[0]) = 0;
  at(attrs.stride, pieces.axes[0]) = pieces.operands[0].reach.stride;
  at(attrs.limit, pieces.axes[0]) = extents.operand;
  return attrs;
}

template <class A>
Attrs piece_of_shape(const PiecesContext& c, const Pieces& pieces, const PieceExtents& extents) {
  A attrs = c.node.attrs.as<A>();
  at(attrs.shape, pieces.axes[0]) = extents.result;
  return attrs;
}

Attrs piece_of_gather(const PiecesContext& c, const Pieces&, const PieceExtents& extents) {
  GatherAttrs attrs = c.node.attrs.as<GatherAttrs>();
  if (c.axes[0] >= 0) at(attrs.slice_sizes, c.axes[0]) = extents.operand;
  return attrs;
}

Attrs piece_of_scan(const PiecesContext& c, const Pieces&, const PieceExtents& extents) {
  ScanAttrs attrs = c.node.attrs.as<ScanAttrs>();
  attrs.length = extents.result;
  return attrs;
}

struct Row {
  Result (*pieces)(const PiecesContext&);
  Attrs (*attrs)(const PiecesContext&, const Pieces&, const PieceExtents&) = nullptr;
  bool by_first = false;  // its first operand alone may come in pieces
};

const Row* row_of(const OpDef& op) {
  static const Row pointwise{side_by_side};
  static const std::map<const OpDef*, Row> table{
      {&ops::broadcast, {broadcast_pieces, piece_of_shape<BroadcastAttrs>, true}},
      {&ops::reshape, {reshape_pieces, piece_of_shape<ReshapeAttrs>, true}},
      {&ops::transpose, {transpose_pieces, nullptr, true}},
      {&ops::slice, {slice_pieces, piece_of_slice, true}},
      {&ops::pad, {pad_pieces, piece_of_pad, true}},
      {&ops::concat, {concat_pieces}},
      {&ops::reverse, {reverse_pieces, nullptr, true}},
      {&ops::gather, {gather_pieces, piece_of_gather}},
      {&ops::dot_general, {dot_pieces}},
      {&ops::conv, {conv_pieces, piece_of_conv, true}},
      {&ops::reduce, {reduce_pieces, nullptr, true}},
      {&ops::arg_reduce, {arg_reduce_pieces, nullptr, true}},
      {&ops::reduce_window, {reduce_window_pieces, piece_of_window, true}},
      {&ops::cumulative, {cumulative_pieces, nullptr, true}},
      {&ops::scan, {scan_pieces, piece_of_scan}},
  };
  if (ops::is_pointwise(op)) return &pointwise;
  const auto found = table.find(&op);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace

std::optional<Pieces> pieces_of(const PiecesContext& context) {
  const Row* row = row_of(*context.node.op);
  if (row == nullptr) return std::nullopt;
  if (row->by_first && (context.axes[0] < 0 || !others_are_whole(context))) return std::nullopt;
  return row->pieces(context);
}

Attrs attrs_of_piece(const PiecesContext& context, const Pieces& pieces,
                     const PieceExtents& extents) {
  const Row* row = row_of(*context.node.op);
  if (row->attrs == nullptr) return context.node.attrs;
  return row->attrs(context, pieces, extents);
}

namespace {

/// Windows along the other axes, then along this one, where fewer elements are left of them.
std::optional<PartsInTurn> windows_in_turn(const PiecesContext& c, const ReduceWindowAttrs& whole) {
  const Shape &from = shape_of(c, 0), &to = c.node.type.tensor().shape;
  ReduceWindowAttrs first = whole, second = whole;
  int64_t before = 1, behind = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d) {
    ReduceWindowAttrs& other = d == c.axes[0] ? first : second;
    at(other.window, d) = at(other.strides, d) = at(other.dilation, d) = 1;
    at(other.pad_low, d) = at(other.pad_high, d) = 0;
    if (d == c.axes[0]) continue;
    before *= extent(from, d);
    behind *= extent(to, d);
  }
  if (at(whole.window, c.axes[0]) == 1 || before < 2 * behind) return std::nullopt;
  return PartsInTurn{first, second};
}

}  // namespace

std::optional<PartsInTurn> parts_in_turn(const PiecesContext& context) {
  if (context.axes.size() != 1 || context.axes[0] < 0) return std::nullopt;
  const ReduceWindowAttrs* windows = context.node.attrs.get_if<ReduceWindowAttrs>();
  if (windows != nullptr && context.node.op == &ops::reduce_window) {
    return windows_in_turn(context, *windows);
  }
  const ReduceAttrs* attrs = context.node.attrs.get_if<ReduceAttrs>();
  if (attrs == nullptr || attrs->axes.size() < 2) return std::nullopt;
  ReduceAttrs first = *attrs, second = *attrs;
  std::erase(first.axes, context.axes[0]);
  if (first.axes.size() == attrs->axes.size()) return std::nullopt;
  const auto gone = std::count_if(first.axes.begin(), first.axes.end(),
                                  [&](int64_t axis) { return axis < context.axes[0]; });
  second.axes = {context.axes[0] - gone};
  return PartsInTurn{first, second};
}

}  // namespace backcast
