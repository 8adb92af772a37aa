// Inputs of a model in files, as options name them.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/literal.h"

namespace backcast {

/// `NAME=FILE` goes to the input of that name, `FILE` to the next in order; in the order of
/// `names`. CompileError, with the option's name, when one is missing, is one too many, or cannot
/// be read.
std::vector<Literal> read_inputs(const std::string& option, const std::vector<std::string>& words,
                                 const std::vector<std::string>& names);

}  // namespace backcast
