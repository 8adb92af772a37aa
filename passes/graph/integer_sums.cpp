#include "passes/graph/integer_sums.h"

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/scaled_integers.h"
#include "passes/graph/value_ranges.h"

namespace backcast {
namespace {

class IntegerSums {
 public:
  IntegerSums(const Module& module, const Function& from)
      : from_(from), ranges_(module, from), rewriter_(module, from), b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const std::optional<double> terms = terms_of(from_.node(id));
      if (!terms || from_.type(id).tensor().element != ElementType::f32) continue;
      if (const std::optional<ValueId> sum = summed(from_.node(id), *terms)) {
        rewriter_.map(id, *sum);
      }
    }
    return rewriter_.finish();
  }

 private:
  /// How many elements a sum adds up; none where the node is no sum, or run time tells.
  std::optional<double> terms_of(const Node& node) const {
    double terms = 1;
    if (const ReduceAttrs* sum = node.attrs.get_if<ReduceAttrs>()) {
      if (node.op != &ops::reduce || sum->kind != Reduction::sum) return std::nullopt;
      const Shape& shape = from_.type(node.operands[0]).tensor().shape;
      for (const int64_t axis : sum->axes) {
        const Dim& extent = shape[static_cast<size_t>(axis)];
        if (!extent.is_constant()) return std::nullopt;
        terms *= static_cast<double>(extent.constant());
      }
      return terms;
    }
    const ReduceWindowAttrs* pooled = node.attrs.get_if<ReduceWindowAttrs>();
    if (pooled == nullptr || node.op != &ops::reduce_window || pooled->kind != Reduction::sum) {
      return std::nullopt;
    }
    for (const int64_t extent : pooled->window) terms *= static_cast<double>(extent);
    return terms;
  }

  std::optional<ValueId> summed(const Node& node, double terms) {
    const std::optional<ScaledInteger> value = scaled_integer(from_, node.operands[0]);
    if (!value || terms < 2) return std::nullopt;
    std::optional<double> scale;
    if (value->scale && !(scale = splat_of(from_, *value->scale))) return std::nullopt;
    if (!(ranges_[value->integer].reach() * terms < 0x1p31)) return std::nullopt;
    const ValueId integer = rewriter_.copy_all(value->integer);
    b_.set_loc(node.loc);
    const ValueId words = converted(b_, integer, ElementType::i32);
    const ValueId sum = b_.emit(*node.op, {words}, node.attrs);
    const ValueId real = b_.emit(ops::cast, {sum}, CastAttrs{ElementType::f32});
    if (!scale) return real;
    return b_.emit(ops::mul, {real, filled(b_, node.type.tensor(), *scale)});
  }

  const Function& from_;
  ValueRanges ranges_;
  Rewriter rewriter_;
  Builder& b_;
};

}  // namespace

Module integer_sums(const Module& module) {
  Module result = module;
  for (auto& [name, function] : result.functions) function = IntegerSums(module, function).run();
  return result;
}

}  // namespace backcast
