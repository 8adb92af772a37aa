// Walks over the positions of a box in row-major order while K flat offsets move along, each with
// strides of its own. Dimensions that all offsets cross in one go are merged beforehand, so that
// the innermost rows are long; nothing is allocated per element.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/graph/error.h"

namespace backcast::ops {

template <size_t K>
class Walk {
 public:
  using Offsets = std::array<int64_t, K>;

  /// strides[k] has one entry per extent; strides of extents of 1 and below are not looked at.
  Walk(const std::vector<int64_t>& extents, const std::array<std::vector<int64_t>, K>& strides) {
    for (const int64_t extent : extents) empty_ |= extent <= 0;
    if (empty_) return;
    for (const std::vector<int64_t>& s : strides) {
      BC_CHECK(s.size() == extents.size(), "a walk has {} strides for {} extents", s.size(),
               extents.size());
    }
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] == 1) continue;
      Dimension next;
      next.extent = extents[d];
      for (size_t k = 0; k < K; ++k) next.strides[k] = strides[k][d];
      if (!dimensions_.empty() && mergeable(dimensions_.back(), next)) {
        next.extent *= dimensions_.back().extent;
        dimensions_.pop_back();
      }
      dimensions_.push_back(next);
    }
    index_.resize(dimensions_.size());
  }

  /// Calls row(offsets, steps, count) for every innermost row.
  template <class F>
  void rows(Offsets at, F&& row) {
    if (empty_) return;
    if (dimensions_.empty()) return row(at, Offsets{}, int64_t{1});
    index_.assign(index_.size(), 0);
    const Dimension inner = dimensions_.back();
    do {
      row(at, inner.strides, inner.extent);
    } while (advance(at));
  }

  /// Calls visit(offsets) for every position.
  template <class F>
  void each(Offsets start, F&& visit) {
    rows(start, [&](Offsets at, const Offsets& steps, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        visit(at);
        for (size_t k = 0; k < K; ++k) at[k] += steps[k];
      }
    });
  }

 private:
  struct Dimension {
    int64_t extent = 1;
    Offsets strides{};
  };

  static bool mergeable(const Dimension& outer, const Dimension& inner) {
    for (size_t k = 0; k < K; ++k) {
      if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
    }
    return true;
  }

  /// To the next row; false after the last one.
  bool advance(Offsets& at) {
    for (size_t d = dimensions_.size() - 1; d-- > 0;) {
      const Dimension& dimension = dimensions_[d];
      for (size_t k = 0; k < K; ++k) at[k] += dimension.strides[k];
      if (++index_[d] < dimension.extent) return true;
      index_[d] = 0;
      for (size_t k = 0; k < K; ++k) at[k] -= dimension.strides[k] * dimension.extent;
    }
    return false;
  }

  bool empty_ = false;
  std::vector<Dimension> dimensions_;
  std::vector<int64_t> index_;
};

}  // namespace backcast::ops
