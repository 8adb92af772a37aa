#include "passes/graph/fold_repeats.h"

#include <algorithm>
#include <optional>

#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/constant_value.h"
#include "passes/graph/dimensions.h"

namespace backcast {
namespace {

/// reshape(broadcast(x)) that has every element of x `times` times along its dimensions, side by
/// side.
struct Repeat {
  ValueId x;
  Ints times;
};

std::optional<Repeat> as_repeat(const Builder& b, ValueId id) {
  const Node& joined = b.node(id);
  if (joined.op != &ops::reshape) return std::nullopt;
  const Node& spread = b.node(joined.operands[0]);
  if (spread.op != &ops::broadcast) return std::nullopt;
  const BroadcastAttrs& attrs = spread.attrs.as<BroadcastAttrs>();
  const Shape& whole = joined.type.tensor().shape;
  const Shape x = b.tensor_type(spread.operands[0]).shape;
  const auto groups = groups_of(attrs.shape, whole);
  if (!groups || groups->size() != x.size() || attrs.dims.size() != x.size()) return std::nullopt;
  Repeat result{spread.operands[0], Ints(x.size(), 1)};
  for (size_t d = 0; d < x.size(); ++d) {
    const DimensionGroup& group = (*groups)[d];
    // The operand's dimension, then perhaps a new one.
    const bool fits = group.to.size() == 1 && group.from.size() <= 2 &&
                      attrs.dims[d] == static_cast<int64_t>(group.from[0]) &&
                      attrs.shape[group.from[0]] == x[d];
    if (!fits) return std::nullopt;
    if (group.from.size() == 1) continue;
    const Dim& times = attrs.shape[group.from[1]];
    if (!times.is_constant() || times.constant() < 1) return std::nullopt;
    result.times[d] = times.constant();
  }
  return result;
}

class Folding {
 public:
  Folding(const Module& module, const Function& from)
      : module_(module), from_(from), rewriter_(module, from), b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      b_.set_loc(node.loc);
      if (node.op == &ops::conv && is_float32_or_64(node)) {
        rewriter_.map(id, fold(node));
      } else {
        rewriter_.copy(id);
      }
    }
    return rewriter_.finish();
  }

 private:
  /// Sums of narrower weights would round where products do not.
  static bool is_float32_or_64(const Node& node) {
    const ElementType element = node.type.tensor().element;
    return element == ElementType::f32 || element == ElementType::f64;
  }

  ValueId fold(const Node& node) {
    const ConvAttrs& attrs = node.attrs.as<ConvAttrs>();
    const ValueId x = rewriter_[node.operands[0]], w = rewriter_[node.operands[1]];
    const Shape& result = node.type.tensor().shape;
    const Node parts = b_.node(x);
    const bool split = parts.op == &ops::concat && attrs.feature_groups == 1 &&
                       parts.attrs.as<ConcatAttrs>().axis == attrs.input_feature &&
                       std::any_of(parts.operands.begin(), parts.operands.end(), [&](ValueId part) {
                         const std::optional<Repeat> found = as_repeat(b_, part);
                         return found && may_fold(attrs, *found, w, result);
                       });
    return split ? sum_of_parts(parts, w, attrs, result) : convolved(x, w, attrs, result);
  }

  /// What is repeated and what it was concatenated with, such as the other side of a U, apart.
  ValueId sum_of_parts(const Node& parts, ValueId w, const ConvAttrs& attrs, const Shape& result) {
    SliceAttrs own{Dims(b_.tensor_type(w).shape.size(), Dim(0)), b_.tensor_type(w).shape,
                   Ints(b_.tensor_type(w).shape.size(), 1)};
    Dim& begin = own.start[size_t(attrs.kernel_input)];
    Dim& end = own.limit[size_t(attrs.kernel_input)];
    ValueId sum;
    for (const ValueId part : parts.operands) {
      end = begin + b_.tensor_type(part).shape[size_t(attrs.input_feature)];
      const ValueId y = convolved(part, folded(b_.emit(ops::slice, {w}, own)), attrs, result);
      sum = sum.valid() ? b_.emit(ops::add, {sum, y}) : y;
      begin = end;
    }
    return sum;
  }

  ValueId convolved(ValueId x, ValueId w, ConvAttrs attrs, const Shape& result) {
    while (const std::optional<Repeat> found = as_repeat(b_, x)) {
      if (!may_fold(attrs, *found, w, result)) break;
      x = found->x;
      if (is_pointwise(attrs, *found, w)) {
        const ValueId y = convolved(x, w, attrs, unrepeated(attrs, *found, result));
        return repeated(attrs, *found, y, result);
      }
      w = fold_into(attrs, *found, w);
    }
    return b_.emit(ops::conv, {x, w}, attrs);
  }

  /// Only space is repeated, of which the window sees less than of the result, and products become
  /// fewer.
  bool may_fold(const ConvAttrs& attrs, const Repeat& repeat, ValueId w, const Shape& result) {
    const Shape window = b_.tensor_type(w).shape;
    int64_t before = 1, after = 1;
    Ints elsewhere = repeat.times;
    for (size_t d = 0; d < attrs.input_spatial.size(); ++d) {
      const int64_t times = elsewhere[size_t(attrs.input_spatial[d])];
      elsewhere[size_t(attrs.input_spatial[d])] = 1;
      if (times == 1) continue;
      const Dim& taps = window[size_t(attrs.kernel_spatial[d])];
      const Dim& extent = result[size_t(attrs.output_spatial[d])];
      if (attrs.input_dilation[d] != 1 || attrs.kernel_dilation[d] != 1) return false;
      if (!taps.is_constant() || !extent.is_constant()) return false;
      if (taps.constant() > extent.constant()) return false;
      before *= taps.constant() * times;
      after *= taps.constant() + times - 1;
    }
    return (after < before || is_pointwise(attrs, repeat, w)) && attrs.batch_groups == 1 &&
           std::all_of(elsewhere.begin(), elsewhere.end(), [](int64_t t) { return t == 1; });
  }

  /// Whether every result along what is repeated sees one element: they are repeated, too.
  bool is_pointwise(const ConvAttrs& attrs, const Repeat& repeat, ValueId w) const {
    for (size_t d = 0; d < attrs.input_spatial.size(); ++d) {
      if (repeat.times[size_t(attrs.input_spatial[d])] == 1) continue;
      const bool plain = attrs.strides[d] == 1 && attrs.pad_low[d] == Dim(0) &&
                         attrs.pad_high[d] == Dim(0) &&
                         b_.tensor_type(w).shape[size_t(attrs.kernel_spatial[d])] == Dim(1);
      if (!plain) return false;
    }
    return true;
  }

  static Shape unrepeated(const ConvAttrs& attrs, const Repeat& repeat, Shape result) {
    for (size_t d = 0; d < attrs.output_spatial.size(); ++d) {
      const int64_t times = repeat.times[size_t(attrs.input_spatial[d])];
      Dim& extent = result[size_t(attrs.output_spatial[d])];
      if (times > 1) extent = Dim(extent.constant() / times);
    }
    return result;
  }

  /// `y`, of fewer elements, as often as `repeat` has those of its operand.
  ValueId repeated(const ConvAttrs& attrs, const Repeat& repeat, ValueId y, const Shape& result) {
    const Shape few = b_.tensor_type(y).shape;
    BroadcastAttrs spread;
    for (size_t d = 0; d < few.size(); ++d) {
      spread.dims.push_back(static_cast<int64_t>(spread.shape.size()));
      spread.shape.push_back(few[d]);
      for (size_t s = 0; s < attrs.output_spatial.size(); ++s) {
        const int64_t times = repeat.times[size_t(attrs.input_spatial[s])];
        if (attrs.output_spatial[s] == static_cast<int64_t>(d) && times > 1) {
          spread.shape.push_back(Dim(times));
        }
      }
    }
    return b_.emit(ops::reshape, {b_.emit(ops::broadcast, {y}, spread)}, ReshapeAttrs{result});
  }

  /// up[i] is the sum over j < r of spread[i - j], x with r - 1 zeros behind every element: tap t
  /// of w meets what taps t to t + r - 1 of the sums do, r - 1 places before.
  ValueId fold_into(ConvAttrs& attrs, const Repeat& repeat, ValueId w) {
    const size_t rank = b_.tensor_type(w).shape.size();
    ReduceWindowAttrs sums{Reduction::sum, Ints(rank, 1),      Ints(rank, 1),
                           Ints(rank, 1),  Dims(rank, Dim(0)), Dims(rank, Dim(0))};
    for (size_t d = 0; d < attrs.input_spatial.size(); ++d) {
      const int64_t times = repeat.times[size_t(attrs.input_spatial[d])];
      const auto taps = size_t(attrs.kernel_spatial[d]);
      attrs.input_dilation[d] *= times;
      attrs.pad_low[d] = attrs.pad_low[d] + Dim(times - 1);
      attrs.pad_high[d] = attrs.pad_high[d] + Dim(times - 1);
      sums.window[taps] = times;
      sums.pad_low[taps] = sums.pad_high[taps] = Dim(times - 1);
    }
    return folded(b_.emit(ops::reduce_window, {w}, sums));
  }

  /// Weights that are known stay constants, whatever they take.
  ValueId folded(ValueId id) {
    if (!is_made_of_constants(b_, id)) return id;
    return b_.constant(constant_value(module_, b_, id).tensor);
  }

  const Module& module_;
  const Function& from_;
  Rewriter rewriter_;
  Builder& b_;
};

}  // namespace

Module fold_repeats(const Module& module) {
  Module result = module;
  for (auto& [name, function] : result.functions) function = Folding(module, function).run();
  return result;
}

}  // namespace backcast
