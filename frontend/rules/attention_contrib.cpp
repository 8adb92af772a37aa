// Attention of com.microsoft, as ONNX Runtime's tools write transformers. Letters in shapes: B
// examples, S queries, T keys, P of them from the past, H heads of D elements.
#include "frontend/operators.h"
#include "frontend/rules/attention.h"
#include "frontend/rules/families.h"
#include "frontend/rules/quantization.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Where the inputs of an attention are that say which keys count.
struct Masks {
  size_t keys, scores;  // a mask of keys, and what is added to scores
};
constexpr size_t kNone = SIZE_MAX;

/// Whether a key counts, as the mask in input i says: its element is positive, or the key lies
/// before the example's length, and from its start on where starts follow the lengths. Broadcast to
/// [B, H, S, T].
ValueId counted(NodeContext& n, size_t i, const Shape& scores) {
  Emitter& e = n.e;
  const ValueId mask = n.input(i);
  const Shape given = e.shape(mask);
  if (given.size() == 2 || given.size() == 3) {
    ValueId positive = e.unsqueeze(e.compare(Comparison::gt, mask, 0), 1);
    return given.size() == 2 ? e.unsqueeze(positive, 1) : positive;
  }
  const bool starts = given.size() == 1 && given[0] == scores[0] * Dim(2);
  if (given.size() != 1 || !(starts || given[0] == scores[0])) {
    n.fail(fmt::format("a mask of shape {} is not supported; give one element per key, or lengths",
                       to_string(given)));
  }
  const Shape whole = {scores[0], Dim(1), Dim(1), scores[3]};
  const ValueId key = e.iota(ElementType::i32, whole, 3);
  const auto bound = [&](const Dim& begin) {
    const ValueId part = e.slice_axis(mask, 0, begin, begin + scores[0]);
    return e.broadcast_in(e.cast(part, ElementType::i32), whole, {0});
  };
  const ValueId before = e.compare(Comparison::lt, key, bound(0));
  if (!starts) return before;
  return e.binary(ops::bit_and, before, e.compare(Comparison::ge, key, bound(scores[0])));
}

/// The heads' mixtures, merged, of q, k and v in [B, H, ·, D].
ValueId mixed(NodeContext& n, ValueId q, ValueId k, ValueId v, const Masks& masks,
              const Dim& past) {
  Emitter& e = n.e;
  const double scale = scale_attribute(n, e.extent(q, 3));
  ValueId scores = e.mul(e.dot(q, k, {{0, 1}, {0, 1}, {3}, {3}}), scale);
  if (n.has(masks.keys)) {
    const double filter = n.attr_float("mask_filter_value", -10000);
    const ValueId kept = counted(n, masks.keys, e.shape(scores));
    const ValueId none = e.scalar(e.element(scores), 0);
    scores = e.add(scores, e.select(kept, none, e.scalar(e.element(scores), filter)));
  }
  if (n.has(masks.scores)) scores = e.add(scores, n.input(masks.scores));
  if (n.attr_int("unidirectional", 0) != 0) scores = causal(e, scores, past);
  return merge_heads(n, e.dot(softmax(n, scores, 3), v, {{0, 1}, {0, 1}, {3}, {2}}));
}

void check_projected(const NodeContext& n) {
  if (n.rank(0) != 3 || n.rank(1) != 2) {
    n.fail("the input has to be of rank 3, the weights of rank 2");
  }
  if (n.attr_int("do_rotary", 0) != 0 || n.attr_int("past_present_share_buffer", 0) != 0) {
    n.fail("rotary positions and a shared buffer of the past are not supported here");
  }
}

/// The product of attention on what the input was projected to: queries, keys and values side by
/// side. `past`: input with keys and values from before.
void attend(NodeContext& n, ValueId joined, size_t past_input, const Masks& masks) {
  Emitter& e = n.e;
  const int64_t heads = heads_attribute(n, "num_heads");
  if (n.has(2)) joined = e.add(joined, n.input(2));
  const Dim width = e.extent(joined, 2);
  Dims widths(3, Dim::floor_div(width, 3));
  if (const std::optional<Ints> given = n.attr_ints("qkv_hidden_sizes")) {
    widths.assign(given->begin(), given->end());
  }
  if (widths.size() != 3 || !(widths[0] + widths[1] + widths[2] == width)) {
    n.fail("queries, keys and values do not fill the product");
  }
  Dim begin(0);
  std::vector<ValueId> parts;
  for (const Dim& each : widths) {
    parts.push_back(split_heads(n, e.slice_axis(joined, 2, begin, begin + each), heads));
    begin = begin + each;
  }
  Dim past(0);
  if (n.has(past_input)) {
    const ValueId all = n.input(past_input);
    if (e.rank(all) != 5) n.fail("the past has to be of rank 5");
    past = e.extent(all, 3);
    Shape one = e.shape(all);
    one.erase(one.begin());
    for (int64_t i = 0; i < 2; ++i) {
      const ValueId before = e.reshape(e.slice_axis(all, 0, i, i + 1), one);
      ValueId& now = parts[static_cast<size_t>(1 + i)];
      now = e.concat({before, now}, 2);
    }
  }
  if (n.wants(1)) n.set(1, e.concat({e.unsqueeze(parts[1], 0), e.unsqueeze(parts[2], 0)}, 0));
  n.result(mixed(n, parts[0], parts[1], parts[2], masks, past));
}

void attention(NodeContext& n) {
  check_projected(n);
  if (n.has(6)) n.fail("a shared buffer of the past is not supported");
  attend(n, matmul(n, n.input(0), n.input(1)), 4, {3, 5});
}

/// The same on integers; the scale of the weights may be a vector with an element per column.
void quantised_attention(NodeContext& n) {
  Emitter& e = n.e;
  check_projected(n);
  const ValueId product = matmul(n, centred(n, 0, 6, 1), centred(n, 1, 7, 1));
  const ValueId scale = e.mul(matmul_scale(n, 3, false), matmul_scale(n, 4, false));
  attend(n, e.mul(e.cast(product, e.element(scale)), scale), 8, {5, kNone});
}

/// Attention on queries, keys and values of their own.
void multi_head_attention(NodeContext& n) {
  Emitter& e = n.e;
  const int64_t heads = heads_attribute(n, "num_heads");
  if (!n.has(1) || !n.has(2) || n.rank(0) != 3) {
    n.fail("queries, keys and values in one tensor are not supported; give three");
  }
  if (n.has(8) || n.has(9)) n.fail("a shared buffer of the past is not supported");
  if (n.has(6) != n.has(7)) n.fail("past_key and past_value are used together only");
  Dim begin(0);
  const auto operand = [&](size_t i) {
    ValueId x = n.input(i);
    if (e.rank(x) == 4) return x;  // split into heads, and what is added is in it
    if (n.has(3)) {
      const Dim end = begin + e.extent(x, 2);
      x = e.add(x, e.slice_axis(n.input(3), 0, begin, end));
      begin = end;
    }
    return split_heads(n, x, heads);
  };
  const ValueId q = operand(0);
  ValueId k = operand(1), v = operand(2);
  Dim past(0);
  if (n.has(6)) {
    past = e.extent(n.input(6), 2);
    k = e.concat({n.input(6), k}, 2);
    v = e.concat({n.input(7), v}, 2);
  }
  n.set(1, k);
  n.set(2, v);
  n.result(mixed(n, q, k, v, {4, 5}, past));
}

/// Positions are [B, S], or one number that the first has.
void rotary_embedding(NodeContext& n) {
  Emitter& e = n.e;
  const Shape table = n.shape(2);
  if (table.size() != 2 || !table[1].is_constant()) n.fail("the caches have to be matrices");
  if (n.attr_int("is_packed_batching", 0) != 0 || n.attr_float("scale", 1) != 1) {
    n.fail("packed batches and a scale are not supported");
  }
  const bool packed = n.rank(0) == 3;
  ValueId x = n.input(0);
  if (packed) {
    const Dim width = n.shape(0)[2];
    int64_t heads = n.attr_int("num_heads", 0);
    if (heads == 0 && width.is_constant() && table[1].constant() > 0) {
      heads = width.constant() / (2 * table[1].constant());
    }
    if (heads < 1) n.fail("attribute \"num_heads\" has to be positive");
    x = split_heads(n, x, heads);
  }
  if (e.rank(x) != 4) n.fail("the input has to be of rank 3 or 4");
  const Shape s = e.shape(x);
  const int64_t extent = 2 * table[1].constant();
  if (extent < 2 || (s[3].is_constant() && extent > s[3].constant())) {
    n.fail(fmt::format("the caches turn {} elements of every head of {}", extent, to_string(s)));
  }
  const auto cache = [&](size_t i) {
    if (n.rank(1) == 2) return e.unsqueeze(e.take(n.input(i), n.input(1), 0), 1);
    const ValueId place = e.add(e.iota(ElementType::i64, {s[2]}, 0), n.input(1));
    return e.take(n.input(i), place, 0);
  };
  const bool interleaved = n.attr_int("interleaved", 0) != 0;
  const ValueId y = rotated(e, x, {cache(2), cache(3), extent, interleaved});
  n.result(packed ? merge_heads(n, y) : y);
}

constexpr int64_t kNew = kMicrosoftOpset;

const OperatorRule kRules[] = {
    {"Attention", 1, kNew, 2, 7, attention,
     "do_rotary:i mask_filter_value:f num_heads:i past_present_share_buffer:i qkv_hidden_sizes:I "
     "rotary_embedding_dim:i scale:f unidirectional:i",
     kMicrosoftDomain},
    {"QAttention", 1, kNew, 5, 9, quantised_attention,
     "do_rotary:i mask_filter_value:f num_heads:i past_present_share_buffer:i scale:f "
     "unidirectional:i",
     kMicrosoftDomain},
    {"MultiHeadAttention", 1, kNew, 1, 10, multi_head_attention,
     "mask_filter_value:f num_heads:i scale:f unidirectional:i", kMicrosoftDomain},
    {"RotaryEmbedding", 1, kNew, 4, 4, rotary_embedding,
     "interleaved:i is_packed_batching:i num_heads:i rotary_embedding_dim:i scale:f",
     kMicrosoftDomain},
};

}  // namespace

std::span<const OperatorRule> attention_contrib_rules() { return kRules; }

}  // namespace backcast
