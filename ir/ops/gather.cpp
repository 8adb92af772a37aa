// gather, as StableHLO's: windows of x, of extents slice_sizes, that start at index vectors; the
// starts are clamped so that every window lies inside x. See GatherAttrs for the dimension numbers.
#include "ir/ops/adjoint.h"
#include "ir/ops/index_adjoint.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

WindowNumbers numbers_of(const GatherAttrs& attrs) {
  return {attrs.offset_dims,           attrs.collapsed_slice_dims, attrs.operand_batching_dims,
          attrs.indices_batching_dims, attrs.start_index_map,      attrs.index_vector_dim};
}

void check_slice_sizes(const InferContext& context, const GatherAttrs& attrs) {
  const TensorType& x = context.tensor(0);
  const SymbolRanges& ranges = context.module.symbols;
  require_length(attrs.slice_sizes.size(), x.rank(), "slice_sizes");
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const Dim& size = attrs.slice_sizes[d];
    if (always_negative(size, ranges) || always_negative(x.shape[d] - size, ranges)) {
      fail("slice_sizes has {} for dimension {} of {}", size.to_string(), d, to_string(x));
    }
  }
  for (const Ints* dropped : {&attrs.collapsed_slice_dims, &attrs.operand_batching_dims}) {
    for (const int64_t d : *dropped) {
      const Dim& size = attrs.slice_sizes[static_cast<size_t>(d)];
      if (!(size == Dim(1))) {
        fail("slice_sizes must be 1 in the collapsed or batching dimension {} and is {}", d,
             size.to_string());
      }
    }
  }
}

Type infer_gather(const InferContext& context) {
  const GatherAttrs& attrs = context.attrs.as<GatherAttrs>();
  const WindowNumbers numbers = numbers_of(attrs);
  check_window_numbers(context, numbers);
  check_slice_sizes(context, attrs);
  const TensorType& x = context.tensor(0);
  const Shape places = place_shape(context.tensor(1).shape, attrs.index_vector_dim);
  TensorType result{x.element, Shape(places.size() + attrs.offset_dims.size(), Dim(-1))};
  const std::vector<size_t> kept = kept_dimensions(x.rank(), numbers);
  std::vector<bool> inside(result.shape.size(), false);
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t d = static_cast<size_t>(attrs.offset_dims[i]);
    inside[d] = true;
    result.shape[d] = attrs.slice_sizes[kept[i]];
  }
  size_t next = 0;
  for (size_t d = 0; d < result.shape.size(); ++d) {
    if (!inside[d]) result.shape[d] = places[next++];
  }
  return result;
}

Value evaluate_gather(const EvalContext& context) {
  const GatherAttrs& attrs = context.node.attrs.as<GatherAttrs>();
  const Literal& x = context.tensor(0);
  ResultBuffer result(x.element(), context.result_shape());
  if (result.count() == 0) return result.finish();
  const std::vector<int64_t> sizes = context.evaluate(attrs.slice_sizes);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > x.shape()[d]) {
      fail("a window of {} does not fit dimension {} of {}", sizes[d], d, to_string(x.type()));
    }
  }
  const PlacedWindows windows = place_windows(numbers_of(attrs), x.shape(), context.tensor(1),
                                              sizes, result.shape(), Outside::clamp);
  Walk<2> walk(result.shape(), {windows.place_strides, windows.window_strides});
  visit_word(x.element(), [&](auto word) {
    using Word = decltype(word);
    const Word* from = x.data<Word>();
    Word* to = result.data<Word>();
    walk.each({0, 0}, [&](const auto& at) {
      *to++ = from[windows.starts[static_cast<size_t>(at[0])] + at[1]];
    });
  });
  return result.finish();
}

/// Every element of the cotangent is added to where it was read.
std::vector<Adjoint> gradient_of_gather(GradientContext& context) {
  const GatherAttrs& g = context.node.attrs.as<GatherAttrs>();
  const TensorType x = context.type(0);
  const ScatterAttrs attrs{Combiner::add,           g.offset_dims,           g.collapsed_slice_dims,
                           g.operand_batching_dims, g.indices_batching_dims, g.start_index_map,
                           g.index_vector_dim};
  const Val indices = clamped_indices(Val(context.builder, context.operand(1)),
                                      {numbers_of(g), x.shape, g.slice_sizes});
  const Val zeros(context.builder, emit_zeros(context.builder, x));
  return {zeros.emit(ops::scatter, {indices, context.seed()}, attrs)};
}

}  // namespace

const OpDef gather = {
    .name = "gather",
    .documentation =
        "Windows of the first operand that start where the second, index vectors, says; "
        "starts are clamped so that each window lies inside.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = GatherAttrs{},
    .infer = infer_gather,
    .evaluate = evaluate_gather,
    .gradient = gradient_of_gather,
};

}  // namespace backcast::ops
