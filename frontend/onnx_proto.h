// Reading and writing ONNX's protobuf messages; the only place that knows protobuf.
#pragma once

#include <string>
#include <string_view>

#include "frontend/onnx_model.h"

namespace backcast {

/// CompileError when the bytes are empty, 2 GB or more, or no ONNX model. Tensor data is copied
/// once, out of `bytes`.
OnnxModel parse_model_proto(std::string_view bytes);

/// One serialized TensorProto. CompileError as above.
OnnxTensor parse_tensor_proto(std::string_view bytes);

/// A TensorProto with raw data.
std::string serialize_tensor_proto(const std::string& name, int64_t data_type,
                                   const std::vector<int64_t>& dims,
                                   std::span<const std::byte> raw_data);

}  // namespace backcast
