// ONNX tensors as literals: initializers, attributes, and the .pb files of ONNX's test data.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "frontend/onnx_model.h"
#include "ir/graph/literal.h"

namespace backcast {

/// The element type of an ONNX data type; none for strings, complex numbers, 8-bit floats and
/// 4-bit or smaller integers.
std::optional<ElementType> element_type_of(int64_t onnx_data_type);
int64_t onnx_data_type_of(ElementType element);

/// The tensor's data, without a copy where its bytes are used as they are. External data is
/// memory-mapped and has to lie inside `model_dir`; an empty `model_dir` refuses external data.
/// CompileError (without location) when type, extents, length or file do not fit.
Literal to_literal(const OnnxTensor& tensor, const std::filesystem::path& model_dir);
/// A tensor of 4-bit integers with 8 bits for each; none for other types. Fails as to_literal does.
std::optional<Literal> widened(const OnnxTensor& tensor, const std::filesystem::path& model_dir);

/// The other way round; keeps a copy of the literal.
OnnxTensor to_tensor(const std::string& name, const Literal& value);

/// A read-only memory mapping of a whole file. CompileError when it cannot be opened.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
MappedFile map_file(const std::filesystem::path& path);

/// Reads and writes one serialized TensorProto, such as test_data_set_0/input_0.pb.
Literal read_tensor_pb(const std::string& path);
void write_tensor_pb(const std::string& path, const std::string& name, const Literal& value);

}  // namespace backcast
