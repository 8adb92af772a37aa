// A kernel that treats the examples of a batch apart, and the kernel for one of them. Where
// examples lie in the results follows from where they lie in the operands; no operator is known
// here.
#pragma once

#include <map>
#include <optional>

#include "ir/loop/stmt.h"

namespace backcast {

/// What a tensor has of every example: of a dimension of extent outside·examples·each the indices
/// (o·examples + n)·each + r, where n is the example.
struct ExampleShare {
  size_t dimension = 0;
  int64_t each = 1, outside = 1;
  friend bool operator==(const ExampleShare&, const ExampleShare&) = default;
};

/// a / b, where that is a whole number whatever the symbols are.
std::optional<int64_t> quotient(const Dim& a, const Dim& b, const SymbolRanges& symbols);

/// Elements of an example that lie side by side, which is the same in whatever shape a tensor is
/// seen; and what it has there of every example, nothing where that is no part of one dimension.
Dim elements_inside(const Dims& shape, const ExampleShare& share);
std::optional<ExampleShare> share_of(const Dims& shape, const Dim& inside, const Dim& examples,
                                     const SymbolRanges& symbols);
/// An example's part of a shape.
Dims shape_of_one(Dims shape, const ExampleShare& share);

struct ExampleKernel {
  std::map<size_t, ExampleShare> apart;  // by parameter: others are the same for all examples
  loop::Kernel one;                      // for one example
};

/// Nothing for kernels of any other form than one definition whose every read and write reaches the
/// part of its example, or else the same for all examples.
/// `known`: of operands, where examples lie if they are read example by example. Of a kernel that
/// reads none such, the first result has them outermost when their number is a symbol: a fixed one
/// may be any extent.
std::optional<ExampleKernel> match_examples(const loop::Kernel& kernel, const Dim& examples,
                                            const std::map<size_t, ExampleShare>& known,
                                            const SymbolRanges& symbols);

}  // namespace backcast
