#include "passes/graph/requantise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/value_ranges.h"

namespace backcast {
namespace {

// Beyond this, the nearest integer of an f32 takes more than two operations (see lower_cast).
constexpr double kLargest = 0x1p21;

/// cast(round_even(value) + zero): what is rounded, as old values, and what it is clipped to.
struct Rounded {
  ValueId value;
  double zero = 0, low = 0, high = 0;
  bool may_be_nan = false;
};

class Requantisation {
 public:
  Requantisation(const Module& module, const Function& from, const TargetInfo& target)
      : from_(from),
        target_(target),
        users_(static_cast<size_t>(from.size())),
        ranges_(module, from),
        rewriter_(module, from),
        b_(rewriter_.builder()) {
    for (int64_t i = 0; i < from.size(); ++i) {
      for (const ValueId operand : from.node(ValueId(i)).operands) {
        users_[static_cast<size_t>(operand.index)].push_back(i);
      }
    }
  }

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      if (const std::optional<Rounded> rounded = rounded_at(id)) {
        store(id, *rounded);
      } else if (node.op == &ops::concat) {
        store_joined(id);
      } else if (const std::optional<ValueId> same = less_zero_point(node)) {
        rewriter_.map(id, *same);
      }
    }
    return rewriter_.finish();
  }

 private:
  const Node& operand(const Node& node, size_t i) const { return from_.node(node.operands[i]); }
  bool used_once(ValueId id) const {
    return users_[static_cast<size_t>(id.index)].size() == 1 && id != from_.result;
  }

  // ---- what is rounded -------------------------------------------------------------------------

  std::optional<Rounded> rounded_at(ValueId id) const {
    const Node& node = from_.node(id);
    if (node.op != &ops::cast || !node.type.is_tensor()) return std::nullopt;
    const ElementType to = node.type.tensor().element;
    if (!is_integer(to) || byte_size(to) > 2) return std::nullopt;
    Rounded result{node.operands[0]};
    if (operand(node, 0).op == &ops::add) {
      const Node& sum = operand(node, 0);
      const std::optional<double> zero = splat_of(from_, sum.operands[1]);
      if (!zero || *zero != std::nearbyint(*zero) || std::abs(*zero) > 0x1p16) return std::nullopt;
      result = {sum.operands[0], *zero};
    }
    const Node& round = from_.node(result.value);
    if (round.op != &ops::round_even || round.type.tensor().element != ElementType::f32) {
      return std::nullopt;
    }
    result.value = round.operands[0];
    result.may_be_nan = !std::isfinite(size_of(result.value));
    // An instruction that rounds is as fast.
    if (result.may_be_nan && target_.has_rounding) return std::nullopt;
    const ValueRange range = *range_of(to);
    result.low = range.low - result.zero;
    result.high = range.high - result.zero;
    return result;
  }

  /// A bound of every element's absolute value; infinite where it may be anything.
  double size_of(ValueId id) const { return ranges_[id].reach(); }

  /// The integers that are scaled by what they are divided by: rounded, the quotients are these.
  std::optional<ValueId> rescaled(ValueId id) const {
    const Node& node = from_.node(id);
    if (node.op != &ops::div || operand(node, 0).op != &ops::mul) return std::nullopt;
    const Node &product = operand(node, 0), &whole = from_.node(product.operands[0]);
    const std::optional<double> scale = splat_of(from_, product.operands[1]);
    if (!scale || scale != splat_of(from_, node.operands[1]) || whole.op != &ops::cast ||
        !is_integer(from_.type(whole.operands[0]).tensor().element)) {
      return std::nullopt;
    }
    // Two roundings move a quotient by less than half.
    const bool is_normal = *scale >= 0x1p-100 && *scale <= 0x1p100;
    if (!is_normal || !(size_of(whole.operands[0]) <= kLargest)) return std::nullopt;
    return whole.operands[0];
  }

  /// Integers that are known, and `shift`, clipped if need be.
  ValueId clipped_integers(ValueId id, const Rounded& rounded, double shift) {
    const ValueRange range = ranges_[id];
    const ValueId integer = shifted(in_i32(rewriter_.copy_all(id)), shift);
    if (range.low >= rounded.low && range.high <= rounded.high) return integer;
    return clipped(integer, rounded.low + shift, rounded.high + shift);
  }

  ValueId clipped(ValueId x, double low, double high) {
    const ElementType element = b_.tensor_type(x).element;
    return b_.emit(ops::clamp, {x, b_.scalar(element, low), b_.scalar(element, high)});
  }

  /// x, or where that is none, `otherwise`: a conversion makes 0 of what is no number.
  ValueId number(ValueId x, double otherwise) {
    const ValueId wide = filled(b_, b_.tensor_type(x), otherwise);
    return b_.emit(ops::select, {b_.emit(ops::is_nan, {x}), wide, x});
  }

  /// The nearest integers and `shift`, clipped.
  ValueId nearest_of(const Rounded& rounded, const Node& node, double shift) {
    ValueId from = rounded.value;
    if (const std::optional<ValueId> known = rescaled(from)) {
      b_.set_loc(node.loc);
      return clipped_integers(*known, rounded, shift);
    }
    // Divisions come first: a rectifier before them joins the clipping.
    std::optional<ValueId> value = undivided(from);
    if (!value) {
      if (from_.node(from).op == &ops::relu && rounded.low >= 0) from = operand_of(from);
      value = rewriter_.copy_all(from);
    } else if (b_.node(*value).op == &ops::relu && rounded.low >= 0) {
      value = b_.node(*value).operands[0];
    }
    b_.set_loc(node.loc);
    double within = size_of(rounded.value);
    if (rounded.low >= 0) within = std::max(within, size_of_rectified(rounded.value));
    const bool clip_first = !(within <= kLargest);
    if (rounded.may_be_nan) value = number(*value, -rounded.zero);
    if (clip_first) {
      value = clipped(*value, rounded.low, rounded.high);
      within = std::max(std::abs(rounded.low), std::abs(rounded.high));
    }
    const CastAttrs nearest{ElementType::i32, Rounding::nearest_even,
                            std::exp2(std::ceil(std::log2(std::max(within, 1.0))))};
    const ValueId integer = shifted(b_.emit(ops::cast, {*value}, nearest), shift);
    return clip_first ? integer : clipped(integer, rounded.low + shift, rounded.high + shift);
  }

  /// Chooses what is stored of the integers around the zero point, if they are; readers convert.
  void store(ValueId id, const Rounded& rounded) {
    const Node& node = from_.node(id);
    const CastAttrs as_before{node.type.tensor().element};
    const std::optional<ElementType> type = factor_type({rounded.low, rounded.high}, target_);
    const bool fits_byte = type && byte_size(*type) == 1;
    if (target_.vector_bits == 0 && !fits_byte && byte_size(as_before.to) == 1 &&
        !is_factor(id, rounded.zero)) {
      // Half of 16 bits, for an addition where it is read.
      const ValueId byte = b_.emit(ops::cast, {nearest_of(rounded, node, rounded.zero)}, as_before);
      nearest_[id.index] = {shifted(in_i32(byte), -rounded.zero), rounded.zero};
      rewriter_.map(id, byte);
      return;
    }
    ValueId integer = nearest_of(rounded, node, 0);
    if (type) integer = in_i32(b_.emit(ops::cast, {integer}, CastAttrs{*type}));
    nearest_[id.index] = {integer, rounded.zero};
    rewriter_.map(id, b_.emit(ops::cast, {shifted(integer, rounded.zero)}, as_before));
  }

  /// What is stored of one part after the other, if they are stored alike.
  void store_joined(ValueId id) {
    const Node& node = from_.node(id);
    const auto widens = [&](int64_t user) {
      const Node& reader = from_.node(ValueId(user));
      return reader.op == &ops::cast && reader.type.tensor().element == ElementType::i32;
    };
    if (std::ranges::none_of(users_[static_cast<size_t>(id.index)], widens)) return;
    std::vector<ValueId> parts;
    std::optional<Stored> first;
    for (const ValueId operand : node.operands) {
      const std::optional<Stored> part = stored_of(operand);
      if (!part || !alike(*part, first.value_or(*part))) return;
      parts.push_back(part->narrow);
      if (!first) first = part;
    }
    b_.set_loc(node.loc);
    const ValueId integer = shifted(in_i32(b_.emit(ops::concat, parts, node.attrs)), first->shift);
    nearest_[id.index] = {integer, first->zero};
    const CastAttrs as_before{node.type.tensor().element};
    rewriter_.map(id, b_.emit(ops::cast, {shifted(integer, first->zero)}, as_before));
  }

  /// The integers around `zero` are in_i32(narrow) + shift.
  struct Stored {
    ValueId narrow;
    double shift = 0, zero = 0;
  };

  /// Nothing where an old value was not rounded, or is stored in 32 bits.
  std::optional<Stored> stored_of(ValueId old) {
    const auto found = nearest_.find(old.index);
    if (found == nearest_.end()) return std::nullopt;
    auto [integer, zero] = found->second;
    double shift = 0;
    if (const Node& sum = b_.node(integer); sum.op == &ops::add) {
      const std::optional<double> by = splat_of(b_, sum.operands[1]);
      if (!by) return std::nullopt;
      shift = *by;
      integer = sum.operands[0];
    }
    const Node& wide = b_.node(integer);
    if (wide.op != &ops::cast) return std::nullopt;
    const ValueId narrow = wide.operands[0];  // or what was rounded to 32 bits
    if (!is_integer(b_.tensor_type(narrow).element)) return std::nullopt;
    return Stored{narrow, shift, zero};
  }

  bool alike(const Stored& a, const Stored& b) {
    return b_.tensor_type(a.narrow).element == b_.tensor_type(b.narrow).element &&
           a.shift == b.shift && a.zero == b.zero;
  }

  ValueId in_i32(ValueId x) { return converted(b_, x, ElementType::i32); }

  /// Does a product read the value less its zero point, as integer_products has it stored?
  bool is_factor(ValueId id, double zero) const {
    const auto any_user = [&](int64_t value, const auto& holds) {
      const std::vector<int64_t>& users = users_[static_cast<size_t>(value)];
      return std::any_of(users.begin(), users.end(), holds);
    };
    const auto is_stored = [&](int64_t user) {
      const Node& node = from_.node(ValueId(user));
      return node.op == &ops::cast && is_integer(node.type.tensor().element) &&
             byte_size(node.type.tensor().element) <= 2;
    };
    return any_user(id.index, [&](int64_t wide) {
      if (from_.node(ValueId(wide)).op == &ops::concat) return is_factor(ValueId(wide), zero);
      if (from_.node(ValueId(wide)).op != &ops::cast) return false;
      if (zero == 0) return any_user(wide, is_stored);
      return any_user(wide, [&](int64_t less) {
        const Node& node = from_.node(ValueId(less));
        if (node.op != &ops::sub && node.op != &ops::add) return false;
        return any_user(less, is_stored);
      });
    });
  }

  ValueId operand_of(ValueId id) const { return from_.node(id).operands[0]; }

  /// Of what a rectifier, possibly before a division, leaves: both sides of zero.
  double size_of_rectified(ValueId id) const {
    const Node& node = from_.node(id);
    if (node.op == &ops::relu) return size_of(node.operands[0]);
    if (node.op != &ops::div || operand(node, 0).op != &ops::relu) return 0;
    const std::optional<double> by = splat_of(from_, node.operands[1]);
    return by ? size_of(operand(node, 0).operands[0]) / std::abs(*by) : size_of(id);
  }

  ValueId shifted(ValueId integer, double zero) {
    if (zero == 0) return integer;
    const Node& sum = b_.node(integer);
    if (const std::optional<double> before =
            sum.op == &ops::add ? splat_of(b_, sum.operands[1]) : std::nullopt) {
      zero += *before;
      integer = sum.operands[0];
      if (zero == 0) return integer;
    }
    const TensorType type{ElementType::i32, b_.tensor_type(integer).shape};
    return b_.emit(ops::add, {integer, filled(b_, type, zero)});
  }

  /// cast_i32(q) - z where q was rounded, around the same z as a rule.
  std::optional<ValueId> less_zero_point(const Node& node) {
    const Node* wide = &node;
    double zero = 0;
    if (node.op == &ops::add || node.op == &ops::sub) {
      const std::optional<double> shift = splat_of(from_, node.operands[1]);
      if (!shift) return std::nullopt;
      zero = node.op == &ops::sub ? *shift : -*shift;
      wide = &operand(node, 0);
    }
    if (wide->op != &ops::cast || wide->type.tensor().element != ElementType::i32) {
      return std::nullopt;
    }
    const auto found = nearest_.find(wide->operands[0].index);
    if (found == nearest_.end()) return std::nullopt;
    const auto& [nearest, around] = found->second;
    if (around != zero && wide == &node) return std::nullopt;
    b_.set_loc(node.loc);
    return shifted(nearest, around - zero);
  }

  // ---- divisions -------------------------------------------------------------------------------

  /// x / s with s in the constants of x.
  std::optional<ValueId> undivided(ValueId id) {
    const Node& node = from_.node(id);
    if (node.op != &ops::div || !used_once(id)) return std::nullopt;
    const std::optional<double> by = splat_of(from_, node.operands[1]);
    if (!by || !(*by > 0) || !std::isfinite(*by) || !may_scale(node.operands[0])) {
      return std::nullopt;
    }
    return scaled(node.operands[0], 1 / *by);
  }

  bool is_spread_constant(ValueId id) const {
    const Literal* literal = spread_constant_of(from_, id);
    return literal != nullptr && literal->element() == ElementType::f32;
  }

  /// A sum of values with constant factors, which nothing else reads, possibly rectified.
  bool may_scale(ValueId id) const {
    if (is_spread_constant(id)) return true;
    const Node& node = from_.node(id);
    if (!used_once(id)) return false;
    if (node.op == &ops::relu) return may_scale(node.operands[0]);
    if (node.op == &ops::add) return may_scale(node.operands[0]) && may_scale(node.operands[1]);
    return node.op == &ops::mul &&
           (is_spread_constant(node.operands[0]) || is_spread_constant(node.operands[1]));
  }

  ValueId scaled(ValueId id, double factor) {
    const Node& node = from_.node(id);
    if (is_spread_constant(id)) return scaled_constant(id, factor);
    std::vector<ValueId> operands;
    if (node.op == &ops::mul) {
      const size_t side = is_spread_constant(node.operands[1]) ? 1 : 0;
      operands = {rewriter_.copy_all(node.operands[1 - side]),
                  scaled_constant(node.operands[side], factor)};
    } else {
      for (ValueId part : node.operands) operands.push_back(scaled(part, factor));
    }
    b_.set_loc(node.loc);
    return b_.emit(*node.op, operands, node.attrs);
  }

  ValueId scaled_constant(ValueId id, double factor) {
    const Node& node = from_.node(id);
    const Literal& literal = *spread_constant_of(from_, id);
    std::vector<double> values;
    for (int64_t i = 0; i < literal.element_count(); ++i) {
      values.push_back(literal.as_double(i) * factor);
    }
    b_.set_loc(node.loc);
    const ValueId small =
        b_.constant(Literal::from_doubles(literal.element(), literal.shape(), values));
    return node.op == &ops::broadcast ? b_.emit(ops::broadcast, {small}, node.attrs) : small;
  }

  const Function& from_;
  const TargetInfo& target_;
  std::vector<std::vector<int64_t>> users_;  // by value number
  ValueRanges ranges_;
  Rewriter rewriter_;
  Builder& b_;
  /// By old value, rounded or joined of such: new integer, zero point.
  std::map<int64_t, std::pair<ValueId, double>> nearest_;
};

bool rounds(const Function& function) {
  return std::any_of(function.nodes.begin(), function.nodes.end(),
                     [](const Node& node) { return node.op == &ops::round_even; });
}

}  // namespace

Module requantise(const Module& module, const TargetInfo& target) {
  Module result = module;
  for (auto& [name, function] : result.functions) {
    if (rounds(function)) function = Requantisation(module, function, target).run();
  }
  return result;
}

}  // namespace backcast
