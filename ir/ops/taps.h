// The elements of a window, in all dimensions together, as conv and reduce_window visit them: for
// each one the box of results that read an element of the input through it.
#pragma once

#include <vector>

#include "ir/ops/shape_rules.h"

namespace backcast::ops {

/// One element of the window: its position per dimension and what reads through it.
struct WindowElement {
  std::vector<int64_t> position;
  std::vector<Taps> taps;
};

/// Calls visit(element) for every element of the window, in row-major order, through which any
/// result reads. windows[d] slides over dimension d and has extents[d] elements.
template <class F>
void each_window_element(const std::vector<StaticWindow>& windows,
                         const std::vector<int64_t>& extents, F&& visit) {
  struct Candidate {
    int64_t position;
    Taps taps;
  };
  std::vector<std::vector<Candidate>> candidates(windows.size());
  for (size_t d = 0; d < windows.size(); ++d) {
    for (int64_t tap = 0; tap < extents[d]; ++tap) {
      const Taps taps = taps_of(windows[d], tap);
      if (taps.count > 0) candidates[d].push_back({tap, taps});
    }
    if (candidates[d].empty()) return;
  }
  std::vector<size_t> index(windows.size(), 0);
  WindowElement element{std::vector<int64_t>(windows.size()), std::vector<Taps>(windows.size())};
  while (true) {
    for (size_t d = 0; d < windows.size(); ++d) {
      element.position[d] = candidates[d][index[d]].position;
      element.taps[d] = candidates[d][index[d]].taps;
    }
    visit(element);
    size_t d = windows.size();
    while (d > 0 && ++index[d - 1] == candidates[d - 1].size()) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace backcast::ops
