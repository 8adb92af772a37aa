#include "passes/graph/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/value_ranges.h"

namespace backcast {
namespace {

// Factors are 32 bits with their sign, sums 64 with room for what rounds them.
constexpr int kFactorBits = 31, kSumBits = 62;
// How far a sum may be from the exact one: no farther than f32's own roundings take it.
constexpr double kLargestError = 0x1p-13;
// With more bits behind the point a sum is a half by accident only.
constexpr int kBitsOfAccidents = 24;

struct Term {
  ValueId integer;
  std::optional<ValueId> factor;  // a spread constant; none: 1
};

/// Σ float(integer)·factor + Σ constants.
struct Sum {
  std::vector<Term> terms;
  std::vector<ValueId> constants;
};

/// Bits behind the point, and in what sums are computed.
struct Form {
  int shift = 0;
  ElementType element = ElementType::i64;
};

class FixedPoint {
 public:
  FixedPoint(const Module& module, const Function& from)
      : from_(from), ranges_(module, from), rewriter_(module, from), b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      const CastAttrs* attrs = node.attrs.get_if<CastAttrs>();
      if (attrs == nullptr || attrs->to != ElementType::i32 ||
          attrs->rounding != Rounding::nearest_even) {
        continue;
      }
      Sum sum;
      if (!collect(node.operands[0], sum) || sum.terms.empty()) continue;
      if (const std::optional<Form> form = form_of(sum)) {
        rewriter_.map(id, rounded(sum, *form, node));
      }
    }
    return rewriter_.finish();
  }

 private:
  const Literal* spread(ValueId id) const { return spread_constant_of(from_, id); }

  bool is_integer_cast(ValueId id) const {
    const Node& node = from_.node(id);
    return node.op == &ops::cast && node.type.tensor().element == ElementType::f32 &&
           is_integer(from_.type(node.operands[0]).tensor().element) &&
           byte_size(from_.type(node.operands[0]).tensor().element) <= 4;
  }

  /// False where the value is no such sum.
  bool collect(ValueId id, Sum& sum) const {
    const Node& node = from_.node(id);
    if (spread(id) != nullptr) {
      sum.constants.push_back(id);
      return true;
    }
    if (is_integer_cast(id)) {
      sum.terms.push_back({node.operands[0], std::nullopt});
      return true;
    }
    if (node.op == &ops::add) {
      return collect(node.operands[0], sum) && collect(node.operands[1], sum);
    }
    if (node.op != &ops::mul) return false;
    for (const size_t side : {0u, 1u}) {
      const ValueId factor = node.operands[side], other = node.operands[1 - side];
      if (spread(factor) == nullptr || !is_integer_cast(other)) continue;
      sum.terms.push_back({from_.node(other).operands[0], factor});
      return true;
    }
    return false;
  }

  /// The largest absolute value of a spread constant's elements; infinite where one is no number.
  double size_of(ValueId constant) const {
    double size = 0;
    for (const double value : spread(constant)->as_doubles()) {
      size = std::max(size, std::isnan(value) ? INFINITY : std::abs(value));
    }
    return size;
  }
  double size_of(const Term& term) const { return term.factor ? size_of(*term.factor) : 1; }

  /// How far rounding moves a constant that is multiplied by 2^shift, at most.
  double error_of(ValueId constant, int shift) const {
    double error = 0;
    for (double value : spread(constant)->as_doubles()) {
      value = std::ldexp(value, shift);
      error = std::max(error, std::abs(value - std::nearbyint(value)));
    }
    return error;
  }

  /// As many bits behind the point as factors and sums have room for; none where these are too few.
  std::optional<Form> form_of(const Sum& sum) const {
    double factor = 0, reach = 1;
    for (const Term& term : sum.terms) {
      factor = std::max(factor, size_of(term));
      reach += size_of(term) * ranges_[term.integer].reach();
    }
    for (const ValueId constant : sum.constants) reach += size_of(constant);
    // What is rounded is an i32.
    if (!(factor > 0) || !(reach < 0x1p30)) return std::nullopt;
    int shift = std::min(kFactorBits - 1 - std::ilogb(factor), kSumBits - 1 - std::ilogb(reach));
    if (shift < 1) return std::nullopt;
    double error = 0;
    for (const Term& term : sum.terms) {
      if (term.factor) error += error_of(*term.factor, shift) * ranges_[term.integer].reach();
    }
    for (const ValueId constant : sum.constants) error += error_of(constant, shift);
    if (std::ldexp(error, -shift) > kLargestError) return std::nullopt;
    shift = std::max(shift - common_zeros(sum, shift), 1);
    const bool is_short = std::ldexp(reach, shift) < 0x1p30;
    return Form{shift, is_short ? ElementType::i32 : ElementType::i64};
  }

  std::vector<double> scaled(ValueId constant, int shift) const {
    std::vector<double> values = spread(constant)->as_doubles();
    for (double& value : values) value = std::nearbyint(std::ldexp(value, shift));
    return values;
  }

  /// Bits at the end of all factors and constants that are zero: many where scales are powers of
  /// two.
  int common_zeros(const Sum& sum, int shift) const {
    int zeros = shift;
    const auto count = [&](const std::vector<double>& values) {
      for (const double value : values) {
        if (value == 0) continue;
        zeros = std::min(zeros, std::countr_zero(static_cast<uint64_t>(std::abs(value))));
      }
    };
    for (const Term& term : sum.terms) count(scaled(term, shift));
    for (const ValueId constant : sum.constants) count(scaled(constant, shift));
    return zeros;
  }

  std::vector<double> scaled(const Term& term, int shift) const {
    return term.factor ? scaled(*term.factor, shift) : std::vector{std::ldexp(1.0, shift)};
  }

  /// A constant of integers in the place of one of f32.
  ValueId in_place_of(ValueId constant, const std::vector<double>& values, ElementType element) {
    const Node& node = from_.node(constant);
    const ValueId small =
        b_.constant(Literal::from_doubles(element, spread(constant)->shape(), values));
    return node.op == &ops::broadcast ? b_.emit(ops::broadcast, {small}, node.attrs) : small;
  }

  ValueId rounded(const Sum& sum, const Form& form, const Node& node) {
    const auto [shift, element] = form;
    std::vector<ValueId> integers;
    for (const Term& term : sum.terms) integers.push_back(rewriter_.copy_all(term.integer));
    b_.set_loc(node.loc);
    const auto splat = [&](double value) {
      return filled(b_, {element, node.type.tensor().shape}, value);
    };
    ValueId total;
    const auto add = [&](ValueId part) {
      total = total.valid() ? b_.emit(ops::add, {total, part}) : part;
    };
    for (size_t i = 0; i < integers.size(); ++i) add(product(sum.terms[i], integers[i], form));
    const bool halves = may_be_half(sum, shift);
    // An odd integer before the point takes halves up, an even one does not.
    const double half = std::ldexp(1.0, shift - 1) - (halves ? 1 : 0);
    bool added = halves;
    for (const ValueId constant : sum.constants) {
      std::vector<double> values = scaled(constant, shift);
      for (double& value : values) value += added ? 0 : half;
      added = true;
      add(in_place_of(constant, values, element));
    }
    if (halves) {
      const ValueId before = b_.emit(ops::shift_right, {total, splat(shift)});
      add(b_.emit(ops::bit_and, {before, splat(1)}));
    }
    if (halves || !added) add(splat(half));
    return converted(b_, b_.emit(ops::shift_right, {total, splat(shift)}), ElementType::i32);
  }

  /// Whether halves are more than an accident: where scales are powers of two, or of integers that
  /// are zero.
  bool may_be_half(const Sum& sum, int shift) const {
    const auto is_half = [](double value) { return value - std::floor(value) == 0.5; };
    return shift <= kBitsOfAccidents || std::ranges::any_of(sum.constants, [&](ValueId constant) {
             return std::ranges::any_of(spread(constant)->as_doubles(), is_half);
           });
  }

  ValueId product(const Term& term, ValueId integer, const Form& form) {
    const ValueId wide = converted(b_, integer, form.element);
    const std::vector<double> factors = scaled(term, form.shift);
    if (std::ranges::all_of(factors, [](double factor) { return factor == 1; })) return wide;
    const ValueId factor = term.factor ? in_place_of(*term.factor, factors, form.element)
                                       : filled(b_, b_.tensor_type(wide), factors[0]);
    return b_.emit(ops::mul, {wide, factor});
  }

  const Function& from_;
  ValueRanges ranges_;
  Rewriter rewriter_;
  Builder& b_;
};

}  // namespace

Module fixed_point(const Module& module, const TargetInfo& target) {
  if (target.has_f32) return module;
  Module result = module;
  for (auto& [name, function] : result.functions) function = FixedPoint(module, function).run();
  return result;
}

}  // namespace backcast
