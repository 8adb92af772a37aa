// What the files of narrow.h share: relations along axes, and the rows of contractions.
#pragma once

#include "ir/ops/narrow.h"

namespace backcast::narrowing {

/// Of an operand, or of the result.
const TensorType& type_of(const NarrowContext& c, int value);
/// -1: not a constant.
int64_t extent_of(const NarrowContext& c, int value, int64_t axis);
void pin_all(const NarrowContext& c, int value, AxisRelations& r);
/// Index `offset` + i of axis a_axis and index i of b_axis, for all indices of the latter.
void link_range(const NarrowContext& c, int a, int64_t a_axis, int64_t offset, int b,
                int64_t b_axis, AxisRelations& r);
/// An axis of an operand and one of the result, index by index.
void link_axis(const NarrowContext& c, int operand, int64_t axis, int64_t result_axis,
               AxisRelations& r);

void relate_conv(const NarrowContext& c, AxisRelations& r);
void narrow_conv(const NarrowContext& c, std::span<const KeptIndices> operands,
                 const KeptIndices& result, Narrowed& narrowed);
void relate_dot(const NarrowContext& c, AxisRelations& r);
void narrow_dot(const NarrowContext& c, std::span<const KeptIndices> operands,
                const KeptIndices& result, Narrowed& narrowed);

}  // namespace backcast::narrowing
