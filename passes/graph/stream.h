// A model of a whole sequence → one that is given the sequence some positions at a time, keeps what
// it will need again, and computes nothing twice.
//   Requires: calls are inlined; all extents are constants; the module keeps no state.
//   Ensures: `main` takes the next positions of the streamed inputs. An output along the sequence
//   gives its next ones, any other is that of the latest stretch of the model's length. What the
//   calls hand on is state of the module (role `slot`).
// What has no rule for pieces (ir/ops/pieces.h) reads all of its operand, which is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// What layers see where the model's sequence ended and the stream has more.
enum class StreamEdges {
  exact,  // refused where that changes what a stretch of the model's length gives
  open    // the stream's own positions instead of padding or a state of rest
};
BACKCAST_ENUM_NAMES(StreamEdges, "exact", "open");

struct StreamInput {
  std::string name;
  int64_t axis = 0;
};

struct StreamOptions {
  std::vector<StreamInput> inputs;
  /// Positions of the first input per call; none: the fewest that there can be. Other inputs get as
  /// many more or fewer as they are longer or shorter.
  std::optional<int64_t> hop;
  StreamEdges edges = StreamEdges::exact;
  /// The sequence has no length of its own: what would need one is refused.
  bool endless = false;
};

struct StreamNotes {
  struct Tensor {
    std::string name;
    int64_t axis = -1;   // -1: of the latest stretch
    int64_t extent = 0;  // of the axis in the model
    int64_t count = 0;   // positions per call, and
    int64_t delay = 0;   // how many of them the first calls give for nothing, in all
    int64_t behind = 0;  // positions at the end of a sequence that are never given
  };
  std::vector<Tensor> inputs, outputs;
  int64_t first_call = 1;  // from which on the results of a stretch hold
  int64_t stretch = 0;     // positions of the first input that a stretch began before a call's end
  bool exact = true;       // every stretch gives what the model gives of it
  bool endless = false;    // nobody knows how long a sequence is
  /// Nodes that read all of their operands in every call.
  std::vector<Loc> whole;

  /// The first call of a sequence, counted from 1, all of whose outputs hold.
  int64_t first_whole_call() const;
  /// Sentences for people.
  std::vector<std::string> lines() const;
};

/// CompileError for an input or an axis that there is not, a number of positions that layers with
/// strides cannot take, and where `edges` refuses.
Module stream(const Module& module, const StreamOptions& options, StreamNotes* notes = nullptr);

}  // namespace backcast
