#include "passes/graph/byte_factors.h"

#include <algorithm>

#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

// Uses of an element that make up for moving it.
constexpr int64_t kLeastUses = 8;

/// A matrix of a product, by its dimensions.
struct Matrix {
  const Shape& shape;
  const Ints& batch;
  int64_t contracted;

  bool is_free(int64_t d) const { return d != contracted && std::ranges::count(batch, d) == 0; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t extent(int64_t d) const { return shape[static_cast<size_t>(d)].constant(); }

  int64_t free_elements() const {
    int64_t count = 1;
    for (int64_t d = 0; d < rank(); ++d) count *= is_free(d) ? extent(d) : 1;
    return count;
  }
};

/// Where a reshape has dimension `d` of its result: nothing where what lies within differs.
std::optional<int64_t> before_reshape(const Shape& from, const Shape& to, int64_t d) {
  const int64_t before = d + static_cast<int64_t>(from.size()) - static_cast<int64_t>(to.size());
  if (before < 0) return std::nullopt;
  return std::equal(from.begin() + before, from.end(), to.begin() + d, to.end())
             ? std::optional(before)
             : std::nullopt;
}

/// Whether other dimensions lie within `d` where the value's elements, or those that they are
/// computed from one by one, lie as the model has them.
bool is_outer(const Function& function, ValueId value, int64_t d) {
  for (;;) {
    const Node& node = function.node(value);
    const Shape& shape = node.type.tensor().shape;
    std::optional<ValueId> source;
    if (node.op == &ops::transpose) {
      d = node.attrs.as<TransposeAttrs>().permutation[static_cast<size_t>(d)];
      source = node.operands[0];
    } else if (node.op == &ops::reshape) {
      const Shape& from = function.type(node.operands[0]).tensor().shape;
      const std::optional<int64_t> before = before_reshape(from, shape, d);
      if (before) source = node.operands[0];
      d = before.value_or(d);
    } else if (is_elementwise(*node.op)) {
      const auto varies = [&](ValueId operand) { return !splat_of(function, operand); };
      const auto found = std::ranges::find_if(node.operands, varies);
      if (found != node.operands.end()) source = *found;
    }
    if (!source) return d + 1 < static_cast<int64_t>(shape.size());
    value = *source;
  }
}

/// `split`: words are a dimension of their own; `leads`: in front of the free ones.
WordOperand word_operand(const Matrix& matrix, int64_t word, bool split, bool leads) {
  const int64_t rank = matrix.rank();
  const size_t at = static_cast<size_t>(matrix.contracted);
  const int64_t filled = (matrix.extent(matrix.contracted) + word - 1) / word * word;
  WordOperand result;
  result.spare = {Dims(matrix.shape.size(), Dim(0)), Dims(matrix.shape.size(), Dim(0)),
                  Ints(matrix.shape.size(), 0)};
  result.spare.high[at] = Dim(filled - matrix.extent(matrix.contracted));
  result.split.shape = matrix.shape;
  result.split.shape[at] = Dim(split ? filled / word : filled);
  if (split) {
    result.split.shape.insert(result.split.shape.begin() + matrix.contracted + 1, Dim(word));
  }
  const auto place = [&](int64_t d) { return split && d > matrix.contracted ? d + 1 : d; };
  Ints& order = result.order.permutation;
  for (const int64_t d : matrix.batch) order.push_back(place(d));
  const auto add_summed = [&](int64_t d) {
    result.summed.push_back(static_cast<int64_t>(order.size()));
    order.push_back(d);
  };
  if (leads) add_summed(matrix.contracted);
  for (int64_t d = 0; d < rank; ++d) {
    if (matrix.is_free(d)) order.push_back(place(d));
  }
  if (!leads) add_summed(matrix.contracted);
  if (split) add_summed(matrix.contracted + 1);
  return result;
}

Ints counted(int64_t first, int64_t last) {
  Ints result;
  for (int64_t d = first; d < last; ++d) result.push_back(d);
  return result;
}

}  // namespace

std::optional<OffsetBytes> offset_bytes(const Function& function, ValueId value) {
  std::optional<ValueId> zero;
  if (const Node& less = function.node(value); less.op == &ops::sub) {
    const Node& spread = function.node(less.operands[1]);
    if (spread.op != &ops::broadcast) return std::nullopt;
    zero = spread.operands[0];
    if (function.type(*zero).tensor().rank() != 0) return std::nullopt;
    value = less.operands[0];
  }
  if (const Node& wide = function.node(value); wide.op == &ops::cast) value = wide.operands[0];
  const ElementType element = function.type(value).tensor().element;
  if (!is_integer(element) || byte_size(element) != 1) return std::nullopt;
  return OffsetBytes{value, zero, is_signed(element)};
}

std::optional<FactorSigns> signs_for(const OffsetBytes& lhs, const OffsetBytes& rhs,
                                     const TargetInfo& target) {
  std::optional<FactorSigns> best;
  int least = 0;
  for (const FactorSigns signs : {FactorSigns{false, true}, {true, false}, {true, true}}) {
    if (!target.has_dot4(signs.lhs && signs.rhs)) continue;
    const int shifts = (lhs.is_signed != signs.lhs) + (rhs.is_signed != signs.rhs);
    const int sums =
        (lhs.zero || lhs.is_signed != signs.lhs) + (rhs.zero || rhs.is_signed != signs.rhs);
    if (best && shifts + sums >= least) continue;
    best = signs;
    least = shifts + sums;
  }
  return best;
}

std::optional<WordProduct> word_product(const Function& function, const Node& contraction,
                                        const Shape& lhs, ValueId value, int64_t word) {
  if (contraction.op != &ops::dot_general) return std::nullopt;
  const Shape& rhs = function.type(value).tensor().shape;
  const DotGeneralAttrs& attrs = contraction.attrs.as<DotGeneralAttrs>();
  if (attrs.lhs_contract.size() != 1 || !is_static(lhs) || !is_static(rhs)) return std::nullopt;
  const Matrix left{lhs, attrs.lhs_batch, attrs.lhs_contract[0]};
  const Matrix right{rhs, attrs.rhs_batch, attrs.rhs_contract[0]};
  const bool split = is_outer(function, value, right.contracted);
  WordProduct result;
  result.lhs = word_operand(left, word, split, false);
  result.rhs = word_operand(right, word, split, split);
  result.length = left.extent(left.contracted);
  const auto stays = [&](const WordOperand& operand) {
    return result.length % word == 0 && std::ranges::is_sorted(operand.order.permutation);
  };
  if (!stays(result.lhs) && right.free_elements() < kLeastUses) return std::nullopt;
  if (!stays(result.rhs) && left.free_elements() < kLeastUses) return std::nullopt;
  const int64_t batch = static_cast<int64_t>(attrs.lhs_batch.size());
  result.dot = {counted(0, batch), counted(0, batch), result.lhs.summed, result.rhs.summed};
  const Shape& shape = contraction.type.tensor().shape;
  result.lhs_sums = {shape, counted(0, left.rank() - 1)};
  result.rhs_sums = {shape, counted(0, batch)};
  for (int64_t d = left.rank() - 1; d < static_cast<int64_t>(shape.size()); ++d) {
    result.rhs_sums.dims.push_back(d);
  }
  return result;
}

}  // namespace backcast
