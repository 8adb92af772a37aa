// Products of two parts of one buffer, such as attention's queries and keys where one product made
// them both: only what has a parameter of its own can be rearranged.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

struct ReadApart {
  loop::Definition definition;
  /// Of the definition beside the kernel's, and which of these each stands for.
  std::vector<loop::BufferParam> parameters;
  std::vector<std::string> sources;
};

/// The definition with a parameter for each place that its sum reads of a buffer; nothing when it
/// reads every buffer at one place, or when a result may take over the buffer. Constants lie as
/// they are read.
std::optional<ReadApart> read_apart(const loop::Definition& definition, const loop::Kernel& kernel,
                                    const std::function<bool(const std::string&)>& is_constant);

}  // namespace backcast
