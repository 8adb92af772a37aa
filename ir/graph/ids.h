// Typed indices. A value is named by a ValueId, never by a pointer into a vector of nodes.
#pragma once

#include <cstdint>
#include <functional>

namespace backcast {

template <class Tag>
struct Id {
  int32_t index = -1;

  constexpr Id() = default;
  constexpr explicit Id(int64_t i) : index(static_cast<int32_t>(i)) {}
  constexpr bool valid() const { return index >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// The n-th node of a function, which is also its n-th value: one node, one value.
using ValueId = Id<struct ValueTag>;

}  // namespace backcast

template <class Tag>
struct std::hash<backcast::Id<Tag>> {
  size_t operator()(backcast::Id<Tag> id) const { return std::hash<int32_t>()(id.index); }
};
