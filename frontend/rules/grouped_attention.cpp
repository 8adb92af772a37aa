// Attention of com.microsoft whose heads share keys and values, as generators of language models
// write it. Letters in shapes: B examples, S queries, H heads of D elements, G groups of them with
// keys of their own, of which T are kept and P came in.
#include "frontend/operators.h"
#include "frontend/rules/attention.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr size_t kPastKeys = 3, kPastValues = 4, kLengths = 5, kTotal = 6, kCosines = 7, kSines = 8,
                 kPositions = 9, kBias = 10, kSinks = 11, kQueryNorm = 14, kKeyNorm = 15;

void refuse_what_is_missing(const NodeContext& n) {
  for (const char* kind : {"k_quant_type", "v_quant_type"}) {
    if (n.attr_string(kind, "NONE") != "NONE") n.fail("a quantised cache is not supported");
  }
  if (n.has(12) || n.has(13)) n.fail("a quantised cache is not supported");
  if (n.attr_int("sliding_window_cache", 0) != 0) {
    n.fail("a cache that drops old keys by itself is not supported; leave sliding_window_cache 0");
  }
  if (n.uses(3)) n.fail("the scores as an output are not supported; leave output_qk out");
  if (n.has(1) != n.has(2)) n.fail("keys and values are used together only");
  if (n.has(kPastKeys) != n.has(kPastValues)) {
    n.fail("past_key and past_value are used together only");
  }
  if (n.has(kQueryNorm) != n.has(kKeyNorm)) n.fail("queries and keys are normalised together only");
  if (n.rank(0) != 3 || (n.has(1) && n.rank(1) != 3) || (n.has(2) && n.rank(2) != 3)) {
    n.fail("queries, keys and values have to be of rank 3");
  }
  if (n.has(kPastKeys) && (n.rank(kPastKeys) != 4 || n.rank(kPastValues) != 4)) {
    n.fail("past_key and past_value have to be of rank 4");
  }
}

/// What the node's inputs come to.
struct Heads {
  ValueId q, k, v;  // [B, H, S, D], [B, G, S, D]
  ValueId length;   // i32[B], how many keys count
  ValueId start;    // i32[B], how many of them came before these queries
};

Heads split(NodeContext& n, int64_t heads, int64_t groups) {
  Emitter& e = n.e;
  Heads h;
  if (n.has(1)) {
    h.q = split_heads(n, n.input(0), heads);
    h.k = split_heads(n, n.input(1), groups);
    h.v = split_heads(n, n.input(2), groups);
  } else {
    const ValueId all = split_heads(n, n.input(0), heads + 2 * groups);
    h.q = e.slice_axis(all, 1, 0, heads);
    h.k = e.slice_axis(all, 1, heads, heads + groups);
    h.v = e.slice_axis(all, 1, heads + groups, heads + 2 * groups);
  }
  const Dim batch = e.extent(h.q, 0), steps = e.extent(h.q, 2);
  if (!(e.extent(h.k, 2) == steps) || !(e.extent(h.k, 3) == e.extent(h.q, 3))) {
    n.fail(fmt::format("keys of shape {} do not fit queries of shape {}", to_string(e.shape(h.k)),
                       to_string(e.shape(h.q))));
  }
  if (!(n.type(kLengths).element_count() == batch)) n.fail("seqlens_k needs a length per example");
  h.length = e.add(e.reshape(e.cast(n.input(kLengths), ElementType::i32), {batch}), 1);
  // Of prompts filled up on the right some are shorter than the queries.
  const ValueId before = e.sub(h.length, e.cast(e.dimension(steps), ElementType::i32));
  h.start = e.max(before, e.like(before, 0));
  return h;
}

/// i32 of a shape with B first: what an example has, and its index along an axis on top.
ValueId counted_from(Emitter& e, ValueId start, const Shape& shape, int64_t axis) {
  return e.add(e.broadcast_in(start, shape, {0}), e.positions(shape, axis));
}

void normalise(NodeContext& n, Heads& h) {
  const double epsilon = n.attr_float("qk_norm_epsilon", 1e-6f);
  const Normalisation by{3, epsilon, stash_of(n.element(0))};
  h.q = rms_normalised(n, h.q, n.input(kQueryNorm), by);
  h.k = rms_normalised(n, h.k, n.input(kKeyNorm), by);
}

void rotate(NodeContext& n, Heads& h) {
  Emitter& e = n.e;
  if (!n.has(kCosines) || !n.has(kSines)) n.fail("do_rotary needs cos_cache and sin_cache");
  const Shape table = n.shape(kCosines), s = e.shape(h.q);
  if (table.size() != 2 || !table[1].is_constant() || !(n.shape(kSines) == table)) {
    n.fail("the caches have to be matrices of one shape");
  }
  const int64_t extent = 2 * table[1].constant();
  if (extent < 2 || (s[3].is_constant() && extent > s[3].constant())) {
    n.fail(fmt::format("the caches turn {} elements of every head of {}", extent, to_string(s)));
  }
  const Shape places = {s[0], s[2]};
  const ValueId place = n.has(kPositions) ? e.broadcast_to(n.input(kPositions), places)
                                          : counted_from(e, h.start, places, 1);
  const auto cache = [&](size_t i) { return e.unsqueeze(e.take(n.input(i), place, 0), 1); };
  const bool interleaved = n.attr_int("rotary_interleaved", 0) != 0;
  const Rotation by{cache(kCosines), cache(kSines), extent, interleaved};
  h.q = rotated(e, h.q, by);
  h.k = rotated(e, h.k, by);
}

/// How many keys there are afterwards: as many as were ever, or as the cache that came in has room
/// for.
Dim kept_keys(NodeContext& n, const Dim& steps) {
  const std::optional<Dims> total = n.known_dims(kTotal);
  const Dim past = n.has(kPastKeys) ? n.shape(kPastKeys)[2] : Dim(0);
  if (total && total->size() == 1) {
    const bool grows = (total->front() - past).range(n.ranges()).min >= 0;
    return grows ? total->front() : Dim::max(past, total->front());
  }
  if (!n.has(kPastKeys)) return steps;
  n.note(
      "total_sequence_length is not known beforehand: past_key and past_value are taken as "
      "buffers with room for all keys");
  return past;
}

/// [B, G, T, D]: what came in, and the new ones from each example's start on.
ValueId cached(NodeContext& n, size_t past, ValueId now, ValueId start, const Dim& keys) {
  Emitter& e = n.e;
  Shape shape = e.shape(now);
  if (!n.has(past) && shape[2] == keys) return now;  // a prompt, which starts at the beginning
  shape[2] = keys;
  const bool is_empty = !n.has(past) || n.shape(past)[2] == Dim(0);
  const ValueId cache =
      is_empty ? e.filled({e.element(now), shape}, 0) : extended(e, n.input(past), 2, keys, 0);
  return written(e, cache, now, {.axis = 2, .start = start, .circular = false});
}

/// Without the keys that a query does not see.
ValueId visible(NodeContext& n, const Heads& h, ValueId scores) {
  Emitter& e = n.e;
  const Shape shape = e.shape(scores);  // [B, H, S, T]
  const Shape alike = {shape[0], Dim(1), shape[2], shape[3]};
  const ValueId key = e.positions(alike, 3);
  const int64_t window = n.attr_int("local_window_size", -1);
  const bool is_causal = n.attr_int("causal", 1) != 0;
  if (!is_causal && window >= 0) n.fail("local_window_size needs causal attention");
  ValueId seen;
  if (is_causal) {
    const ValueId query = counted_from(e, h.start, alike, 2);
    seen = e.compare(Comparison::le, key, query);
    if (window >= 0) {
      const ValueId first = e.sub(query, static_cast<double>(window));
      seen = e.binary(ops::bit_and, seen, e.compare(Comparison::gt, key, first));
    }
  } else {
    seen = e.compare(Comparison::lt, key, e.broadcast_in(h.length, alike, {0}));
  }
  return e.select(seen, scores, e.scalar(e.element(scores), kMinusInfinity));
}

/// softmax along the keys; sinks take part and are dropped.
ValueId weights(NodeContext& n, ValueId scores) {
  Emitter& e = n.e;
  const bool smooth = n.attr_int("smooth_softmax", 0) > 0;
  if (!smooth && !n.has(kSinks)) return softmax(n, scores, 3);
  Shape column = e.shape(scores);
  const Dim keys = column[3];
  column[3] = Dim(1);
  const ValueId sink = n.has(kSinks) ? e.broadcast_in(n.input(kSinks), column, {1})
                                     : e.filled({e.element(scores), column}, 0);
  return e.slice_axis(softmax(n, e.concat({scores, sink}, 3), 3), 3, 0, keys);
}

void group_query_attention(NodeContext& n) {
  Emitter& e = n.e;
  refuse_what_is_missing(n);
  const int64_t heads = heads_attribute(n, "num_heads");
  const int64_t groups = heads_attribute(n, "kv_num_heads");
  if (heads % groups != 0) n.fail("num_heads is no multiple of kv_num_heads");
  Heads h = split(n, heads, groups);
  if (n.has(kQueryNorm)) normalise(n, h);
  if (n.attr_int("do_rotary", 0) != 0) rotate(n, h);

  const Shape s = e.shape(h.q);
  const Dim keys = kept_keys(n, s[2]);
  const ValueId k = cached(n, kPastKeys, h.k, h.start, keys);
  const ValueId v = cached(n, kPastValues, h.v, h.start, keys);
  n.set(1, k);
  n.set(2, v);

  // The queries of a group are rows of one product.
  const Shape rows = {s[0], Dim(groups), s[2] * Dim(heads / groups), s[3]};
  ValueId scores = e.dot(e.reshape(h.q, rows), k, {{0, 1}, {0, 1}, {3}, {3}});
  const Shape grouped = e.shape(scores);
  const Shape by_head = {s[0], s[1], s[2], keys};
  scores = soft_capped(n, e.mul(e.reshape(scores, by_head), scale_attribute(n, s[3])));
  if (n.has(kBias)) {
    if (n.rank(kBias) != 4) n.fail("attention_bias has to be of rank 4");
    scores = e.add(scores, extended(e, n.input(kBias), 3, keys, 0));
  }
  const ValueId share = weights(n, visible(n, h, scores));
  const ValueId y = e.dot(e.reshape(share, grouped), v, {{0, 1}, {0, 1}, {3}, {2}});
  n.result(merge_heads(n, e.reshape(y, s)));
}

const OperatorRule kRules[] = {
    {"GroupQueryAttention", 1, kMicrosoftOpset, 7, 16, group_query_attention,
     "causal:i do_rotary:i k_quant_type:s kv_cache_bit_width:i kv_num_heads:i local_window_size:i "
     "num_heads:i qk_norm_epsilon:f qk_output:i rotary_interleaved:i scale:f "
     "sliding_window_cache:i smooth_softmax:i softcap:f v_quant_type:s",
     kMicrosoftDomain},
};

}  // namespace

std::span<const OperatorRule> grouped_attention_rules() { return kRules; }

}  // namespace backcast
