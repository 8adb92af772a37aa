#include "passes/graph/scatter_updates.h"

#include <optional>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"

namespace backcast {
namespace {

/// What zeros are scattered with, times scalars.
struct Scattered {
  const Node* scatter = nullptr;
  std::vector<ValueId> factors;
  bool negative = false;
};

class Scattering {
 public:
  Scattering(const Module& module, const Function& from)
      : from_(from), rewriter_(module, from), b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      b_.set_loc(from_.node(id).loc);
      if (const std::optional<ValueId> result = scattered_into(from_.node(id))) {
        rewriter_.map(id, *result);
      } else {
        rewriter_.copy(id);
      }
    }
    return rewriter_.finish();
  }

 private:
  /// The sum or difference of a parameter and such a value.
  std::optional<ValueId> scattered_into(const Node& node) {
    if (node.op != &ops::add && node.op != &ops::sub) return std::nullopt;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (side == 1 && node.op == &ops::sub) break;
      const ValueId x = node.operands[side];
      std::optional<Scattered> found = take_apart(node.operands[1 - side]);
      if (!found || from_.node(x).op != &ops::parameter) continue;
      if (node.op == &ops::sub) found->negative = !found->negative;
      return emit(x, *found);
    }
    return std::nullopt;
  }

  std::optional<Scattered> take_apart(ValueId id) const {
    Scattered result;
    for (const Node* node = &from_.node(id);;) {
      if (node->op == &ops::scatter) {
        const bool adds = node->attrs.as<ScatterAttrs>().combiner == Combiner::add;
        if (!adds || splat_of(from_, node->operands[0]) != 0.0) return std::nullopt;
        result.scatter = node;
        return result;
      }
      if (node->op == &ops::neg) {
        result.negative = !result.negative;
        node = &from_.node(node->operands[0]);
        continue;
      }
      if (node->op != &ops::mul) return std::nullopt;
      const size_t factor = is_scalar(node->operands[0]) ? 0 : 1;
      if (!is_scalar(node->operands[factor])) return std::nullopt;
      result.factors.push_back(from_.node(node->operands[factor]).operands[0]);
      node = &from_.node(node->operands[1 - factor]);
    }
  }

  bool is_scalar(ValueId id) const {
    const Node& node = from_.node(id);
    return node.op == &ops::broadcast && node.attrs.as<BroadcastAttrs>().dims.empty();
  }

  ValueId emit(ValueId x, const Scattered& found) {
    ValueId updates = rewriter_[found.scatter->operands[2]];
    const Shape shape = b_.tensor_type(updates).shape;
    for (const ValueId factor : found.factors) {
      const ValueId wide = b_.emit(ops::broadcast, {rewriter_[factor]}, BroadcastAttrs{shape, {}});
      updates = b_.emit(ops::mul, {wide, updates});
    }
    if (found.negative) updates = b_.emit(ops::neg, {updates});
    return b_.emit(ops::scatter, {rewriter_[x], rewriter_[found.scatter->operands[1]], updates},
                   found.scatter->attrs);
  }

  const Function& from_;
  Rewriter rewriter_;
  Builder& b_;
};

}  // namespace

Module scatter_updates(const Module& module) {
  Module result = module;
  if (module.states.empty()) return result;
  for (auto& [name, function] : result.functions) function = Scattering(module, function).run();
  return result;
}

}  // namespace backcast
