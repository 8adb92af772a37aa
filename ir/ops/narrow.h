// Leaving indices out of a value, a channel say: which indices of an operator's operands and result
// stand or fall together, where a contraction with constants does without one, and what the
// operator looks like when they are gone. One row per kind of operator; an operator without a row
// keeps everything.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/module.h"
#include "ir/ops/interval.h"
#include "ir/ops/op_attrs.h"

namespace backcast {

struct NarrowContext {
  const Module& module;
  const Node& node;                           // of tensor type, with tensor operands
  std::span<const TensorType* const> types;   // of the operands
  std::span<const Bounds* const> bounds;      // of the operands
  std::span<const Literal* const> constants;  // the values of constant operands; null: others
  /// Operands that are made of constants only: any of their indices can be left out for free.
  const std::vector<bool>& flexible;
};

/// Operand number, or the node's result.
inline constexpr int kResult = -1;

struct AxisIndex {
  int value = kResult;
  int64_t axis = 0, index = 0;
};

/// What an operator asks of the indices along the axes of its operands and its result. It says
/// nothing of indices that may go regardless of others.
class AxisRelations {
 public:
  enum class Without { any_value, zero, nothing_read };

  virtual ~AxisRelations() = default;
  /// Both stay or both go.
  virtual void link(AxisIndex a, AxisIndex b) = 0;
  /// All indices along the axis stay.
  virtual void pin(int value, int64_t axis) = 0;
  /// The operator does without the index of an operand if that has the same value for every input
  /// and everywhere (any_value: which then goes into `Narrowed::shift`), if it is exactly zero, or
  /// if nothing is known but that it is finite (nothing_read).
  virtual void absorb(AxisIndex index, Without condition) = 0;
};

void relate_axes(const NarrowContext& context, AxisRelations& relations);

/// The indices that stay, in order, along the axes of a value that lose some.
using KeptIndices = std::map<int64_t, std::vector<int64_t>>;

struct Narrowed {
  Attrs attrs;
  /// Of flexible operands: what to leave out of them.
  std::vector<KeptIndices> flexible;
  /// What the absent indices contribute to the result: one dimension per dimension of the result,
  /// of extent 1 where it is the same along it. Nothing: zero.
  std::optional<Literal> shift;  // f64
  bool contracts = false;        // the result's missing indices were sums of products
};

/// `operands` and `result` keep what relate_axes allowed. Flexible operands have no entries.
Narrowed narrow(const NarrowContext& context, std::span<const KeptIndices> operands,
                const KeptIndices& result);

/// The elements of a constant that stay.
Literal keep_indices(const Literal& literal, const KeptIndices& kept);

}  // namespace backcast
