// Several modules in one: functions are renamed so that they do not meet.
#pragma once

#include <string>

#include "ir/graph/module.h"

namespace backcast {

/// Adds the functions of `from` to `into` under `prefix` + name, and its symbols. The function
/// `main` is not added but returned, named `name`, calling the renamed ones. CompileError when both
/// modules know a symbol with different ranges.
Function merge_module(Module& into, const Module& from, const std::string& prefix,
                      const std::string& name);

}  // namespace backcast
