// Trained weights back into an ONNX file.
#pragma once

#include <string>

namespace backcast {

/// The model file with the parameters and running statistics that a checkpoint (its bytes) of one
/// of its training libraries holds; a part that was trained goes into its place, weights of a
/// library in double precision are rounded. Where quantised weights learned, the layers are those
/// that the library computed (`unquantise`). External data moves into the file. CompileError when
/// the checkpoint is broken or one of another model.
std::string export_model(const std::string& model_path, const std::string& checkpoint);

}  // namespace backcast
