// What the rules of attention share. Heads are [B, H, S, D].
#pragma once

#include <limits>

#include "frontend/node_context.h"

namespace backcast {

inline constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// An attribute that counts heads.
int64_t heads_attribute(const NodeContext& n, const char* name);
/// [B, S, H·D] becomes [B, H, S, D].
ValueId split_heads(NodeContext& n, ValueId x, int64_t heads);
/// [B, H, S, D] becomes [B, S, H·D].
ValueId merge_heads(NodeContext& n, ValueId x);

/// The attribute scale; where it is absent or 0, 1 / sqrt(width).
double scale_attribute(const NodeContext& n, const Dim& width);
/// cap·tanh(x / cap) by the attribute softcap, if that is positive.
ValueId soft_capped(NodeContext& n, ValueId x);
/// x as long as `extent` along an axis, with `fill` at the end.
ValueId extended(Emitter& e, ValueId x, int64_t axis, const Dim& extent, double fill);

/// Scores [B, H, S, T] without those of keys behind the query's position, of which `past` come
/// before the first.
ValueId causal(Emitter& e, ValueId scores, const Dim& past);

struct CacheWrite {
  int64_t axis;           // of the cache, from 1 on
  ValueId start;          // integers [B]: where along it an example's update begins; absent: at 0
  bool circular = false;  // whether what is beyond the end goes on at the beginning
};
/// The cache [B, …] with `update`, whose axis may be shorter, in it.
ValueId written(Emitter& e, ValueId cache, ValueId update, const CacheWrite& to);

struct Rotation {
  ValueId cosine, sine;  // broadcast to [B, H, S, extent / 2]
  int64_t extent;        // leading elements of every head that turn: even, 2 to D
  bool interleaved;      // whether pairs are neighbours, not halves
};
/// Rotary positions of x[B, H, S, D].
ValueId rotated(Emitter& e, ValueId x, const Rotation& by);

}  // namespace backcast
