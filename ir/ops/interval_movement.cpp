// Transfer rules of operators that move elements: the operator itself moves the bounds. Where the
// same bounds hold along a dimension, they stay one entry.
#include <algorithm>
#include <map>

#include "ir/ops/interval.h"
#include "ir/ops/ops.h"

namespace backcast::ops {
namespace {

// Entries of one result.
constexpr int64_t kMaxEntries = int64_t{1} << 20;

/// Runs the operator on every plane of its operands.
std::optional<Bounds> moved(const IntervalContext& context, const Attrs& attrs,
                            const std::vector<Bounds>& operands) {
  std::vector<std::vector<int64_t>> shapes;
  Bounds result;
  for (const Bounds& operand : operands) {
    shapes.push_back(operand.shape);
    result.terms = std::max(result.terms, operand.terms);
  }
  result.shape = infer_plane_shape(context, attrs, shapes);
  for (size_t p = 0; p < result.planes.size(); ++p) {
    std::vector<const std::vector<double>*> planes;
    for (const Bounds& operand : operands) planes.push_back(&operand.planes[p]);
    result.planes[p] = evaluate_planes(context, attrs, shapes, planes);
  }
  return result;
}

std::optional<Bounds> transpose_interval(const IntervalContext& context) {
  return moved(context, context.node.attrs, {*context.operands[0]});
}

std::optional<Bounds> broadcast_interval(const IntervalContext& context) {
  const BroadcastAttrs& attrs = context.node.attrs.as<BroadcastAttrs>();
  Bounds result = *context.operands[0];
  result.shape.assign(attrs.shape.size(), 1);
  for (size_t i = 0; i < attrs.dims.size(); ++i) {
    result.shape[static_cast<size_t>(attrs.dims[i])] = context.operands[0]->shape[i];
  }
  return result;
}

std::optional<Bounds> slice_interval(const IntervalContext& context) {
  SliceAttrs attrs = context.node.attrs.as<SliceAttrs>();
  for (size_t d = 0; d < attrs.start.size(); ++d) {
    if (context.operands[0]->shape[d] != 1) {
      if (!attrs.start[d].is_constant() || !attrs.limit[d].is_constant()) return std::nullopt;
      continue;
    }
    attrs.start[d] = 0;
    attrs.limit[d] = 1;
    attrs.stride[d] = 1;
  }
  return moved(context, attrs, {*context.operands[0]});
}

std::optional<Bounds> reverse_interval(const IntervalContext& context) {
  return moved(context, context.node.attrs, {*context.operands[0]});
}

std::optional<Bounds> concat_interval(const IntervalContext& context) {
  const size_t axis = static_cast<size_t>(context.node.attrs.as<ConcatAttrs>().axis);
  std::vector<int64_t> shape(context.node.type.tensor().shape.size(), 1);
  for (const Bounds* operand : context.operands) {
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = std::max(shape[d], operand->shape[d]);
  }
  std::vector<Bounds> operands;
  for (size_t k = 0; k < context.operands.size(); ++k) {
    const Dim& extent = context.types[k]->shape[axis];
    if (!extent.is_constant() || extent.constant() > kMaxEntries) return std::nullopt;
    shape[axis] = extent.constant();
    operands.push_back(expand(*context.operands[k], shape));
  }
  return moved(context, context.node.attrs, operands);
}

std::optional<Bounds> pad_interval(const IntervalContext& context) {
  const PadAttrs& attrs = context.node.attrs.as<PadAttrs>();
  std::vector<bool> padded;
  for (size_t d = 0; d < attrs.low.size(); ++d) {
    padded.push_back(
        !(attrs.low[d] == Dim(0) && attrs.high[d] == Dim(0) && attrs.interior[d] == 0));
  }
  Bounds result = merge_along(*context.operands[0], padded);
  if (std::find(padded.begin(), padded.end(), true) == padded.end()) return result;
  const Bounds& value = *context.operands[1];
  for (size_t i = 0; i < result.planes[0].size(); ++i) {
    double& low = result.planes[Bounds::low][i];
    double& high = result.planes[Bounds::high][i];
    const bool same = low == value.planes[Bounds::low][0] && high == value.planes[Bounds::high][0];
    double& varies = result.planes[Bounds::varies][i];
    varies = same ? std::max(varies, value.planes[Bounds::varies][0]) : 1;
    low = std::min(low, value.planes[Bounds::low][0]);
    high = std::max(high, value.planes[Bounds::high][0]);
    double& reach = result.planes[Bounds::reach][i];
    reach = std::max(reach, value.planes[Bounds::reach][0]);
  }
  return result;
}

/// Dimensions [from, from_end) of the operand hold what [to, to_end) of the result hold.
struct Group {
  size_t from, from_end, to, to_end;
};

/// The finest grouping; nothing when symbols do not line up.
std::optional<std::vector<Group>> groups_of(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group group{i, i, j, j};
    if (i < from.size() && j < to.size() && from[i] == to[j]) {
      groups.push_back({i, ++group.from_end, j, ++group.to_end});
      ++i, ++j;
      continue;
    }
    Dim left = 1, right = 1;
    do {
      const bool both = left.is_constant() && right.is_constant();
      if (!both) return std::nullopt;
      if (left.constant() <= right.constant() && i < from.size()) {
        left = left * from[i++];
      } else if (j < to.size()) {
        right = right * to[j++];
      } else if (i < from.size()) {
        left = left * from[i++];
      } else {
        return std::nullopt;
      }
    } while (!(left == right));
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

std::optional<Bounds> reshape_interval(const IntervalContext& context) {
  const Shape& from = context.types[0]->shape;
  const Shape& to = context.node.type.tensor().shape;
  const std::optional<std::vector<Group>> groups = groups_of(from, to);
  if (!groups) return std::nullopt;
  const Bounds& operand = *context.operands[0];
  std::vector<int64_t> before = operand.shape, after(to.size(), 1);
  int64_t count = 1;
  for (const Group& group : *groups) {
    bool uniform = true;
    for (size_t d = group.from; d < group.from_end; ++d) uniform = uniform && before[d] == 1;
    if (uniform) continue;
    for (size_t d = group.from; d < group.from_end; ++d) {
      before[d] = from[d].constant();  // only constants are in groups of several
      count *= before[d];
    }
    for (size_t d = group.to; d < group.to_end; ++d) after[d] = to[d].constant();
  }
  if (count > kMaxEntries) return std::nullopt;
  Bounds result = expand(operand, before);
  result.shape = after;
  return result;
}

}  // namespace

IntervalRule movement_interval(const OpDef& op) {
  static const std::map<const OpDef*, IntervalRule> table{
      {&transpose, transpose_interval}, {&broadcast, broadcast_interval}, {&slice, slice_interval},
      {&reverse, reverse_interval},     {&concat, concat_interval},       {&pad, pad_interval},
      {&reshape, reshape_interval},
  };
  const auto found = table.find(&op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace backcast::ops
