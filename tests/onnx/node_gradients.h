// What the gradient check of ONNX's node cases needs besides the compiler.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

/// The same module with f64 for every floating-point type.
Module in_double(const Module& module);

}  // namespace backcast
