#include "passes/graph/factor.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/centred.h"
#include "passes/graph/dimensions.h"
#include "passes/graph/steps_behind.h"

namespace backcast {
namespace {

// A product of more operands is taken as it stands.
constexpr size_t kMaxFactors = 12;
constexpr size_t kMaxTerms = 4;
// A division costs about as much as this many products.
constexpr int64_t kManyShare = 8;

/// scale * product of `over` / product of `under`.
struct Product {
  double scale = 1;
  std::vector<ValueId> over, under;
};

class Factoring {
 public:
  Factoring(const Module& module, const Function& from)
      : from_(from),
        rewriter_(module, from),
        b_(rewriter_.builder()),
        steps_behind_(steps_behind(from)) {
    uses_.assign(from.nodes.size(), 0);
    for (const Node& node : from.nodes) {
      for (ValueId operand : node.operands) ++uses_[static_cast<size_t>(operand.index)];
    }
  }

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      b_.set_loc(node.loc);
      std::optional<ValueId> better;
      if (is_float_tensor(node.type) && node.op == &ops::add) {
        better = collect_equal(node);
        if (!better) better = collect(node);
      }
      if (is_float_tensor(node.type) && node.op == &ops::div &&
          !steps_behind_[static_cast<size_t>(i)]) {
        better = multiply(node);
      }
      if (is_float_tensor(node.type) && node.op == &ops::reduce) better = split_sum(node);
      if (better) {
        rewriter_.map(id, *better);
      } else {
        rewriter_.copy(id);
      }
      if (std::optional<Ints> axes = centred_along(from_, node)) centred_[now(id).index] = *axes;
    }
    return rewriter_.finish();
  }

 private:
  static bool is_float_tensor(const Type& type) {
    return type.is_tensor() && is_float(type.tensor().element);
  }

  ValueId now(ValueId old) const { return rewriter_[old]; }

  bool take_apart(ValueId id, bool under, Product& product) const {
    if (product.over.size() + product.under.size() >= kMaxFactors) return false;
    const Node& node = b_.node(id);
    if (node.op == &ops::mul || node.op == &ops::div) {
      const bool second = node.op == &ops::div ? !under : under;
      return take_apart(node.operands[0], under, product) &&
             take_apart(node.operands[1], second, product);
    }
    if (node.op == &ops::neg) {
      product.scale = -product.scale;
      return take_apart(node.operands[0], under, product);
    }
    if (const std::optional<double> c = splat_of(b_, id); c && *c != 0) {
      product.scale *= under ? 1 / *c : *c;
      return true;
    }
    (under ? product.under : product.over).push_back(id);
    return true;
  }

  /// What both hold, taken out of both.
  static std::vector<ValueId> take_common(std::vector<ValueId>& a, std::vector<ValueId>& b) {
    std::vector<ValueId> common;
    for (size_t i = a.size(); i-- > 0;) {
      const auto found = std::find(b.begin(), b.end(), a[i]);
      if (found == b.end()) continue;
      common.push_back(a[i]);
      b.erase(found);
      a.erase(a.begin() + static_cast<int64_t>(i));
    }
    return common;
  }

  /// The scale goes to a factor that many elements share, if there is one.
  void scale_narrow(Product& product) {
    for (ValueId& factor : product.over) {
      const Node wide = b_.node(factor);
      if (wide.op != &ops::broadcast) continue;
      const ValueId narrow = wide.operands[0];
      const TensorType type = b_.tensor_type(narrow);
      const ValueId scaled = b_.emit(ops::mul, {filled(b_, type, product.scale), narrow});
      factor = b_.emit(ops::broadcast, {scaled}, wide.attrs);
      product.scale = 1;
      return;
    }
  }

  /// `first`, if given, times the product. Early values first, so that what a derivative brings is
  /// multiplied last.
  ValueId write(Product product, const TensorType& type, std::optional<ValueId> first = {}) {
    const auto earlier = [](ValueId x, ValueId y) { return x.index < y.index; };
    std::sort(product.over.begin(), product.over.end(), earlier);
    std::sort(product.under.begin(), product.under.end(), earlier);
    if (product.scale != 1) scale_narrow(product);
    std::optional<ValueId> value = first;
    const auto multiply_by = [&](ValueId factor) {
      value = value ? b_.emit(ops::mul, {*value, factor}) : factor;
    };
    if (product.scale != 1 || (!first && product.over.empty())) {
      multiply_by(filled(b_, type, product.scale));
    }
    for (ValueId factor : product.over) multiply_by(factor);
    for (ValueId factor : product.under) value = b_.emit(ops::div, {*value, factor});
    return *value;
  }

  /// (a + t) + t = a + 2t.
  std::optional<ValueId> collect_equal(const Node& node) {
    for (size_t i = 0; i < 2; ++i) {
      const ValueId sum = node.operands[i], term = node.operands[1 - i];
      const Node& inner = from_.node(sum);
      if (inner.op != &ops::add || uses_[static_cast<size_t>(sum.index)] != 1) continue;
      for (size_t k = 0; k < 2; ++k) {
        if (inner.operands[k] != term) continue;
        Product twice;
        if (!take_apart(now(term), false, twice)) return std::nullopt;
        twice.scale *= 2;
        return b_.emit(ops::add, {now(inner.operands[1 - k]), write(twice, node.type.tensor())});
      }
    }
    return std::nullopt;
  }

  std::optional<ValueId> collect(const Node& node) {
    for (ValueId operand : node.operands) {
      if (uses_[static_cast<size_t>(operand.index)] != 1) return std::nullopt;
    }
    Product left, right, common;
    if (!take_apart(now(node.operands[0]), false, left) ||
        !take_apart(now(node.operands[1]), false, right)) {
      return std::nullopt;
    }
    if (left.over.size() + left.under.size() + right.over.size() + right.under.size() < 3) {
      return std::nullopt;
    }
    common.over = take_common(left.over, right.over);
    common.under = take_common(left.under, right.under);
    if (common.over.empty()) return std::nullopt;
    if (left.scale == right.scale) {
      common.scale = left.scale;
      left.scale = right.scale = 1;
    }
    const TensorType type = node.type.tensor();
    if (left.over.empty() && left.under.empty() && right.over.empty() && right.under.empty()) {
      common.scale *= left.scale + right.scale;
      return write(common, type);
    }
    // The sum counts as early: it holds what the common factors do not bring.
    return write(common, type, b_.emit(ops::add, {write(left, type), write(right, type)}));
  }

  std::optional<ValueId> multiply(const Node& node) {
    const ValueId divisor = now(node.operands[1]);
    const TensorType type = node.type.tensor();
    // A divisor that many elements share is inverted once.
    const Node wide = b_.node(divisor);
    if (wide.op != &ops::broadcast) return std::nullopt;
    const TensorType narrow = b_.tensor_type(wide.operands[0]);
    if (!type.is_static() ||
        narrow.element_count().constant() * kManyShare > type.element_count().constant()) {
      return std::nullopt;
    }
    const ValueId inverse = b_.emit(ops::div, {filled(b_, narrow, 1), wide.operands[0]});
    const ValueId spread = b_.emit(ops::broadcast, {inverse}, wide.attrs);
    return b_.emit(ops::mul, {now(node.operands[0]), spread});
  }

  // ---- sums of sums -----------------------------------------------------------------------------

  /// The terms of a sum; false when there are too many.
  bool terms_of(ValueId id, double sign, std::vector<std::pair<double, ValueId>>& terms) const {
    const Node& node = b_.node(id);
    if (node.op != &ops::add && node.op != &ops::sub) {
      terms.emplace_back(sign, id);
      return terms.size() <= kMaxTerms;
    }
    const double second = node.op == &ops::sub ? -sign : sign;
    return terms_of(node.operands[0], sign, terms) && terms_of(node.operands[1], second, terms);
  }

  /// Whether the sum of these factors along `axes` is zero whatever the values are.
  bool sums_to_zero(const Product& inside, const Ints& axes) const {
    if (inside.over.size() != 1 || !inside.under.empty()) return false;
    const auto centred = centred_.find(inside.over[0].index);
    return centred != centred_.end() &&
           std::all_of(centred->second.begin(), centred->second.end(), [&](int64_t axis) {
             return std::find(axes.begin(), axes.end(), axis) != axes.end();
           });
  }

  /// A factor that does not vary along the reduced axes, as one of the result; nothing for others.
  std::optional<ValueId> outside(ValueId factor, const Ints& axes, const TensorType& result) {
    const Node wide = b_.node(factor);
    if (wide.op != &ops::broadcast) return std::nullopt;
    const Ints& dims = wide.attrs.as<BroadcastAttrs>().dims;
    const BroadcastAttrs attrs{result.shape, without(dims, axes)};
    if (attrs.dims.size() != dims.size()) return std::nullopt;
    return b_.emit(ops::broadcast, {wide.operands[0]}, attrs);
  }

  /// The sum of a sum that is needed for itself, too: the sums of its terms, without the factors
  /// that every element shares. Sums over the same tensors are then taken in one pass.
  std::optional<ValueId> split_sum(const Node& node) {
    const ReduceAttrs attrs = node.attrs.as<ReduceAttrs>();
    if (attrs.kind != Reduction::sum) return std::nullopt;
    ValueId operand = node.operands[0];
    double sign_of_all = 1;
    for (; from_.node(operand).op == &ops::neg; sign_of_all = -sign_of_all) {
      operand = from_.node(operand).operands[0];
    }
    if (uses_[static_cast<size_t>(operand.index)] < 2) return std::nullopt;
    std::vector<std::pair<double, ValueId>> terms;
    const ValueId summed = now(operand);
    if (!terms_of(summed, sign_of_all, terms) || terms.size() < 2) return std::nullopt;
    const TensorType type = b_.tensor_type(summed), result = node.type.tensor();
    std::optional<ValueId> total;
    for (const auto& [sign, term] : terms) {
      Product whole, inside, around;
      if (!take_apart(term, false, whole)) return std::nullopt;
      around.scale = sign * whole.scale;
      for (ValueId factor : whole.over) {
        const std::optional<ValueId> small = outside(factor, attrs.axes, result);
        (small ? around.over : inside.over).push_back(small.value_or(factor));
      }
      for (ValueId factor : whole.under) {
        const std::optional<ValueId> small = outside(factor, attrs.axes, result);
        (small ? around.under : inside.under).push_back(small.value_or(factor));
      }
      if (sums_to_zero(inside, attrs.axes)) continue;
      around.over.push_back(b_.emit(ops::reduce, {write(inside, type)}, node.attrs));
      const ValueId part = write(around, result);
      total = total ? b_.emit(ops::add, {*total, part}) : part;
    }
    return total ? *total : filled(b_, result, 0);
  }

  const Function& from_;
  Rewriter rewriter_;
  Builder& b_;
  std::vector<int64_t> uses_;
  std::map<int64_t, Ints> centred_;  // of the new function: x - mean(x), and along which axes
  const std::vector<char> steps_behind_;
};

}  // namespace

Module factor(const Module& module) {
  Module result = module;
  if (module.states.empty()) return result;
  for (auto& [name, function] : result.functions) function = Factoring(module, function).run();
  return result;
}

}  // namespace backcast
