// Which values of a function come in pieces when some of its inputs do, and what of former pieces
// is read again: the decisions of stream.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/ops/pieces.h"
#include "passes/graph/stream.h"

namespace backcast {

/// One tensor of a node's result.
struct Flow {
  enum class Kind {
    apart,   // does not depend on what is streamed
    pieces,  // comes in pieces along `axis`
    latest   // a whole, of the latest stretch of the sequence
  };
  Kind kind = Kind::apart;
  int64_t axis = -1, extent = 0;  // of pieces: in the model
  /// Positions per position of the first input, then per call.
  int64_t rate_up = 1, rate_down = 1, count = 0;
  /// Call s = 0, 1, … gives the positions from s · count - delay on; negative: those before are
  /// `front`, an element.
  int64_t delay = 0;
  std::optional<Literal> front = {};
  /// The positions of the model that are what they would be within a longer sequence, and the node
  /// behind which they are not all.
  int64_t clean_from = 0, clean_to = 0;
  Loc edge = {};
};

/// Positions of former and present pieces of a value side by side, as some nodes read them.
struct Past {
  ValueId value;
  int64_t depth = 0;        // positions before the piece; 0: none
  bool masked = false;      // positions in front of the sequence's first are `initial`
  Literal initial;          // an element
  std::string state = {};   // the name of what is kept; empty where nothing is
  bool with_piece = false;  // the present piece is kept, too: it is read where it is kept
};

/// What a node reads of an operand in pieces: `count` positions, the first of them `first` behind
/// the beginning of the present piece.
struct PieceRead {
  int64_t first = 0, count = 0;
  int past = -1;  // of which past; -1: of the piece itself
  /// Computed of what was read of the past, in this order: it is smaller than the operand.
  std::vector<ValueId> again;
};

struct StreamedNode {
  std::vector<Flow> flows;            // per tensor of the result
  std::optional<Pieces> pieces;       // how it is computed by pieces; none: as a whole
  PieceExtents extents;               // of a piece
  std::map<size_t, PieceRead> reads;  // by operand
  std::vector<std::string> carried;   // names of the states that it carries on
  std::vector<Literal> carried_initial;
  bool needed = false;
};

struct StreamPlan {
  std::vector<StreamedNode> nodes;  // of the function
  std::vector<Past> pasts;
  /// Calls are counted up to this number, which is enough to know what lies in front of the first
  /// position; 0: nobody asks.
  int64_t counted_calls = 0;
  std::string counter;                  // the name of that state
  int64_t first_call = 1, stretch = 0;  // see StreamNotes
  bool exact = true;
};

StreamPlan plan_stream(const Module& module, const Function& function,
                       const StreamOptions& options);

}  // namespace backcast
