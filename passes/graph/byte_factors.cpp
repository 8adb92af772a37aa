#include "passes/graph/byte_factors.h"

#include <algorithm>

#include "ir/ops/ops.h"

namespace backcast {
namespace {

// Uses of an element that make up for moving it.
constexpr int64_t kLeastUses = 8;

/// The dimensions of an operand, those of the batch first and what is contracted last.
Ints contracted_last(const Ints& batch, int64_t contracted, size_t rank) {
  Ints order = batch;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) {
    if (d != contracted && std::ranges::count(batch, d) == 0) order.push_back(d);
  }
  order.push_back(contracted);
  return order;
}

/// Elements of the dimensions that are neither.
int64_t kept_elements(const Shape& shape, const Ints& batch, int64_t contracted) {
  int64_t count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t dimension = static_cast<int64_t>(d);
    if (dimension != contracted && std::ranges::count(batch, dimension) == 0) {
      count *= shape[d].constant();
    }
  }
  return count;
}

PadAttrs behind_last(size_t rank, int64_t count) {
  PadAttrs pad{Dims(rank, Dim(0)), Dims(rank, Dim(0)), Ints(rank, 0)};
  pad.high.back() = Dim(count);
  return pad;
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

std::optional<SumsLast> sums_last(const Node& contraction, const Shape& lhs, const Shape& rhs,
                                  int64_t word) {
  if (contraction.op != &ops::dot_general) return std::nullopt;
  const DotGeneralAttrs& attrs = contraction.attrs.as<DotGeneralAttrs>();
  if (attrs.lhs_contract.size() != 1 || !is_static(lhs) || !is_static(rhs)) return std::nullopt;
  const int64_t k = attrs.lhs_contract[0], l = attrs.rhs_contract[0];
  SumsLast result;
  result.lhs.permutation = contracted_last(attrs.lhs_batch, k, lhs.size());
  result.rhs.permutation = contracted_last(attrs.rhs_batch, l, rhs.size());
  result.length = lhs[static_cast<size_t>(k)].constant();
  const int64_t spare = (word - result.length % word) % word;
  const auto stays = [&](const TransposeAttrs& order) {
    return spare == 0 && std::ranges::is_sorted(order.permutation);
  };
  const int64_t lhs_uses = kept_elements(rhs, attrs.rhs_batch, l);
  const int64_t rhs_uses = kept_elements(lhs, attrs.lhs_batch, k);
  if (!stays(result.lhs) && lhs_uses < kLeastUses) return std::nullopt;
  if (!stays(result.rhs) && rhs_uses < kLeastUses) return std::nullopt;
  result.lhs_spare = behind_last(lhs.size(), spare);
  result.rhs_spare = behind_last(rhs.size(), spare);
  const int64_t batch = static_cast<int64_t>(attrs.lhs_batch.size());
  const int64_t lhs_last = static_cast<int64_t>(lhs.size()) - 1;
  const int64_t rhs_last = static_cast<int64_t>(rhs.size()) - 1;
  result.dot = {counted(0, batch), counted(0, batch), {lhs_last}, {rhs_last}};
  const Shape& shape = contraction.type.tensor().shape;
  result.lhs_sums = {shape, counted(0, lhs_last)};
  result.rhs_sums = {shape, counted(0, batch)};
  for (int64_t d = lhs_last; d < static_cast<int64_t>(shape.size()); ++d) {
    result.rhs_sums.dims.push_back(d);
  }
  return result;
}

}  // namespace backcast
