// scatter, gather's twin: x with windows of `updates` combined in, in row-major order of `updates`;
// a window that does not lie inside x is left out whole. Sums and products of floats accumulate in
// double and are rounded once. See ScatterAttrs for the dimension numbers.
#include <algorithm>

#include "ir/ops/index_adjoint.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

WindowNumbers numbers_of(const ScatterAttrs& attrs) {
  return {attrs.update_window_dims,           attrs.inserted_window_dims,
          attrs.input_batching_dims,          attrs.indices_batching_dims,
          attrs.scatter_dims_to_operand_dims, attrs.index_vector_dim};
}

Type infer_scatter(const InferContext& context) {
  const ScatterAttrs& attrs = context.attrs.as<ScatterAttrs>();
  const WindowNumbers numbers = numbers_of(attrs);
  check_window_numbers(context, numbers);
  require_same_element(context, 2, 0);
  const TensorType& x = context.tensor(0);
  const TensorType& updates = context.tensor(2);
  if (attrs.combiner == Combiner::add || attrs.combiner == Combiner::mul) {
    require_kind(context, 0, kNumeric);
  }
  if (updates.rank() != windowed_rank(context.tensor(1), numbers)) {
    fail("operand 2, the updates, must have {} dimensions and is {}",
         windowed_rank(context.tensor(1), numbers), to_string(updates));
  }
  const Shape places = place_shape(context.tensor(1).shape, attrs.index_vector_dim);
  const std::vector<size_t> kept = kept_dimensions(x.rank(), numbers);
  std::vector<bool> inside(updates.shape.size(), false);
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t d = static_cast<size_t>(attrs.update_window_dims[i]);
    inside[d] = true;
    if (always_negative(x.shape[kept[i]] - updates.shape[d], context.module.symbols)) {
      fail("window dimension {} of the updates {} is larger than dimension {} of {}", d,
           to_string(updates), kept[i], to_string(x));
    }
  }
  size_t next = 0;
  for (size_t d = 0; d < updates.shape.size(); ++d) {
    if (inside[d]) continue;
    const Dim& extent = places[next++];
    if (!(updates.shape[d] == extent)) {
      fail("dimension {} of the updates {} must be {}, as the indices {} have it", d,
           to_string(updates), extent.to_string(), to_string(context.tensor(1)));
    }
  }
  return x;
}

template <class T>
T combined(Combiner combiner, T old, T update) {
  switch (combiner) {
    case Combiner::assign:
      return update;
    case Combiner::add:
      return wrapping_add(old, update);
    case Combiner::mul:
      return wrapping_mul(old, update);
    case Combiner::min:
      return min_of(old, update);
    case Combiner::max:
      return max_of(old, update);
  }
  __builtin_unreachable();
}

template <class Codec>
void scatter_into(const EvalContext& context, const PlacedWindows& windows, ResultBuffer& result) {
  const Combiner combiner = context.node.attrs.as<ScatterAttrs>().combiner;
  const Literal& updates = context.tensor(2);
  const std::unique_ptr<typename Codec::Value[]> values = decode<Codec>(context.tensor(0));
  const typename Codec::Stored* from = updates.data<typename Codec::Stored>();
  Walk<2> walk(updates.shape(), {windows.place_strides, windows.window_strides});
  walk.each({0, 0}, [&](const auto& at) {
    const typename Codec::Value update = Codec::load(*from++);
    const int64_t start = windows.starts[static_cast<size_t>(at[0])];
    if (start < 0) return;
    typename Codec::Value& old = values[static_cast<size_t>(start + at[1])];
    old = combined(combiner, old, update);
  });
  encode<Codec>(values.get(), result);
}

Value evaluate_scatter(const EvalContext& context) {
  const ScatterAttrs& attrs = context.node.attrs.as<ScatterAttrs>();
  const Literal& x = context.tensor(0);
  const Literal& updates = context.tensor(2);
  if (updates.element_count() == 0 || x.element_count() == 0) return x;
  const WindowNumbers numbers = numbers_of(attrs);
  std::vector<int64_t> window(x.shape().size(), 1);
  const std::vector<size_t> kept = kept_dimensions(static_cast<int64_t>(x.shape().size()), numbers);
  for (size_t i = 0; i < kept.size(); ++i) {
    window[kept[i]] = updates.shape()[static_cast<size_t>(attrs.update_window_dims[i])];
    if (window[kept[i]] > x.shape()[kept[i]]) {
      fail("a window of {} does not fit dimension {} of {}", window[kept[i]], kept[i],
           to_string(x.type()));
    }
  }
  const PlacedWindows windows =
      place_windows(numbers, x.shape(), context.tensor(1), window, updates.shape(), Outside::skip);
  ResultBuffer result(x.element(), x.shape());
  visit_codec(x.element(),
              [&](auto codec) { scatter_into<decltype(codec)>(context, windows, result); });
  return result.finish();
}

/// The pieces that the gradients for all combiners are made of.
class ScatterGradient {
 public:
  explicit ScatterGradient(GradientContext& context)
      : attrs_(context.node.attrs.as<ScatterAttrs>()),
        x_(context.builder, context.operand(0)),
        indices_(context.builder, context.operand(1)),
        updates_(context.builder, context.operand(2)),
        y_(context.builder, context.result),
        windows_{numbers_of(attrs_), x_.shape(), Dims(x_.shape().size(), Dim(1))},
        inside_(indices_) {
    const std::vector<size_t> kept = kept_dimensions(x_.rank(), windows_.numbers);
    for (size_t i = 0; i < kept.size(); ++i) {
      windows_.window[kept[i]] =
          updates_.shape()[static_cast<size_t>(attrs_.update_window_dims[i])];
    }
    inside_ = clamped_indices(indices_, windows_);
  }

  const Val& x() const { return x_; }
  const Val& updates() const { return updates_; }
  const Val& y() const { return y_; }

  /// What lies in `value`, shaped like x, where each update went (or would have gone).
  Val gathered(const Val& value) const {
    const GatherAttrs attrs{attrs_.update_window_dims,
                            attrs_.inserted_window_dims,
                            attrs_.input_batching_dims,
                            attrs_.indices_batching_dims,
                            attrs_.scatter_dims_to_operand_dims,
                            attrs_.index_vector_dim,
                            windows_.window};
    return value.emit(ops::gather, {inside_}, attrs);
  }
  Val scattered(const Val& into, Combiner combiner, const Val& values) const {
    ScatterAttrs attrs = attrs_;
    attrs.combiner = combiner;
    return into.emit(ops::scatter, {indices_, values}, attrs);
  }
  /// Zero where the window was left out.
  Val if_inside(const Val& value) const {
    const std::optional<Val> fits = windows_inside(indices_, windows_);
    if (!fits) return value;
    Ints dims;
    for (int64_t d = 0; d < updates_.rank(); ++d) {
      const Ints& inner = attrs_.update_window_dims;
      if (std::find(inner.begin(), inner.end(), d) == inner.end()) dims.push_back(d);
    }
    return backcast::select(backcast::broadcast(*fits, updates_.shape(), dims), value,
                            zeros_like(value));
  }
  /// Zero where a later update overwrote this one, or its window was left out: the updates are
  /// numbered, and the numbers that are found where they were put have won.
  Val if_last(const Val& value) const {
    if (known_disjoint(indices_, windows_, updates_.shape())) return if_inside(value);
    const Dim count = updates_.type().element_count();
    const bool narrow = count.is_constant() && count.constant() < (int64_t{1} << 31);
    const ElementType element = narrow ? ElementType::i32 : ElementType::i64;
    Builder& builder = value.builder();
    const Val counted(builder, builder.emit(ops::iota, {}, IotaAttrs{element, {count}, 0}));
    const Val numbers = backcast::reshape(counted, updates_.shape());
    const Val nobody = backcast::broadcast(Val(builder, builder.scalar(element, -1)), x_.shape());
    const Val winners = gathered(scattered(nobody, Combiner::assign, numbers));
    return backcast::select(backcast::compare(winners, Comparison::eq, numbers), value,
                            zeros_like(value));
  }

 private:
  const ScatterAttrs& attrs_;
  Val x_, indices_, updates_, y_;
  IndexedWindows windows_;
  Val inside_;
};

/// y = x · Π u. A factor's adjoint is the product of the others: that of the factors that are not
/// zero, divided by the factor, where no factor is zero, or undivided for the only zero.
std::vector<Adjoint> gradient_of_product(const ScatterGradient& s, const Val& seed) {
  const Val ones = s.x().like(1);
  const Val is_zero = backcast::compare(s.updates(), Comparison::eq, 0);
  const Val factors = backcast::select(is_zero, s.updates().like(1), s.updates());
  const Val one_if_zero = backcast::select(is_zero, s.updates().like(1), zeros_like(s.updates()));
  const Val product = s.scattered(s.x(), Combiner::mul, factors);
  const Val zeros = s.gathered(s.scattered(zeros_like(s.x()), Combiner::add, one_if_zero));
  const Val scale = s.gathered(seed * product) / factors;
  const Val counts = backcast::compare(zeros, Comparison::eq, one_if_zero);
  return {seed * s.scattered(ones, Combiner::mul, s.updates()),
          {},
          s.if_inside(backcast::select(counts, scale, zeros_like(scale)))};
}

/// The operand and the updates that are the extreme share the adjoint equally.
std::vector<Adjoint> gradient_of_extreme(const ScatterGradient& s, const Val& seed) {
  const Val x_hits =
      backcast::cast(backcast::compare(s.x(), Comparison::eq, s.y()), seed.element());
  const Val update_hits = s.if_inside(backcast::cast(
      backcast::compare(s.updates(), Comparison::eq, s.gathered(s.y())), seed.element()));
  const Val hits = s.scattered(x_hits, Combiner::add, update_hits);
  const Val share = seed / backcast::max(hits, hits.like(1));  // NaN equals nothing
  return {share * x_hits, {}, s.gathered(share) * update_hits};
}

std::vector<Adjoint> gradient_of_scatter(GradientContext& context) {
  const ScatterGradient s(context);
  const Val seed(context.builder, context.seed());
  switch (context.node.attrs.as<ScatterAttrs>().combiner) {
    case Combiner::assign: {
      std::vector<Adjoint> result(3);
      if (context.wanted[0]) {
        result[0] = s.scattered(seed, Combiner::assign, zeros_like(s.updates()));
      }
      if (context.wanted[2]) result[2] = s.if_last(s.gathered(seed));
      return result;
    }
    case Combiner::add:
      if (!context.wanted[2]) return {seed};
      return {seed, {}, s.if_inside(s.gathered(seed))};
    case Combiner::mul:
      return gradient_of_product(s, seed);
    case Combiner::min:
    case Combiner::max:
      return gradient_of_extreme(s, seed);
  }
  __builtin_unreachable();
}

}  // namespace

const OpDef scatter = {
    .name = "scatter",
    .documentation =
        "The first operand with windows of the third combined in where the second, index "
        "vectors, says; windows that do not fit are left out.",
    .min_operands = 3,
    .max_operands = 3,
    .default_attrs = ScatterAttrs{},
    .infer = infer_scatter,
    .evaluate = evaluate_scatter,
    .gradient = gradient_of_scatter,
};

}  // namespace backcast::ops
