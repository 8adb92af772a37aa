// Loops compute of constants what they are handed, where these are kept in few bits: quantised
// weights enter products as integers, and decoded ones need no room of their own.
// Every trip decodes again where there is no room for the result, or where an instruction decodes
// more than memory gives in its time; elsewhere this is done once, in front of the loop.
//   Requires: no calls.  Ensures: the same values.
#pragma once

#include "ir/graph/module.h"
#include "ir/target/target_info.h"

namespace backcast {

Module sink_constants(const Module& module, const TargetInfo& target);

}  // namespace backcast
