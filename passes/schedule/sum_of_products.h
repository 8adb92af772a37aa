// Kernels whose sums small integers are multiplied in.
#pragma once

#include <optional>
#include <string>

#include "ir/loop/program.h"

namespace backcast {

/// One sum of products of two factors, in i32. Where there is a guard, products that it excludes
/// are 0.
struct SumOfProducts {
  const loop::Definition* definition = nullptr;  // of the kernel
  loop::Expr product;
  loop::Expr guard;  // may be null
  bool is_guarded_by(const std::string& axis) const;
  /// `value` in place of the product.
  loop::Expr behind_guard(const loop::Expr& value) const;
};

/// What the kernel is, if it is nothing else.
std::optional<SumOfProducts> sum_of_products(const loop::Kernel& kernel);

}  // namespace backcast
