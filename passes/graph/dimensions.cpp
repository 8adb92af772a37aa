#include "passes/graph/dimensions.h"

#include <algorithm>

namespace backcast {

Ints without(const Ints& dims, const Ints& gone) {
  Ints left;
  for (const int64_t d : dims) {
    if (std::find(gone.begin(), gone.end(), d) != gone.end()) continue;
    left.push_back(d - std::count_if(gone.begin(), gone.end(), [&](int64_t g) { return g < d; }));
  }
  return left;
}

std::optional<std::vector<DimensionGroup>> groups_of(const Shape& from, const Shape& to) {
  std::vector<DimensionGroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    DimensionGroup group;
    Dim before = from[i], after = to[j];
    group.from.push_back(i++);
    group.to.push_back(j++);
    while (!(before == after)) {
      if (!before.is_constant() || !after.is_constant()) return std::nullopt;
      if (before.constant() < after.constant()) {
        if (i == from.size()) return std::nullopt;
        before = before * from[i];
        group.from.push_back(i++);
      } else {
        if (j == to.size()) return std::nullopt;
        after = after * to[j];
        group.to.push_back(j++);
      }
    }
    groups.push_back(std::move(group));
  }
  if (groups.empty()) return std::nullopt;
  while (i < from.size()) groups.back().from.push_back(i++);  // of extent 1
  while (j < to.size()) groups.back().to.push_back(j++);
  return groups;
}

}  // namespace backcast
