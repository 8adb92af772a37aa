// gather: windows of x at the places that an index tensor names (StableHLO gather).
#include "ir/ops/pointwise.h"
#include "ir/ops/window_numbers.h"

namespace backcast::ops {
namespace {

WindowNumbers numbers(const GatherAttrs& a) {
  return {a.offset_dims,           a.collapsed_slice_dims, a.operand_batching_dims,
          a.indices_batching_dims, a.start_index_map,      a.index_vector_dim};
}

Type infer_gather(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const TensorType& indices = c.tensor(1);
  const GatherAttrs& a = c.attrs.as<GatherAttrs>();
  int64_t places = indices.rank() - (a.index_vector_dim < indices.rank() ? 1 : 0);
  int64_t rank = places + static_cast<int64_t>(a.offset_dims.size());
  numbers(a).check(x, indices, rank);
  require_length(a.slice_sizes.size(), x.rank(), "slice_sizes");
  Shape window, place;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    int64_t axis = static_cast<int64_t>(d);
    require_extent(a.slice_sizes[d]);
    Dim spare = x.shape[d] - a.slice_sizes[d];
    require(!spare.is_constant() || spare.constant() >= 0, "a window of {} in an extent of {}",
            a.slice_sizes[d].to_string(), x.shape[d].to_string());
    bool dropped = WindowNumbers::contains(a.collapsed_slice_dims, axis) ||
                   WindowNumbers::contains(a.operand_batching_dims, axis);
    require(!dropped || a.slice_sizes[d] == Dim(1) || a.slice_sizes[d] == Dim(0),
            "dimension {} is dropped but its window has {} elements", axis,
            a.slice_sizes[d].to_string());
    if (!dropped) window.push_back(a.slice_sizes[d]);
  }
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != a.index_vector_dim) place.push_back(indices.shape[static_cast<size_t>(d)]);
  }
  TensorType result{x.element, {}};
  size_t next_window = 0, next_place = 0;
  for (int64_t d = 0; d < rank; ++d) {
    bool inside = WindowNumbers::contains(a.offset_dims, d);
    result.shape.push_back(inside ? window[next_window++] : place[next_place++]);
  }
  return result;
}

Value evaluate_gather(const EvalContext& c) {
  const GatherAttrs& a = c.node.attrs.as<GatherAttrs>();
  const Literal& x = c.tensor(0);
  TensorWriter out = result_writer(c);
  std::vector<int64_t> strides = row_major_strides(x.shape()), sizes = c.evaluate(a.slice_sizes);
  std::vector<int64_t> start, offset;
  int64_t i = 0;
  for (Odometer at(out.shape()); !at.done(); at.next()) {
    numbers(a).address(c.tensor(1), strides.size(), at.at(), start, offset);
    int64_t from = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      int64_t begin = std::clamp<int64_t>(start[d], 0, x.shape()[d] - sizes[d]);
      from += (begin + offset[d]) * strides[d];
    }
    out.copy(i++, x, from);
  }
  return out.finish();
}

}  // namespace

const OpDef gather = {
    .name = "gather",
    .documentation = "windows of x at the places that an index tensor names (StableHLO gather).",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = GatherAttrs{},
    .infer = infer_gather,
    .evaluate = evaluate_gather};

}  // namespace backcast::ops
