#include "passes/graph/fold_scale.h"

#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/contraction_axes.h"

namespace backcast {
namespace {

/// Where the output features of a contraction with constant weights are: in the result and in the
/// weights.
struct Features {
  size_t weights;  // operand that holds the constant
  int64_t result_axis;
  int64_t weights_axis;
};

std::optional<Features> features_of(const Builder& b, const Node& node) {
  if (node.op == &ops::conv && constant_of(b, node.operands[1])) {
    const ConvAttrs& attrs = node.attrs.as<ConvAttrs>();
    return Features{1, attrs.output_feature, attrs.kernel_output};
  }
  if (node.op == &ops::dot_general && constant_of(b, node.operands[1])) {
    const DotGeneralAttrs& attrs = node.attrs.as<DotGeneralAttrs>();
    int64_t rank = b.tensor_type(node.operands[1]).rank();
    int64_t free = rank - static_cast<int64_t>(attrs.rhs_batch.size() + attrs.rhs_contract.size());
    if (free != 1 || !attrs.rhs_batch.empty()) return std::nullopt;
    for (int64_t axis = 0; axis < rank; ++axis) {
      bool contracted = false;
      for (int64_t c : attrs.rhs_contract) contracted = contracted || c == axis;
      if (!contracted) return Features{1, node.type.tensor().rank() - 1, axis};
    }
  }
  return std::nullopt;
}

/// A constant that varies along `axis` of the result only, as a vector of that extent (or of one
/// element); nothing otherwise.
std::optional<ValueId> along(Builder& b, ValueId id, int64_t axis) {
  const Node node = b.node(id);
  ValueId small = id;
  Ints dims;
  if (node.op == &ops::broadcast) {
    small = node.operands[0];
    dims = node.attrs.as<BroadcastAttrs>().dims;
  } else {
    for (int64_t d = 0; d < node.type.tensor().rank(); ++d) dims.push_back(d);
  }
  const Literal* literal = constant_of(b, small);
  if (!literal || !is_float(literal->element())) return std::nullopt;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (literal->shape()[d] != 1 && dims[d] != axis) return std::nullopt;
  }
  return b.emit(ops::reshape, {small}, ReshapeAttrs{{literal->element_count()}});
}

ValueId spread(Builder& b, ValueId vector, const Shape shape, int64_t axis) {
  bool single = b.tensor_type(vector).shape[0] == Dim(1) && !(shape[size_t(axis)] == Dim(1));
  if (single) vector = b.emit(ops::reshape, {vector}, ReshapeAttrs{{}});
  Ints dims = single ? Ints{} : Ints{axis};
  return b.emit(ops::broadcast, {vector}, BroadcastAttrs{shape, dims});
}

class Folding {
 public:
  Folding(const Module& module, const Function& from)
      : from_(from), uses_(use_counts(from)), rewriter_(module, from), b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      ValueId id(i);
      ValueId now = rewriter_.copy(id);
      std::optional<ValueId> folded = fold(id, now);
      if (!folded) folded = scale_afterwards(id, now);
      if (folded) rewriter_.map(id, *folded);
    }
    return rewriter_.finish();
  }

 private:
  /// The copy `now` of old node `id` is scale · (contraction [+ shift]).
  std::optional<ValueId> fold(ValueId id, ValueId now) {
    const Node node = b_.node(now);
    if (node.op != &ops::mul || !is_float(node.type.tensor().element)) return std::nullopt;
    for (size_t side : {0u, 1u}) {
      ValueId inner_old = from_.node(id).operands[side];
      if (uses_[size_t(inner_old.index)] != 1) continue;
      const Node inner = b_.node(node.operands[side]);
      ValueId scale = node.operands[1 - side];
      b_.set_loc(inner.loc);
      if (std::optional<ValueId> direct = scaled(inner, scale)) return direct;
      if (inner.op != &ops::add) continue;
      for (size_t s : {0u, 1u}) {
        ValueId contraction_old = from_.node(inner_old).operands[s];
        if (uses_[size_t(contraction_old.index)] != 1) continue;
        if (std::optional<ValueId> sum =
                scaled_sum(b_.node(inner.operands[s]), inner.operands[1 - s], scale)) {
          return sum;
        }
      }
    }
    return std::nullopt;
  }

  /// dot(x · s, y) = dot(x, y) · s, also with a division, where s is the same along what is
  /// contracted and the result has no more elements than x: there it is an epilogue.
  std::optional<ValueId> scale_afterwards(ValueId id, ValueId now) {
    const Node node = b_.node(now);
    if (node.op != &ops::dot_general || !is_float(node.type.tensor().element)) return std::nullopt;
    for (size_t side : {0u, 1u}) {
      const Node inner = b_.node(node.operands[side]);
      if (uses_[size_t(from_.node(id).operands[side].index)] != 1) continue;
      if (inner.op != &ops::mul && inner.op != &ops::div) continue;
      const Dim before = inner.type.tensor().element_count();
      const Dim after = node.type.tensor().element_count();
      if (!before.is_constant() || !after.is_constant()) continue;
      if (after.constant() > before.constant()) continue;
      for (size_t factor : {1u, 0u}) {
        if (factor == 0 && inner.op == &ops::div) continue;
        b_.set_loc(inner.loc);
        const Node wide = b_.node(inner.operands[factor]);
        if (wide.op != &ops::broadcast) continue;
        const ValueId small = wide.operands[0];
        const std::optional<ResultSpread> spread =
            spread_over_result(node, side, wide.type.tensor().rank(), b_.tensor_type(small).shape,
                               wide.attrs.as<BroadcastAttrs>().dims);
        if (!spread) continue;
        const ValueId kept = b_.emit(ops::reshape, {small}, spread->kept);
        const ValueId scale = b_.emit(ops::broadcast, {kept}, spread->spread);
        std::vector<ValueId> operands = node.operands;
        operands[side] = inner.operands[1 - factor];
        b_.set_loc(node.loc);
        const ValueId contraction = b_.emit(ops::dot_general, operands, node.attrs);
        b_.set_loc(inner.loc);
        return b_.emit(*inner.op, {contraction, scale});
      }
    }
    return std::nullopt;
  }

  /// contraction · scale with the scale in the weights.
  std::optional<ValueId> scaled(const Node& contraction, ValueId scale) {
    std::optional<Features> features = features_of(b_, contraction);
    if (!features) return std::nullopt;
    std::optional<ValueId> vector = along(b_, scale, features->result_axis);
    if (!vector) return std::nullopt;
    ValueId weights = contraction.operands[features->weights];
    ValueId wide = spread(b_, *vector, b_.tensor_type(weights).shape, features->weights_axis);
    std::vector<ValueId> operands = contraction.operands;
    operands[features->weights] = b_.emit(ops::mul, {weights, wide});
    return b_.emit(*contraction.op, operands, contraction.attrs);
  }

  /// (contraction + shift) · scale.
  std::optional<ValueId> scaled_sum(const Node contraction, ValueId shift, ValueId scale) {
    std::optional<Features> features = features_of(b_, contraction);
    if (!features) return std::nullopt;
    std::optional<ValueId> t = along(b_, shift, features->result_axis);
    std::optional<ValueId> s = along(b_, scale, features->result_axis);
    if (!t || !s || !(b_.tensor_type(*t) == b_.tensor_type(*s))) return std::nullopt;
    ValueId product = b_.emit(ops::mul, {*t, *s});
    ValueId wide = spread(b_, product, contraction.type.tensor().shape, features->result_axis);
    return b_.emit(ops::add, {*scaled(contraction, scale), wide});
  }

  const Function& from_;
  std::vector<int> uses_;
  Rewriter rewriter_;
  Builder& b_;
};

}  // namespace

Module fold_scale(const Module& module) {
  Module result = module;
  for (auto& [name, function] : result.functions) function = Folding(module, function).run();
  return result;
}

}  // namespace backcast
