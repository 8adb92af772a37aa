// Tensors whose dimensions lie in another order: values, shapes, and the kernels over them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/loop/stmt.h"

namespace backcast {

/// For every stored dimension one of the former.
using Order = std::vector<int32_t>;

template <class T>
std::vector<T> permuted(const std::vector<T>& list, const Order& order) {
  std::vector<T> result;
  for (const int32_t i : order) result.push_back(list[static_cast<size_t>(i)]);
  return result;
}

/// The value with its elements where the order puts them.
Literal permuted(const Literal& value, const Order& order);

/// The kernel over parameters that lie in other orders, by name; definitions that write them run
/// along theirs.
loop::Kernel reordered(const loop::Kernel& kernel, const std::map<std::string, Order>& orders);

}  // namespace backcast
