// pad: x at positions low + i · (interior + 1) of a result full of `value`; the extent is
// low + x + max(x - 1, 0) · interior + high. Negative low and high crop.
#include <algorithm>

#include "ir/ops/adjoint.h"
#include "ir/ops/movement.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

Dim padded_extent(const Dim& extent, const Dim& low, const Dim& high, int64_t interior,
                  const SymbolRanges& ranges) {
  return low + extent + gaps_between(extent, interior, ranges) + high;
}

Type infer_pad(const InferContext& context) {
  const PadAttrs& attrs = context.attrs.as<PadAttrs>();
  const TensorType& x = context.tensor(0);
  const SymbolRanges& ranges = context.module.symbols;
  require_same_element(context, 1, 0);
  if (context.tensor(1).rank() != 0) {
    fail("operand 1, the value, must be a scalar and is {}", to_string(context.tensor(1)));
  }
  require_length(attrs.low.size(), x.rank(), "low");
  require_length(attrs.high.size(), x.rank(), "high");
  require_length(attrs.interior.size(), x.rank(), "interior");
  require_values(attrs.interior, 0, "interior");
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const Dim extent =
        padded_extent(x.shape[d], attrs.low[d], attrs.high[d], attrs.interior[d], ranges);
    if (always_negative(extent, ranges)) {
      fail("dimension {} of {} padded by {} and {} has the negative extent {}", d, to_string(x),
           attrs.low[d].to_string(), attrs.high[d].to_string(), extent.to_string());
    }
    result.shape.push_back(extent);
  }
  return result;
}

template <class Word>
void copy_padded(const EvalContext& context, const std::vector<int64_t>& low,
                 ResultBuffer& result) {
  const PadAttrs& attrs = context.node.attrs.as<PadAttrs>();
  const Literal& x = context.tensor(0);
  Word* to = result.data<Word>();
  std::fill_n(to, result.count(), *context.tensor(1).data<Word>());
  if (result.count() == 0 || x.element_count() == 0) return;

  const std::vector<int64_t> from_strides = row_major_strides(x.shape());
  const std::vector<int64_t> to_strides = row_major_strides(result.shape());
  std::vector<int64_t> extents, reads, writes;
  int64_t read = 0, write = 0;
  for (size_t d = 0; d < low.size(); ++d) {
    // Element i lands at position i · step + low, which is a window of one with a dilated result.
    const Taps taps = taps_of({.input = result.shape()[d],
                               .output = x.shape()[d],
                               .stride = attrs.interior[d] + 1,
                               .pad_low = -low[d]},
                              0);
    extents.push_back(taps.count);
    reads.push_back(scaled_stride(from_strides[d], taps.output_step, taps.count));
    writes.push_back(scaled_stride(to_strides[d], taps.input_step, taps.count));
    if (taps.count == 0) return;
    read += taps.output * from_strides[d];
    write += taps.input * to_strides[d];
  }
  const Word* from = x.data<Word>();
  Walk<2> walk(extents, {reads, writes});
  walk.each({read, write}, [&](const auto& at) { to[at[1]] = from[at[0]]; });
}

Value evaluate_pad(const EvalContext& context) {
  const PadAttrs& attrs = context.node.attrs.as<PadAttrs>();
  ResultBuffer result(context.tensor(0).element(), context.result_shape());
  const std::vector<int64_t> low = context.evaluate(attrs.low);
  require_pads(low);
  visit_word(context.tensor(0).element(),
             [&](auto word) { copy_padded<decltype(word)>(context, low, result); });
  return result.finish();
}

/// The elements of the cotangent that stand where the operand's are; zero for cropped ones.
Val taken_out(GradientContext& context) {
  const PadAttrs& attrs = context.node.attrs.as<PadAttrs>();
  const Shape shape = context.type(0).shape;
  const SymbolRanges& ranges = context.builder.module().symbols;
  const Val seed(context.builder, context.seed());
  const Shape padded = seed.shape();
  SliceAttrs picks{{}, {}, {}};
  PadAttrs back{Dims(shape.size(), 0), Dims(shape.size(), 0), Ints(shape.size(), 0)};
  bool moves = false, spaced = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t step = attrs.interior[d] + 1;
    // `step` for each element, also where there may be none of them.
    const bool whole = step > 1 && !at_least(shape[d], 1, ranges);
    const bool inside = at_least(attrs.low[d], 0, ranges) && at_least(attrs.high[d], 0, ranges);
    const Dim extent = shape[d] * Dim(step) - Dim(whole ? 0 : step - 1);
    if (whole || !inside) {
      back.low[d] = Dim(0) - attrs.low[d];
      back.high[d] = extent - padded[d] + attrs.low[d];
      moves = true;
    }
    picks.start.push_back(whole || !inside ? Dim(0) : attrs.low[d]);
    picks.limit.push_back(picks.start[d] + extent);
    picks.stride.push_back(step);
    spaced = spaced || step > 1;
  }
  const Val there =
      moves ? seed.emit(pad, {context.builder.scalar(seed.element(), 0)}, back) : seed;
  if (!spaced && there.shape() == shape) return there;
  return there.emit(slice, {}, picks);
}

std::vector<Adjoint> gradient_of_pad(GradientContext& context) {
  std::vector<Adjoint> result(2);
  if (context.wanted[0]) result[0] = taken_out(context);
  if (context.wanted[1]) {
    // The value stands wherever a mask of the operand, padded alike, is true.
    Builder& builder = context.builder;
    const Val seed(builder, context.seed());
    const TensorType inside{ElementType::boolean, context.type(0).shape};
    const ValueId outside = builder.scalar(ElementType::boolean, 1);
    const Val mask(builder,
                   builder.emit(pad, {emit_zeros(builder, inside), outside}, context.node.attrs));
    result[1] = sum(backcast::select(mask, seed, seed.like(0)));
  }
  return result;
}

}  // namespace

const OpDef pad = {
    .name = "pad",
    .documentation =
        "The first operand with `low` and `high` elements of the second, a scalar, at "
        "the edges and `interior` between neighbours; negative edges crop.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = PadAttrs{},
    .infer = infer_pad,
    .evaluate = evaluate_pad,
    .gradient = gradient_of_pad,
};

}  // namespace backcast::ops
