// Computing a result piece by piece along an axis, as its operands become known: which positions of
// an operand a position of the result reads, and what the operator looks like on a piece of them.
// One row per kind of operator; an operator without a row can only be computed as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/module.h"
#include "ir/ops/op_attrs.h"

namespace backcast {

/// Position j of the result reads positions j · stride - before … j · stride - before + reach - 1
/// of the operand, in which position i has been moved to i · dilation.
struct Reach {
  int64_t reach = 1, stride = 1, before = 0, dilation = 1;
  friend bool operator==(const Reach&, const Reach&) = default;
};

struct OperandPieces {
  enum class Kind {
    whole,  // read as it is by every piece
    same,   // has to be the same at all positions of `axis`
    pieces
  };
  Kind kind = Kind::whole;
  int64_t axis = 0;
  Reach reach = {};
  /// What positions in front of the first one count as: an element of the operand's type. Set
  /// wherever they are read.
  std::optional<Literal> padding;
  bool fills = false;  // positions of the result that read nothing but padding are that element
};

/// Operand `operand`, a value that stays from piece to piece, is result `result`'s next value.
struct Carried {
  size_t operand = 0, result = 0;
};

struct Pieces {
  std::vector<OperandPieces> operands;
  /// Per tensor of the result: the axis that its pieces are of; -1: the value behind the last
  /// position so far.
  std::vector<int64_t> axes;
  std::vector<Carried> carried;
  std::optional<size_t> count;  // the operand that says how many positions there are, an i64
};

struct PiecesContext {
  const Function& function;
  const Node& node;
  std::span<const int64_t> axes;  // per operand: the axis that its pieces are of; -1: it is whole
};

/// Nothing when the node cannot be computed so. All extents are constants.
std::optional<Pieces> pieces_of(const PiecesContext& context);

/// How many positions a piece has, and what it reads beside its operand's: where positions have
/// been moved apart, how many of those in front are left out (negative) and behind are missing.
struct PieceExtents {
  int64_t operand = 0, result = 0, pad_low = 0, pad_high = 0;
};

/// The node's attributes for a piece, which is padded nowhere else.
Attrs attrs_of_piece(const PiecesContext& context, const Pieces& pieces,
                     const PieceExtents& extents);

/// The attributes of two nodes of the kind, one behind the other, that are the node together, and
/// of which the first can be computed by pieces of its operand. Floats may be added up in another
/// order.
struct PartsInTurn {
  Attrs first, second;
};
std::optional<PartsInTurn> parts_in_turn(const PiecesContext& context);

}  // namespace backcast
