// scatter: x with windows of updates combined in at the places that an index tensor names.
#include "ir/ops/pointwise.h"
#include "ir/ops/window_numbers.h"

namespace backcast::ops {
namespace {

WindowNumbers numbers(const ScatterAttrs& a) {
  return {a.update_window_dims,    a.inserted_window_dims,         a.input_batching_dims,
          a.indices_batching_dims, a.scatter_dims_to_operand_dims, a.index_vector_dim};
}

Type infer_scatter(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const TensorType& indices = c.tensor(1);
  const TensorType& updates = c.tensor(2);
  const ScatterAttrs& a = c.attrs.as<ScatterAttrs>();
  require(x.element == updates.element, "updates of {} into {}", to_string(updates), to_string(x));
  require(a.combiner == Combiner::assign || x.element != ElementType::boolean,
          "bools can only be assigned");
  numbers(a).check(x, indices, updates.rank());
  size_t next = 0;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (WindowNumbers::contains(a.update_window_dims, d)) continue;
    if (static_cast<int64_t>(next) == a.index_vector_dim) ++next;
    require(updates.shape[static_cast<size_t>(d)] == indices.shape[next++],
            "updates {} do not fit indices {}", to_string(updates), to_string(indices));
  }
  return x;
}

template <class T>
T combined(Combiner combiner, T old, T update) {
  if constexpr (std::is_same_v<T, bool>) {
    return update;
  } else {
    switch (combiner) {
      case Combiner::assign:
        return update;
      case Combiner::add:
        if constexpr (std::is_floating_point_v<T>)
          return old + update;
        else
          return static_cast<T>(wrap(old) + wrap(update));
      case Combiner::mul:
        if constexpr (std::is_floating_point_v<T>)
          return old * update;
        else
          return static_cast<T>(wrap(old) * wrap(update));
      case Combiner::min:
        return old != old || old < update ? old : update;
      case Combiner::max:
        return old != old || old > update ? old : update;
    }
    return update;
  }
}

Value evaluate_scatter(const EvalContext& c) {
  const ScatterAttrs& a = c.node.attrs.as<ScatterAttrs>();
  const Literal& x = c.tensor(0);
  const Literal& updates = c.tensor(2);
  TensorWriter out = result_writer(c);
  for (int64_t i = 0; i < out.count(); ++i) out.copy(i, x, i);
  std::vector<int64_t> strides = row_major_strides(x.shape()), start, offset;
  visit_compute_type(x.element(), [&]<class T>(T) {
    std::vector<T> values;
    for (int64_t i = 0; i < out.count(); ++i) values.push_back(element<T>(x, i));
    int64_t i = -1;
    for (Odometer at(updates.shape()); !at.done(); at.next()) {
      ++i;
      numbers(a).address(c.tensor(1), strides.size(), at.at(), start, offset);
      int64_t to = 0;
      bool inside = true;
      for (size_t d = 0; d < strides.size(); ++d) {
        int64_t position = start[d] + offset[d];
        inside = inside && position >= 0 && position < x.shape()[d];
        to += position * strides[d];
      }
      if (!inside) continue;
      T value = combined<T>(a.combiner, values[static_cast<size_t>(to)], element<T>(updates, i));
      values[static_cast<size_t>(to)] = value;
      out.set(to, value);
    }
  });
  return out.finish();
}

}  // namespace

const OpDef scatter = {
    .name = "scatter",
    .documentation =
        "x with windows of updates combined in at the places that an index tensor names.",
    .min_operands = 3,
    .max_operands = 3,
    .default_attrs = ScatterAttrs{},
    .infer = infer_scatter,
    .evaluate = evaluate_scatter};

}  // namespace backcast::ops
