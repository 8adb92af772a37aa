#include "passes/graph/centred.h"

#include <algorithm>
#include <cmath>

#include "passes/graph/algebra.h"

namespace backcast {
namespace {

constexpr int kMostSteps = 8;       // from the mean back to the sum
constexpr double kRounding = 1e-6;  // of one over a count in single precision

/// A sum and the constant it is multiplied by; `sum` is null where there is none.
struct ScaledSum {
  const Node* sum = nullptr;
  double scale = 1;
};

/// Looks through constant factors and reshapes.
ScaledSum scaled_sum(const Function& function, ValueId id) {
  ScaledSum result;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node& node = function.node(id);
    if (node.op == &ops::reduce && node.attrs.as<ReduceAttrs>().kind == Reduction::sum) {
      result.sum = &node;
      return result;
    }
    size_t next = 0;
    if (node.op == &ops::mul || node.op == &ops::div) {
      if (node.op == &ops::mul && splat_of(function, node.operands[0])) next = 1;
      const std::optional<double> c = splat_of(function, node.operands[1 - next]);
      if (!c) return {};
      result.scale *= node.op == &ops::div ? 1 / *c : *c;
    } else if (node.op != &ops::reshape) {
      return {};
    }
    id = node.operands[next];
  }
  return {};
}

}  // namespace

std::optional<Ints> centred_along(const Function& function, const Node& node) {
  if (node.op != &ops::sub || !is_float(node.type.tensor().element)) return std::nullopt;
  const Node& wide = function.node(node.operands[1]);
  const TensorType type = node.type.tensor();
  if (wide.op != &ops::broadcast || !type.is_static()) return std::nullopt;
  const ScaledSum mean = scaled_sum(function, wide.operands[0]);
  if (!mean.sum || mean.sum->operands[0] != node.operands[0]) return std::nullopt;
  // The mean varies along the axes that the sum keeps, in their order; axes of one element aside.
  const Ints axes = mean.sum->attrs.as<ReduceAttrs>().axes;
  const Ints& dims = wide.attrs.as<BroadcastAttrs>().dims;
  const Dims& narrow = function.node(wide.operands[0]).type.tensor().shape;
  Ints kept, varying;
  int64_t count = 1;
  for (int64_t d = 0; d < type.rank(); ++d) {
    const int64_t extent = type.shape[static_cast<size_t>(d)].constant();
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) {
      count *= extent;
    } else if (extent != 1) {
      kept.push_back(d);
    }
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (narrow[i].constant() != 1) varying.push_back(dims[i]);
  }
  const bool whole = std::abs(mean.scale * static_cast<double>(count) - 1) < kRounding;
  if (kept != varying || !whole) return std::nullopt;
  return axes;
}

}  // namespace backcast
