// What is known of the elements of a value before any input is: bounds, and whether they depend on
// the inputs at all. One transfer rule per kind of operator, most of them the operator's own
// evaluation applied to the bounds; an operator without a rule is bounded by its type.
//
// Bounds hold for what is *computed*, not for real arithmetic:
//   - A sum of n terms whose absolute values add up to at most `reach` is off by less than
//     kRoundingSlack * (n + 8) * u * reach (u = 2^-24 in f32), in whatever order it is formed. The
//     slack also pays for convolutions by transforms.
//   - c + x is exactly c, with whatever partial sums of x c is combined first, when `reach` of x
//     times the slack is less than half the distance from |c| to the next smaller number of the
//     type: rounding to nearest returns c from every step.
//   - Infinite bounds mean that nothing is known; the value may be NaN.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "ir/graph/module.h"

namespace backcast {

inline constexpr double kRoundingSlack = 64;

/// Bounds of every element of a tensor. Along a dimension there is one entry for every index, or
/// one that holds for all of them.
struct Bounds {
  enum Plane { low, high, reach, varies };

  std::vector<int64_t> shape;
  /// low and high: of the computed value. reach: of every partial sum it may come from. varies: 0
  /// where the value is the same for every input (then bounds that differ show rounding only).
  std::array<std::vector<double>, 4> planes;
  int64_t terms = 1;  // of the sum that the value is

  int64_t count() const { return static_cast<int64_t>(planes[low].size()); }
  bool is_fixed(int64_t i) const { return planes[varies][static_cast<size_t>(i)] == 0; }
  /// The value of a fixed element, to rounding; of an integer, exactly.
  double value(int64_t i) const {
    const size_t at = static_cast<size_t>(i);
    return planes[low][at] == planes[high][at] ? planes[low][at]
                                               : (planes[low][at] + planes[high][at]) / 2;
  }

  static Bounds between(int64_t rank, double low, double high);
  static Bounds of(const Literal& literal);
  /// What a type says: nothing for floats, its range for integers.
  static Bounds of(const TensorType& type);
};

struct IntervalContext {
  const Module& module;
  const Node& node;                           // of tensor type
  std::span<const TensorType* const> types;   // of the operands, all tensors
  std::span<const Bounds* const> operands;    // one each
  std::span<const Literal* const> constants;  // of operands that are constants; null: others
};

/// Bounds of the node's result, valid for operands within theirs.
Bounds interval_of(const IntervalContext& context);

/// The fixed value that all elements with `index` along `axis` share, and whether it is exact.
struct SharedValue {
  double value = 0;
  bool exact = false;
};
std::optional<SharedValue> shared_value(const Bounds& bounds, int64_t axis, int64_t index);

namespace ops {

using IntervalRule = std::optional<Bounds> (*)(const IntervalContext&);
/// The families of rules; null for an operator that is in none.
IntervalRule elementwise_interval(const OpDef& op);
IntervalRule movement_interval(const OpDef& op);
IntervalRule contraction_interval(const OpDef& op);

/// Repeats entries until every dimension has the extent asked for.
Bounds expand(const Bounds& bounds, const std::vector<int64_t>& shape);
/// One entry along each of the axes for which `drop` is set.
Bounds merge_along(const Bounds& bounds, const std::vector<bool>& drop);
/// Applies the operator's own evaluation to planes of doubles.
std::vector<double> evaluate_planes(const IntervalContext& context, const Attrs& attrs,
                                    std::span<const std::vector<int64_t>> shapes,
                                    std::span<const std::vector<double>* const> planes);
/// The shape the operator infers for operands of these shapes.
std::vector<int64_t> infer_plane_shape(const IntervalContext& context, const Attrs& attrs,
                                       std::span<const std::vector<int64_t>> shapes);
/// Of the type's arithmetic and storage, relative to the result; 0: exact.
double rounding_unit(ElementType element);
/// What is smaller may become zero.
double flushed_below(ElementType element);
/// Widens the bounds of sums of `terms` terms by what rounding may add.
void widen_sums(Bounds& bounds, ElementType element);

}  // namespace ops
}  // namespace backcast
