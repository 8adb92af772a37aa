// Internal to backend/llvm: operations on vectors, register by register.
#pragma once

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "backend/llvm/operations.h"

namespace backcast::llvm_backend {

/// Lanes [first, first + lanes) of a value; what lies beyond it is undefined.
inline llvm::Value* part(Builder& builder, llvm::Value* value, int32_t first, int32_t lanes) {
  std::vector<int> indices(static_cast<size_t>(lanes));
  std::iota(indices.begin(), indices.end(), first);
  for (int& index : indices) index = index < lanes_of(value) ? index : -1;
  return builder.CreateShuffleVector(value, indices);
}

/// product(a, b) on whole registers of `widest` lanes, halves of them, quarters.
template <class Product>
llvm::Value* by_registers(Builder& builder, int32_t widest, llvm::Value* a, llvm::Value* b,
                          const Product& product) {
  const int32_t lanes = lanes_of(a);
  const auto whole =
      static_cast<int32_t>(std::bit_ceil(std::max(4U, static_cast<unsigned>(lanes))));
  if (lanes < whole) {
    llvm::Value* padded = by_registers(builder, widest, part(builder, a, 0, whole),
                                       part(builder, b, 0, whole), product);
    return part(builder, padded, 0, lanes);
  }
  if (lanes > widest) {
    llvm::Value* halves[2];
    for (const int32_t side : {0, 1}) {
      const int32_t first = side * lanes / 2;
      halves[side] = by_registers(builder, widest, part(builder, a, first, lanes / 2),
                                  part(builder, b, first, lanes / 2), product);
    }
    std::vector<int> all(static_cast<size_t>(lanes));
    std::iota(all.begin(), all.end(), 0);
    return builder.CreateShuffleVector(halves[0], halves[1], all);
  }
  return product(a, b);
}

}  // namespace backcast::llvm_backend
