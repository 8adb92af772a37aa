#include "passes/graph/integer_products.h"

#include <algorithm>
#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/contraction_axes.h"
#include "passes/graph/value_ranges.h"

namespace backcast {
namespace {

bool is_integer_type(const Type& type) {
  return type.is_tensor() && is_integer(type.tensor().element) &&
         byte_size(type.tensor().element) <= 4 && type.tensor().element != ElementType::u32;
}

/// value = float(integer) · scale, with values of the function that is read.
struct Scaled {
  ValueId integer;
  std::optional<ValueId> scale;  // a broadcast of a constant, of the integer's shape
};

class IntegerProducts {
 public:
  IntegerProducts(const Module& module, const Function& from, const TargetInfo& target)
      : from_(from),
        target_(target),
        ranges_(module, from),
        rewriter_(module, from),
        b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      if (!is_contraction(node) || !node.type.tensor().is_static()) continue;
      if (is_integer_type(node.type)) {
        rewriter_.map(id, product_of_narrow(node, node.operands));
      } else if (node.type.tensor().element == ElementType::f32) {
        if (std::optional<ValueId> product = scaled_product(node)) rewriter_.map(id, *product);
      }
    }
    return rewriter_.finish();
  }

 private:
  std::optional<Scaled> integer_form(ValueId id) const {
    const Node& node = from_.node(id);
    if (node.op == &ops::cast) {
      const Node& inner = from_.node(node.operands[0]);
      if (is_integer_type(inner.type)) return Scaled{node.operands[0], std::nullopt};
      if (inner.type == node.type) return integer_form(node.operands[0]);
      return std::nullopt;
    }
    if (node.op != &ops::mul) return std::nullopt;
    for (size_t side : {0u, 1u}) {
      const Node& scale = from_.node(node.operands[side]);
      if (scale.op != &ops::broadcast || !constant_of(from_, scale.operands[0])) continue;
      std::optional<Scaled> inner = integer_form(node.operands[1 - side]);
      if (!inner || inner->scale) continue;
      inner->scale = node.operands[side];
      return inner;
    }
    return std::nullopt;
  }

  /// Products that are added up for one element of the result.
  static double terms(const Node& contraction, const TensorType& weights) {
    double count = static_cast<double>(weights.element_count().constant());
    for (const auto& [d, _] : axes_in_result(contraction, 1, weights.rank())) {
      count /= static_cast<double>(weights.shape[static_cast<size_t>(d)].constant());
    }
    return count;
  }

  std::optional<ValueId> scaled_product(const Node& node) {
    std::vector<ValueId> integers;
    std::vector<std::pair<size_t, ValueId>> scales;
    double reach = 1;
    for (size_t side : {0u, 1u}) {
      const std::optional<Scaled> form = integer_form(node.operands[side]);
      if (!form || !from_.type(form->integer).tensor().is_static()) return std::nullopt;
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
    const ValueId factor = factors.size() == 2 ? product(factors[0], factors[1]) : factors[0];
    return b_.emit(ops::mul, {result, factor});
  }

  /// Of two broadcasts to one shape, on the smaller tensor where one of them is a scalar.
  ValueId product(ValueId x, ValueId y) {
    const Node a = b_.node(x), b = b_.node(y);
    const TensorType small = b_.tensor_type(a.operands[0]), large = b_.tensor_type(b.operands[0]);
    if (small.rank() > 0 && large.rank() > 0) return b_.emit(ops::mul, {x, y});
    if (small.rank() > 0) return product(y, x);
    const ValueId wide = b_.emit(ops::broadcast, {a.operands[0]}, BroadcastAttrs{large.shape, {}});
    return b_.emit(ops::broadcast, {b_.emit(ops::mul, {wide, b.operands[0]})}, b.attrs);
  }

  /// The contraction of integers in i32.
  ValueId product_of_narrow(const Node& node, const std::vector<ValueId>& integers) {
    std::vector<ValueId> operands;
    for (ValueId id : integers) operands.push_back(narrow(id));
    b_.set_loc(node.loc);
    for (ValueId& operand : operands) {
      if (b_.tensor_type(operand).element != ElementType::i32) {
        operand = b_.emit(ops::cast, {operand}, CastAttrs{ElementType::i32});
      }
    }
    return b_.emit(*node.op, operands, node.attrs);
  }

  /// `id` by way of the narrowest type that holds it, for all later readers.
  ValueId narrow(ValueId id) {
    const ValueId whole = rewriter_.copy_all(id);
    const Node& node = from_.node(id);
    if (node.type.tensor().element != ElementType::i32 || is_narrow(node)) return whole;
    const ValueRange range = ranges_[id];
    for (ElementType type : {ElementType::u8, ElementType::i8, ElementType::i16}) {
      if (byte_size(type) == 1 && target_.pair_products) continue;
      if (!range_of(type)->contains(range)) continue;
      b_.set_loc(node.loc);
      const ValueId stored = b_.emit(ops::cast, {whole}, CastAttrs{type});
      const ValueId wide = b_.emit(ops::cast, {stored}, CastAttrs{ElementType::i32});
      rewriter_.map(id, wide);
      return wide;
    }
    return whole;
  }

  /// Converted from a type of at most 16 bits, or constant.
  bool is_narrow(const Node& node) const {
    if (node.op == &ops::constant) return true;
    return node.op == &ops::cast && byte_size(from_.type(node.operands[0]).tensor().element) <= 2;
  }

  const Function& from_;
  const TargetInfo& target_;
  ValueRanges ranges_;
  Rewriter rewriter_;
  Builder& b_;
};

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
    if (has_integers(function)) function = IntegerProducts(module, function, target).run();
  }
  return result;
}

}  // namespace backcast
