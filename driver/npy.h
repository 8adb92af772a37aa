// NumPy's .npy files (format versions 1 to 3, C order) and ONNX .pb tensors as literals.
#pragma once

#include <string>

#include "ir/graph/literal.h"

namespace backcast {

/// Reads a tensor from a `.npy` or `.pb` file. CompileError naming the file.
Literal read_tensor(const std::string& path);

/// Writes `.npy`; f16 as '<f2', bf16 as its bit patterns.
std::string npy_bytes(const Literal& tensor);

}  // namespace backcast
