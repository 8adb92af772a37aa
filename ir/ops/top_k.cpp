// top_k: tuple of the k largest (or smallest) elements along an axis and their i64 positions,
// best first.
#include <algorithm>
#include <numeric>

#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_top_k(const InferContext& c) {
  TensorType values = c.tensor(0);
  const TopKAttrs& attrs = c.attrs.as<TopKAttrs>();
  require_axis(attrs.axis, values.rank());
  Dim& extent = values.shape[static_cast<size_t>(attrs.axis)];
  require_extent(attrs.k);
  Dim spare = extent - attrs.k;
  require(!spare.is_constant() || spare.constant() >= 0, "k is {}, the extent {}",
          attrs.k.to_string(), extent.to_string());
  extent = attrs.k;
  return Type::tuple({values, TensorType{ElementType::i64, values.shape}});
}

Value evaluate_top_k(const EvalContext& c) {
  const TopKAttrs& attrs = c.node.attrs.as<TopKAttrs>();
  const Literal& x = c.tensor(0);
  size_t axis = static_cast<size_t>(attrs.axis);
  std::vector<int64_t> shape = x.shape(), rows = x.shape();
  int64_t k = attrs.k.evaluate(c.symbols), extent = shape[axis];
  shape[axis] = k;
  rows[axis] = 1;
  TensorWriter values(x.element(), shape), positions(ElementType::i64, shape);
  std::vector<int64_t> from = row_major_strides(x.shape()), to = row_major_strides(shape);
  visit_compute_type(x.element(), [&]<class T>(T) {
    for (Odometer at(rows); !at.done(); at.next()) {
      std::vector<int64_t> order(static_cast<size_t>(extent));
      std::iota(order.begin(), order.end(), 0);
      const auto value = [&](int64_t i) { return element<T>(x, at.flat(from) + i * from[axis]); };
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return attrs.largest ? value(a) > value(b) : value(a) < value(b);
      });
      for (int64_t i = 0; i < k; ++i) {
        int64_t place = at.flat(to) + i * to[axis];
        values.copy(place, x, at.flat(from) + order[static_cast<size_t>(i)] * from[axis]);
        positions.set(place, order[static_cast<size_t>(i)]);
      }
    }
  });
  return Value::make_tuple({values.finish(), positions.finish()});
}

}  // namespace

const OpDef top_k = {.name = "top_k",
                     .documentation =
                         "tuple of the k largest (or smallest) elements along an axis and their "
                         "i64 positions, best first.",
                     .min_operands = 1,
                     .max_operands = 1,
                     .default_attrs = TopKAttrs{},
                     .infer = infer_top_k,
                     .evaluate = evaluate_top_k};

}  // namespace backcast::ops
