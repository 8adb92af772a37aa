// Entry points as C: checks, hooks, calls of kernels on places. Internal to backend/c.
#pragma once

#include <map>
#include <string>

#include "backend/c/kernel_writer.h"
#include "backend/library/abi.h"
#include "ir/loop/program.h"

namespace backcast::c_backend {

struct EntryContext {
  const loop::Program& program;
  const std::map<std::string, std::string>& kernels;       // C names
  const std::map<loop::BufferId, std::string>& constants;  // pointer expressions
  bool names = true;                                       // for the hooks
};

std::string entry_text(Prelude& prelude, const EntryContext& context, const loop::EntryPoint& entry,
                       const EntryAbi& abi);
/// The functions around each step, that entries call.
std::string hooks_text();

/// How the parameters of each kernel overlap over all calls.
std::map<std::string, KernelUse> kernel_uses(const loop::Program& program);

}  // namespace backcast::c_backend
