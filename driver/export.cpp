// See export.h.
#include "driver/export.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "backend/library/abi.h"
#include "driver/checkpoint.h"
#include "driver/compiler.h"
#include "frontend/onnx_proto.h"
#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// The shape of what was trained of an initializer of this type; CompileError when the variable
/// cannot be a part of it.
std::vector<int64_t> part_of(const CheckpointVariable& variable, const std::string& name,
                             const Literal& whole) {
  std::vector<int64_t> shape = whole.shape();
  const auto foreign = [&](const std::string& what) {
    return CompileError(
        fmt::format("\"{}\" is {} in the model, but the checkpoint has {}: it is "
                    "of another model",
                    name, to_string(whole.type()), what));
  };
  if (variable.element != whole.element() &&
      !(is_float(variable.element) && is_float(whole.element()))) {
    throw foreign(fmt::format("{} elements", name_of(variable.element)));
  }
  const int64_t count = static_cast<int64_t>(variable.bytes.size()) / byte_size(variable.element);
  if (variable.axis >= 0) {
    const size_t axis = static_cast<size_t>(variable.axis);
    if (axis >= shape.size() || shape[axis] == 0) {
      throw foreign(fmt::format("a part along axis {}", variable.axis));
    }
    const int64_t others = whole.element_count() / shape[axis];
    const int64_t extent = others == 0 ? 0 : count / others;
    if (variable.start + extent > shape[axis]) {
      throw foreign(fmt::format("elements {}..{} along axis {}", variable.start,
                                variable.start + extent, axis));
    }
    shape[axis] = extent;
  }
  int64_t expected = byte_size(variable.element);
  for (const int64_t extent : shape) expected *= extent;
  if (expected != static_cast<int64_t>(variable.bytes.size())) {
    throw foreign(fmt::format("{} bytes of {}", variable.bytes.size(), name_of(variable.element)));
  }
  return shape;
}

/// `whole` with the variable's values in their place.
Literal updated(const CheckpointVariable& variable, const std::string& name, const Literal& whole) {
  const std::vector<int64_t> shape = part_of(variable, name, whole);
  const std::span<const std::byte> bytes =
      std::as_bytes(std::span(variable.bytes.data(), variable.bytes.size()));
  Literal part(variable.element, shape, std::vector<std::byte>(bytes.begin(), bytes.end()));
  if (part.element() != whole.element()) part = part.converted_to(whole.element());
  if (variable.axis < 0) return part;
  std::vector<std::byte> result(whole.bytes().begin(), whole.bytes().end());
  const size_t axis = static_cast<size_t>(variable.axis);
  size_t rows = 1, row = static_cast<size_t>(byte_size(whole.element()));
  for (size_t i = 0; i < axis; ++i) rows *= static_cast<size_t>(shape[i]);
  for (size_t i = axis + 1; i < shape.size(); ++i) row *= static_cast<size_t>(shape[i]);
  const size_t stride = row * static_cast<size_t>(whole.shape()[axis]);
  const size_t count = row * static_cast<size_t>(shape[axis]);
  for (size_t r = 0; r < rows && count > 0; ++r) {
    std::memcpy(result.data() + r * stride + row * static_cast<size_t>(variable.start),
                part.bytes().data() + r * count, count);
  }
  return Literal(whole.element(), whole.shape(), std::move(result));
}

}  // namespace

std::string export_model(const std::string& model_path, const std::string& checkpoint_bytes) {
  const Checkpoint checkpoint = parse_checkpoint(checkpoint_bytes);
  const std::string bytes = read_file(model_path);
  const std::filesystem::path folder = std::filesystem::absolute(model_path).parent_path();
  OnnxModel model = parse_model_proto(bytes);
  std::map<uint64_t, const OnnxTensor*> initializers;
  for (const OnnxTensor& tensor : model.graph.initializers) {
    initializers[name_hash(tensor.name)] = &tensor;
  }
  std::set<std::string> learned;
  for (const CheckpointVariable& variable : checkpoint.variables) {
    const auto found = initializers.find(variable.name);
    if (variable.role == StateRole::parameter && found != initializers.end()) {
      learned.insert(found->second->name);
    }
  }
  // What the library computed in floating point because of what it learnt.
  const Unquantised edit = unquantise(model.graph, learned, folder);
  apply(edit, model.graph);
  std::map<std::string, Literal> values;
  for (const CheckpointVariable& variable : checkpoint.variables) {
    if (variable.role != StateRole::parameter && variable.role != StateRole::statistic) continue;
    const std::map<uint64_t, const OnnxTensor*>::const_iterator found =
        initializers.find(variable.name);
    if (found == initializers.end()) {
      throw CompileError(
          "the checkpoint holds a tensor that the model does not have: it is of another model");
    }
    const OnnxTensor& tensor = *found->second;
    const Literal whole = to_literal(tensor, folder);
    values[tensor.name] = updated(variable, tensor.name, whole);
  }
  if (values.empty()) throw CompileError("the checkpoint holds no parameters");
  return trained_model(bytes, edit, values, folder);
}

}  // namespace backcast
