// Reading and writing ONNX's protobuf messages; the only place that knows protobuf.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "frontend/graph_edit.h"
#include "frontend/onnx_model.h"
#include "frontend/unquantise.h"
#include "ir/graph/literal.h"

namespace backcast {

/// CompileError when the bytes are empty, 2 GB or more, or no ONNX model. Tensor data is copied
/// once, out of `bytes`. In a model without floating-point initializers, tensors that nodes of type
/// Constant hold are initializers, under the names of their results. Running statistics have
/// initializers of their own (separate_statistics).
OnnxModel parse_model_proto(std::string_view bytes);

/// One serialized TensorProto. CompileError as above.
OnnxTensor parse_tensor_proto(std::string_view bytes);

/// A TensorProto with raw data.
std::string serialize_tensor_proto(const std::string& name, int64_t data_type,
                                   const std::vector<int64_t>& dims,
                                   std::span<const std::byte> raw_data);

/// A copy of a serialized model that infers with new data of some of its graph's initializers, by
/// name; type and shape have to be the initializer's, after `edit`. BatchNormalization and Dropout
/// no longer train, running statistics have initializers of their own as above, external data is
/// looked for in `model_dir` and moves into the file, so that the copy stands alone; all else stays
/// as it is, known to us or not. CompileError as above, for external data that cannot be read, and
/// for 2 GB or more.
std::string trained_model(std::string_view model, const Unquantised& edit,
                          const std::map<std::string, Literal>& values,
                          const std::filesystem::path& model_dir);

/// The same with an edit of its graph instead.
std::string edited_model(std::string_view model, const GraphEdit& edit,
                         const std::filesystem::path& model_dir);

}  // namespace backcast
