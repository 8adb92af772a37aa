#include "passes/schedule/lanes.h"

#include "ir/graph/error.h"

namespace backcast {

using loop::Expr;

namespace {

/// Of rows of `group` lanes each: the lanes of the lower or the upper half of every row.
std::vector<int32_t> halves(int32_t lanes, int32_t group, bool upper) {
  std::vector<int32_t> result;
  for (int32_t i = 0; i < lanes; ++i) {
    if ((i % group >= group / 2) == upper) result.push_back(i);
  }
  return result;
}

}  // namespace

Expr across_lanes(std::vector<Expr> values, const Combining& combine, const Naming& name) {
  int32_t lanes = values[0].type().lanes, group = lanes;
  // Two registers become one as long as there are two.
  while (values.size() > 1 && group > 1) {
    std::vector<Expr> next;
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      Expr low = loop::shuffle({values[i], values[i + 1]}, halves(2 * lanes, group, false));
      Expr high = loop::shuffle({values[i], values[i + 1]}, halves(2 * lanes, group, true));
      next.push_back(name(combine(low, high)));
    }
    values = std::move(next);
    group /= 2;
  }
  if (values.size() > 1) {
    std::vector<int32_t> all;
    for (int32_t i = 0; i < lanes * static_cast<int32_t>(values.size()); ++i) all.push_back(i);
    return name(loop::shuffle(values, all));
  }
  Expr value = values[0];
  for (; group > 1; group /= 2) {
    int32_t width = value.type().lanes;
    Expr low = loop::shuffle({value}, halves(width, group, false));
    Expr high = loop::shuffle({value}, halves(width, group, true));
    value = name(combine(low, high));
  }
  return value;
}

std::vector<Expr> transpose_lanes(std::vector<Expr> values, const Naming& name) {
  int32_t lanes = values[0].type().lanes;
  BC_CHECK(values.size() == static_cast<size_t>(lanes), "{} values of {} lanes", values.size(),
           lanes);
  // Blocks of d lanes change places across the diagonal, from the largest to single lanes.
  for (int32_t d = lanes / 2; d >= 1; d /= 2) {
    std::vector<int32_t> low, high;
    for (int32_t j = 0; j < lanes; ++j) {
      bool upper = (j & d) != 0;
      low.push_back(upper ? lanes + j - d : j);
      high.push_back(upper ? lanes + j : j + d);
    }
    for (int32_t i = 0; i < lanes; ++i) {
      if ((i & d) != 0) continue;
      Expr a = values[static_cast<size_t>(i)], b = values[static_cast<size_t>(i + d)];
      values[static_cast<size_t>(i)] = name(loop::shuffle({a, b}, low));
      values[static_cast<size_t>(i + d)] = name(loop::shuffle({a, b}, high));
    }
  }
  return values;
}

Expr before_narrowing(const Expr& value) {
  const auto bytes = [](const Expr& e) { return byte_size(loop::element_of(e.type().scalar)); };
  const bool narrows = value->kind == loop::ExprKind::cast &&
                       value->args[0].type().scalar != loop::Scalar::index &&
                       bytes(value) < bytes(value->args[0]) && bytes(value->args[0]) == 4;
  return narrows ? value->args[0] : value;
}

std::vector<Expr> interleave_lanes(const std::vector<Expr>& values, const Naming& name) {
  const int32_t lanes = values.at(0).type().lanes, count = static_cast<int32_t>(values.size());
  if (lanes == 1 || count == 1) return values;
  std::vector<Expr> result;
  for (int32_t first = 0; first < lanes * count; first += lanes) {
    Expr merged = values[0];
    for (int32_t m = 1; m < count; ++m) {
      // Lanes of later values hold anything yet.
      std::vector<int32_t> taken;
      for (int32_t lane = 0; lane < lanes; ++lane) {
        const int32_t value = (first + lane) % count, from = (first + lane) / count;
        taken.push_back(value == m ? lanes + from : value == 0 && m == 1 ? from : lane);
      }
      merged = name(loop::shuffle({merged, values[static_cast<size_t>(m)]}, taken));
    }
    result.push_back(merged);
  }
  return result;
}

}  // namespace backcast
