#include "passes/graph/integer_products.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/byte_factors.h"
#include "passes/graph/constant_value.h"
#include "passes/graph/contraction_axes.h"
#include "passes/graph/contraction_border.h"
#include "passes/graph/scaled_integers.h"
#include "passes/graph/stepped_channels.h"
#include "passes/graph/value_ranges.h"

namespace backcast {
namespace {

class IntegerProducts {
 public:
  IntegerProducts(const Module& module, const Function& from, const TargetInfo& target)
      : module_(module),
        from_(from),
        target_(target),
        ranges_(module, from),
        rewriter_(module, from),
        b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      if (!is_contraction(node)) continue;
      if (is_integer_type(node.type)) {
        rewriter_.map(id, product_of_narrow(node, node.operands));
      } else if (node.type.tensor().element == ElementType::f32) {
        if (std::optional<ValueId> product = scaled_product(node)) rewriter_.map(id, *product);
      }
    }
    return rewriter_.finish();
  }

 private:
  /// Products that are added up for one element of the result, at most.
  double terms(const Node& contraction, const TensorType& weights) const {
    const std::map<int64_t, int64_t> free = axes_in_result(contraction, 1, weights.rank());
    double count = 1;
    for (int64_t d = 0; d < weights.rank(); ++d) {
      if (free.contains(d)) continue;
      count *=
          static_cast<double>(weights.shape[static_cast<size_t>(d)].range(module_.symbols).max);
    }
    return count;
  }

  std::optional<ValueId> scaled_product(const Node& node) {
    std::vector<ValueId> integers;
    std::vector<std::pair<size_t, ValueId>> scales;
    double reach = 1;
    for (size_t side : {0u, 1u}) {
      const std::optional<ScaledInteger> form = scaled_integer(from_, node.operands[side]);
      if (!form) return std::nullopt;
      integers.push_back(form->integer);
      if (form->scale) scales.emplace_back(side, *form->scale);
      reach *= ranges_[form->integer].reach();
    }
    const TensorType& weights = from_.type(integers[1]).tensor();
    if (reach * terms(node, weights) > 0x7fffffff) return std::nullopt;
    if (constant_of(from_, integers[0]) && constant_of(from_, integers[1])) return std::nullopt;
    // Constants first: nothing is emitted where one of them does not fit.
    b_.set_loc(node.loc);
    std::vector<ValueId> factors;
    for (const auto& [side, scale] : scales) {
      const Node& wide = from_.node(scale);
      const ValueId small = wide.operands[0];
      const std::optional<ResultSpread> spread = spread_over_result(
          node, side, wide.type.tensor().rank(), from_.type(small).tensor().shape,
          wide.attrs.as<BroadcastAttrs>().dims);
      if (!spread) return std::nullopt;
      const ValueId kept = b_.emit(ops::reshape, {rewriter_.copy_all(small)}, spread->kept);
      factors.push_back(b_.emit(ops::broadcast, {kept}, spread->spread));
    }
    ValueId result = b_.emit(ops::cast, {product_of_narrow(node, integers)}, CastAttrs{});
    if (factors.empty()) return result;
    const ValueId factor =
        factors.size() == 2 ? b_.emit(ops::mul, {factors[0], factors[1]}) : factors[0];
    return b_.emit(ops::mul, {result, factor});
  }

  /// dot(x - z, w) of bytes x as dot(u, w) - y·sum(w), where weights are constant: u and y are x
  /// and z as bytes of the sign that the target multiplies. Borders are of y.
  std::optional<ValueId> product_of_bytes(const Node& node, const std::vector<ValueId>& integers) {
    const ValueId weights = integers[1];
    const std::optional<OffsetBytes> offset_input = offset_bytes(from_, integers[0]);
    if (!offset_input || !offset_input->zero || is_multiplied(ranges_[integers[0]]) ||
        !has_small_weights(weights)) {
      return std::nullopt;
    }
    const Node& bytes = from_.node(offset_input->bytes);
    const ElementType element = bytes.type.tensor().element;
    const bool keeps_sign = target_.multiplies_bytes(is_signed(element));
    const ElementType factor = is_signed(element) == keeps_sign ? ElementType::i8 : ElementType::u8;
    if (!target_.multiplies_bytes(is_signed(factor))) return std::nullopt;
    const std::optional<ContractionBorder> border =
        border_of(node, weights, target_.bytes_at_once());
    // A border is a copy, for which small cores have no room.
    if (!border || (!border->is_empty() && target_.vector_bits == 0)) return std::nullopt;
    const Literal all_weights = constant_value(module_, from_, weights).tensor;
    const std::optional<ContractedSums> sums = contracted_sums(node, all_weights);
    if (!sums) return std::nullopt;
    const double shift = range_of(factor)->low - range_of(element)->low;
    // Bytes that a caller owns are copied to where they lie in words.
    const bool is_copied = bytes.op == &ops::parameter && shift == 0 && border->is_empty();
    if (is_copied && !bytes.type.tensor().is_static()) return std::nullopt;

    b_.set_loc(node.loc);
    ValueId x = shifted(in_i32(rewriter_.copy_all(offset_input->bytes)), shift);
    const ValueId offset = shifted_zero(*offset_input->zero, shift);
    x = padded(x, offset, border->input);
    x = in_i32(b_.emit(ops::cast, {x}, CastAttrs{factor}));
    const ValueId w = padded_weights(all_weights, border->weights);
    const ValueId spread = b_.emit(ops::broadcast, {b_.constant(sums->values)}, sums->spread);
    const ValueId offsets =
        b_.emit(ops::broadcast, {offset}, BroadcastAttrs{sums->spread.shape, {}});
    const ValueId product_of_all = b_.emit(*node.op, {x, w}, border->rest);
    return b_.emit(ops::sub, {product_of_all, b_.emit(ops::mul, {offsets, spread})});
  }

  /// A factor of bytes of the sign that the target multiplies, and what it has more than the value.
  struct ShiftedFactor {
    ValueId bytes;  // in i32
    std::optional<ValueId> offset;
  };

  ShiftedFactor shifted_factor(const OffsetBytes& factor, bool to_signed, const WordOperand& form) {
    const double shift = factor.is_signed == to_signed ? 0 : to_signed ? -128 : 128;
    const ValueId x = shifted(in_i32(rewriter_.copy_all(factor.bytes)), shift);
    std::optional<ValueId> offset;
    if (factor.zero) {
      offset = shifted_zero(*factor.zero, shift);
    } else if (shift != 0) {
      offset = b_.scalar(ElementType::i32, shift);
    }
    return {stored(x, to_signed ? ElementType::i8 : ElementType::u8, form), offset};
  }

  /// In i32 by way of a narrow tensor of words.
  ValueId stored(ValueId x, ElementType type, const WordOperand& form) {
    x = b_.emit(ops::cast, {x}, CastAttrs{type});
    const auto is_zero = [](const Dim& count) { return count == Dim(0); };
    if (!std::ranges::all_of(form.spare.high, is_zero)) {
      x = padded(x, b_.scalar(type, 0), form.spare);
    }
    if (b_.tensor_type(x).shape != form.split.shape) x = b_.emit(ops::reshape, {x}, form.split);
    if (!std::ranges::is_sorted(form.order.permutation)) {
      x = b_.emit(ops::transpose, {x}, form.order);
    }
    return in_i32(x);
  }

  /// dot(x - z, w - v) of bytes that are both only known at run time, as
  /// dot(x, w) - v·sum(x) - z·sum(w) + v·z·length, with words along the sum.
  std::optional<ValueId> product_of_data(const Node& node, const std::vector<ValueId>& integers) {
    const std::optional<OffsetBytes> lhs = offset_bytes(from_, integers[0]);
    const std::optional<OffsetBytes> rhs = offset_bytes(from_, integers[1]);
    if (!lhs || !rhs) return std::nullopt;
    const std::optional<FactorSigns> signs = signs_for(*lhs, *rhs, target_);
    const std::optional<WordProduct> form = data_form(node, integers, target_.bytes_at_once());
    if (!signs || !form) return std::nullopt;
    b_.set_loc(node.loc);
    const ShiftedFactor x = shifted_factor(*lhs, signs->lhs, form->lhs);
    const ShiftedFactor w = shifted_factor(*rhs, signs->rhs, form->rhs);
    ValueId result = b_.emit(ops::dot_general, {x.bytes, w.bytes}, form->dot);
    if (w.offset) result = without(result, *w.offset, sums_of(x.bytes, form->lhs), form->lhs_sums);
    if (x.offset) {
      ValueId sums = sums_of(w.bytes, form->rhs);
      if (w.offset) {
        const ValueId length = b_.scalar(ElementType::i32, static_cast<double>(form->length));
        const ValueId all = b_.emit(ops::mul, {length, *w.offset});
        const BroadcastAttrs like{b_.tensor_type(sums).shape, {}};
        sums = b_.emit(ops::sub, {sums, b_.emit(ops::broadcast, {all}, like)});
      }
      result = without(result, *x.offset, sums, form->rhs_sums);
    }
    return result;
  }

  /// Likewise of 16 bits, in pairs.
  std::optional<ValueId> product_of_halves(const Node& node, const std::vector<ValueId>& integers) {
    if (!target_.pair_products || target_.summed_byte_products) return std::nullopt;
    for (const ValueId id : integers) {
      const ValueRange range = ranges_[id];
      // Without vectors what bytes hold stays in bytes.
      const bool fits = target_.vector_bits > 0 ? range_of(ElementType::i16)->contains(range)
                                                : factor_type(range, target_) == ElementType::i16;
      if (!fits) return std::nullopt;
    }
    const std::optional<WordProduct> form = data_form(node, integers, 2);
    if (!form) return std::nullopt;
    b_.set_loc(node.loc);
    const auto operand = [&](size_t side, const WordOperand& words) {
      return stored(in_i32(rewriter_.copy_all(integers[side])), ElementType::i16, words);
    };
    const ValueId lhs = operand(0, form->lhs), rhs = operand(1, form->rhs);
    return b_.emit(ops::dot_general, {lhs, rhs}, form->dot);
  }

  /// Nothing where an operand is constant.
  std::optional<WordProduct> data_form(const Node& node, const std::vector<ValueId>& integers,
                                       int64_t word) const {
    for (const ValueId id : integers) {
      if (is_made_of_constants(from_, id)) return std::nullopt;
    }
    return word_product(from_, node, from_.type(integers[0]).tensor().shape, integers[1], word);
  }

  ValueId sums_of(ValueId x, const WordOperand& form) {
    return b_.emit(ops::reduce, {x}, ReduceAttrs{Reduction::sum, form.summed});
  }

  /// result - offset·sums
  ValueId without(ValueId result, ValueId offset, ValueId sums, const BroadcastAttrs& spread) {
    const BroadcastAttrs like{b_.tensor_type(sums).shape, {}};
    const ValueId all = b_.emit(ops::mul, {sums, b_.emit(ops::broadcast, {offset}, like)});
    return b_.emit(ops::sub, {result, b_.emit(ops::broadcast, {all}, spread)});
  }

  ValueId shifted_zero(ValueId zero, double shift) {
    return b_.emit(ops::add,
                   {in_i32(rewriter_.copy_all(zero)), b_.scalar(ElementType::i32, shift)});
  }

  ValueId shifted(ValueId x, double shift) {
    if (shift == 0) return x;
    const BroadcastAttrs like{b_.tensor_type(x).shape, {}};
    const ValueId by = b_.emit(ops::broadcast, {b_.scalar(ElementType::i32, shift)}, like);
    return b_.emit(ops::add, {x, by});
  }

  /// A convolution whose input channels, three as a rule, are made to fill words with zeros.
  std::optional<ValueId> product_of_words(const Node& node, const std::vector<ValueId>& integers) {
    if (node.op != &ops::conv || !has_small_weights(integers[1])) return std::nullopt;
    const ValueRange range = ranges_[integers[0]];
    const std::optional<ElementType> stored = factor_type(range, target_);
    if (!stored) return std::nullopt;
    const bool in_bytes = byte_size(*stored) == 1;
    if (!target_.pair_products && !(in_bytes && is_multiplied(range))) return std::nullopt;
    const std::optional<ContractionBorder> border =
        border_of(node, integers[1], in_bytes ? target_.bytes_at_once() : 2);
    if (!border || border->spare == 0) return std::nullopt;
    b_.set_loc(node.loc);
    const ValueId whole = in_i32(rewriter_.copy_all(integers[0]));
    const ValueId x = padded(whole, b_.scalar(ElementType::i32, 0), border->channels);
    const ValueId small = in_i32(b_.emit(ops::cast, {x}, CastAttrs{*stored}));
    const ValueId w =
        padded_weights(constant_value(module_, from_, integers[1]).tensor, border->weights);
    return b_.emit(ops::conv, {small, w}, node.attrs);
  }

  /// One channel whose neighbours a stride steps over: pairs of them are words of 16 bits.
  std::optional<ValueId> product_of_steps(const Node& node, const std::vector<ValueId>& integers) {
    if (!target_.pair_products || !has_small_weights(integers[1]) ||
        !range_of(ElementType::i16)->contains(ranges_[integers[0]])) {
      return std::nullopt;
    }
    const std::optional<SteppedChannels> stepped = stepped_channels(
        node, from_.type(integers[0]).tensor(), constant_value(module_, from_, integers[1]).tensor,
        /*word=*/2);
    if (!stepped) return std::nullopt;
    b_.set_loc(node.loc);
    const ValueId whole = in_i32(rewriter_.copy_all(integers[0]));
    const ValueId x = padded(whole, b_.scalar(ElementType::i32, 0), stepped->border);
    const ValueId stored = b_.emit(ops::cast, {x}, CastAttrs{ElementType::i16});
    const ValueId image = in_i32(b_.emit(ops::reshape, {stored}, stepped->image));
    return b_.emit(ops::conv, {image, in_i32(b_.constant(stepped->weights))}, stepped->conv);
  }

  /// Do unsigned or signed bytes of this range have an instruction for four of them?
  bool is_multiplied(const ValueRange& range) const {
    return (target_.multiplies_bytes(false) && range_of(ElementType::u8)->contains(range)) ||
           (target_.multiplies_bytes(true) && range_of(ElementType::i8)->contains(range));
  }

  bool has_small_weights(ValueId weights) const {
    return range_of(ElementType::i8)->contains(ranges_[weights]) &&
           is_made_of_constants(from_, weights);
  }

  std::optional<ContractionBorder> border_of(const Node& node, ValueId weights,
                                             int64_t word) const {
    std::optional<ContractionBorder> border = contraction_border(
        node, from_.type(node.operands[0]).tensor(), from_.type(weights).tensor(), word);
    // A whole register is too much to fill with zeros.
    if (border && border->spare > 0 && word > 4) return std::nullopt;
    return border;
  }

  ValueId padded(ValueId x, ValueId value, const PadAttrs& attrs) {
    return b_.emit(ops::pad, {x, value}, attrs);
  }

  ValueId padded_weights(const Literal& all, const PadAttrs& attrs) {
    const ValueId small = b_.constant(all.converted_to(ElementType::i8));
    return in_i32(padded(small, b_.scalar(ElementType::i8, 0), attrs));
  }

  ValueId in_i32(ValueId id) {
    if (b_.tensor_type(id).element == ElementType::i32) return id;
    return b_.emit(ops::cast, {id}, CastAttrs{ElementType::i32});
  }

  /// The contraction of integers in i32.
  ValueId product_of_narrow(const Node& node, const std::vector<ValueId>& integers) {
    if (const std::optional<ValueId> product = product_of_steps(node, integers)) return *product;
    if (const std::optional<ValueId> product = product_of_bytes(node, integers)) return *product;
    if (const std::optional<ValueId> product = product_of_words(node, integers)) return *product;
    if (const std::optional<ValueId> product = product_of_data(node, integers)) return *product;
    if (const std::optional<ValueId> product = product_of_halves(node, integers)) return *product;
    std::vector<ValueId> operands;
    for (ValueId id : integers) operands.push_back(narrow(id));
    b_.set_loc(node.loc);
    for (ValueId& operand : operands) operand = in_i32(operand);
    return b_.emit(*node.op, operands, node.attrs);
  }

  /// `id` by way of the narrowest type that holds it, for all later readers. What is made of
  /// constants is computed here: as wide integers it would outgrow what simplification folds.
  ValueId narrow(ValueId id) {
    const Node& node = from_.node(id);
    const bool is_wide = node.type.tensor().element == ElementType::i32 && !is_narrow(node);
    const std::optional<ElementType> type =
        is_wide ? factor_type(ranges_[id], target_) : std::nullopt;
    if (!type) return rewriter_.copy_all(id);
    b_.set_loc(node.loc);
    const ValueId stored =
        is_made_of_constants(from_, id)
            ? b_.constant(constant_value(module_, from_, id).tensor.converted_to(*type))
            : b_.emit(ops::cast, {rewriter_.copy_all(id)}, CastAttrs{*type});
    const ValueId wide = b_.emit(ops::cast, {stored}, CastAttrs{ElementType::i32});
    rewriter_.map(id, wide);
    return wide;
  }

  /// Converted from a type of at most 16 bits, or constant.
  bool is_narrow(const Node& node) const {
    if (node.op == &ops::constant) return true;
    return node.op == &ops::cast && byte_size(from_.type(node.operands[0]).tensor().element) <= 2;
  }

  const Module& module_;
  const Function& from_;
  const TargetInfo& target_;
  ValueRanges ranges_;
  Rewriter rewriter_;
  Builder& b_;
};

/// Scales of integers behind their reversal, as kernels of transposed convolutions are written.
Function reverse_first(const Module& module, const Function& from) {
  Rewriter rewriter(module, from);
  Builder& b = rewriter.builder();
  for (int64_t i = 0; i < from.size(); ++i) {
    const Node& node = from.node(ValueId(i));
    if (node.op != &ops::reverse) continue;
    const Node& product = from.node(node.operands[0]);
    if (product.op != &ops::mul) continue;
    const Node &whole = from.node(product.operands[0]), &scale = from.node(product.operands[1]);
    if (whole.op != &ops::cast || scale.op != &ops::broadcast) continue;
    const Ints& spread = scale.attrs.as<BroadcastAttrs>().dims;
    const Ints& axes = node.attrs.as<ReverseAttrs>().axes;
    const auto varies = [&](int64_t axis) { return std::ranges::count(spread, axis) > 0; };
    if (std::ranges::any_of(axes, varies)) continue;
    b.set_loc(node.loc);
    const ValueId integer =
        b.emit(ops::reverse, {rewriter.copy_all(whole.operands[0])}, node.attrs);
    rewriter.map(ValueId(i), b.emit(ops::mul, {b.emit(ops::cast, {integer}, whole.attrs),
                                               rewriter.copy_all(product.operands[1])}));
  }
  return rewriter.finish();
}

bool has_integers(const Function& function) {
  return std::any_of(function.nodes.begin(), function.nodes.end(), [](const Node& node) {
    return node.type.is_tensor() && byte_size(node.type.tensor().element) <= 2 &&
           is_integer(node.type.tensor().element);
  });
}

}  // namespace

Module integer_products(const Module& module, const TargetInfo& target) {
  Module result = module;
  for (auto& [name, function] : result.functions) {
    if (!has_integers(function)) continue;
    const Function from = reverse_first(module, function);
    function = IntegerProducts(module, from, target).run();
  }
  return result;
}

}  // namespace backcast
