// The loops of a kernel's body, one behind the other: what may be cut into pieces or run backwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// A loop whose iterations can be counted before it runs.
bool is_counted(const loop::Stmt& stmt);
int64_t extent_of(const loop::Stmt& loop);

/// A name that the kernel does not use yet: `name`, or that with underscores.
std::string fresh_name(const loop::Kernel& kernel, std::string name);

/// A step that passes memory twice, other than where its kernel says that this is harmless.
bool is_overlaid(const loop::Program& program, const loop::Step& step);

/// The statements of a kernel's body as counted loops whose iterations, all together, are proved
/// independent (independence.h): any statement that is no such loop is one iteration. Empty where
/// that leaves a single iteration each, or nothing is proved.
std::vector<loop::Stmt> outer_loops(const loop::Kernel& kernel);

/// The kernel with all of these iterations in the opposite order; empty where there are none.
std::optional<loop::Kernel> reversed(const loop::Kernel& kernel);

}  // namespace backcast
