// A kernel that treats the examples of a batch apart, and the kernel for one of them. Examples are
// indices of the outermost dimension of its results; no operator is known here.
#pragma once

#include <optional>
#include <set>

#include "ir/loop/stmt.h"

namespace backcast {

struct ExampleKernel {
  Dim examples;            // how many
  std::set<size_t> apart;  // parameters of which every example has a part of its own
  loop::Kernel one;        // for one example: these parameters' outermost dimensions are 1
};

/// Nothing for kernels of any other form than one definition whose every read and write reaches, of
/// that dimension, the index of its example or else reaches the same for all examples.
/// `symbols`: the program's, by which multiply-accumulates are shared out.
std::optional<ExampleKernel> match_examples(const loop::Kernel& kernel,
                                            const SymbolRanges& symbols);

}  // namespace backcast
