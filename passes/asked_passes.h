// Graph passes that run only when somebody asks for them, with arguments in their name:
//   differentiate(function=main,wrt=x+y,target_index=1,seeded=true,keep_result=false,strict=true)
//   vjp(function=main,wrt=x)   jvp(…)   hvp(…)
//   drop_constant_channels(range=1e6,vector_bits=0,word=1): for inputs of at most that absolute
//     value, or (off) any
//   stream(inputs=x+y,axis=0,hop=4,open=false): these inputs along this axis
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// Whether `spec` is written like one: a name and arguments in parentheses.
bool is_asked_pass(std::string_view spec);
/// CompileError for a name, an argument or a value that does not exist.
Module run_asked_pass(const Module& module, const std::string& spec);
/// Splits `a,b(x=1,y=2),c` at the commas outside of parentheses.
std::vector<std::string> split_passes(std::string_view list);

}  // namespace backcast
