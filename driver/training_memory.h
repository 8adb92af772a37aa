// What `inspect --train` shows: what training keeps, layer by layer, and where its memory goes.
#pragma once

#include <string>

#include "driver/compiler.h"

namespace backcast {

/// Trained parameters, state by role, what the backward pass keeps of each layer, the peak of the
/// training step with the tensors that are live there. CompileError like compile_model().
std::string training_memory(const CompileRequest& request);

}  // namespace backcast
