// Values between the elements of a map, for rules whose places are data: RoiAlign, DeformConv.
#pragma once

#include "frontend/node_context.h"

namespace backcast {

/// The two elements of an axis that a position lies between; one where the axis has no more.
struct LinearTaps {
  ValueId first;                 // number of the first, a whole float that lies on the axis
  std::vector<ValueId> weights;  // what it and the next one count
};
/// Elements beyond the ends count as zeros.
LinearTaps linear_taps(Emitter& e, ValueId position, int64_t extent);

/// One axis of an interpolation.
struct TapAxis {
  std::vector<ValueId> weights;
  Ints dims;         // which dimensions of the places the weights have
  int64_t rows = 1;  // that lie between neighbours
};

/// [N, C, spatial…] as rows of neighbouring channels, [N · spatial… · groups, C / groups]. Its
/// elements can be numbered with 32 bits: microcontrollers have no instruction from floats to more.
ValueId channel_rows(const NodeContext& n, ValueId x, int64_t groups = 1);

/// Rows numbered by `first` and their next neighbours along the axes, weighted and combined by
/// `combine`, add or max: […, columns] for places of any shape. A first row has all its neighbours.
ValueId interpolated(Emitter& e, ValueId rows, ValueId first, const std::vector<TapAxis>& axes,
                     const OpDef& combine = ops::add);

/// A spatial extent, or a CompileError that asks for it.
int64_t fixed_extent(const NodeContext& n, const Dim& extent);

}  // namespace backcast
