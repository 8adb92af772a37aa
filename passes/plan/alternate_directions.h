// Kernels that run backwards, so that a chain of results stays where it is. A result that lies
// partly over its operand starts below it when its kernel goes forwards; along a chain each would
// start below the one before. Backwards it starts above, and every other kernel brings it back.
//   Requires: scheduled kernels.  Ensures: the same values, bit for bit: iterations whose order
//   changes are independent.
#pragma once

#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// A call whose result may lie partly over an operand that ends with it.
struct ReachingCall {
  std::string kernel;
  loop::BufferId read = -1, written = -1;  // storages, or the first of those that share their place
};

/// Programs in which `calls`, given in the order of steps, alternate: a chain's first kernel runs
/// forwards or backwards, and each of the others the opposite of what wrote its operand. A kernel
/// runs one way in all calls, that of the first. The one that turns fewer multiply-accumulates
/// round comes first, since compilers make the better code of what goes forwards. Empty: no chains.
std::vector<loop::Program> alternate_directions(const loop::Program& program,
                                                const std::vector<ReachingCall>& calls);

}  // namespace backcast
