// Copying what a value depends on from one function into another that is being built.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/builder.h"

namespace backcast {

/// Emits the nodes of `from` that `needed` depend on, its parameters replaced by `arguments` (a
/// missing one is an InternalError when it is needed). The result maps old values to new ones;
/// those that were not needed are invalid. Leaves the builder's location at the last node's.
std::vector<ValueId> copy_nodes(Builder& builder, const Function& from,
                                const std::vector<ValueId>& arguments,
                                const std::vector<ValueId>& needed);

/// The function's results: the elements of a tuple result, projected where it is no `tuple` node;
/// otherwise the result alone. Values of `from`'s copy `now` in `builder`.
std::vector<ValueId> results_of(Builder& builder, const Function& from,
                                const std::vector<ValueId>& now);

/// The function's result names, `output0` and so on for tensors that have none.
std::vector<std::string> output_names(const Function& function);

/// `wish`, followed by underscores and a number when `taken` holds it; adds it to `taken`.
std::string fresh_name(std::vector<std::string>& taken, const std::string& wish);

}  // namespace backcast
