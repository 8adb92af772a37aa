// Where a node comes from: every node carries a Loc, so that errors, the comments in generated C
// and the profile all speak in the names of the user's model.
#pragma once

#include <string>
#include <string_view>

namespace backcast {

/// How a node came to be.
enum class Origin : unsigned char { imported, adjoint_of, fused_from, made };

/// `node` is the name of the ONNX node (or of the text IR's `loc("…")`), `op_type` its ONNX
/// operator.
struct Loc {
  std::string node;
  std::string op_type;
  Origin origin = Origin::imported;

  bool empty() const { return node.empty() && op_type.empty(); }
  /// `node "conv1" (Conv)`
  std::string describe() const {
    return op_type.empty() ? "node \"" + node + "\"" : "node \"" + node + "\" (" + op_type + ")";
  }
  friend bool operator==(const Loc&, const Loc&) = default;
};

}  // namespace backcast
