// What reading and editing ONNX's protobuf messages share.
#pragma once

#include <fmt/format.h>

#include <climits>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/onnx_model.h"
#include "ir/graph/error.h"
#include "onnx/onnx.pb.h"

namespace backcast {

using MessageOwner = std::shared_ptr<const void>;

/// A parsed message on the heap, shared by the tensors that point into it. CompileError as
/// parse_model_proto.
template <class Message>
std::shared_ptr<Message> parse_message(std::string_view bytes, const char* what) {
  if (bytes.empty()) {
    throw CompileError(fmt::format("the file is empty; it should hold an ONNX {}", what));
  }
  if (bytes.size() > static_cast<size_t>(INT_MAX)) {
    throw CompileError(
        fmt::format("the file has {} bytes, and a protobuf file must stay below 2 GB; keep the "
                    "weights in external data files",
                    bytes.size()));
  }
  std::shared_ptr<Message> message = std::make_shared<Message>();
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw CompileError(
        fmt::format("this is not an ONNX {}: the bytes are no such protobuf message, or the file "
                    "is cut short",
                    what));
  }
  return message;
}

/// The plain mirror of a message, which points into it; `owner` keeps it alive.
OnnxTensor mirror_of(const onnx::TensorProto& from, const MessageOwner& owner);
OnnxGraph mirror_of(const onnx::GraphProto& from, const MessageOwner& owner);

/// "" for ONNX's own, however it is written.
std::string domain_of(const std::string& domain);

/// Some exporters (Paddle's, spox) write every weight as a node, which becomes an initializer.
/// Where a graph has initializers, what nodes hold is part of its formulas.
void initialize_weights(onnx::GraphProto& graph);

}  // namespace backcast
