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

}  // namespace backcast
