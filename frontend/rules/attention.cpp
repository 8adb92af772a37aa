// Scaled dot-product attention and what transformers put around it.
#include "frontend/rules/attention.h"

#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Every head of axis 1 repeated, neighbours equal.
ValueId repeat_heads(NodeContext& n, ValueId x, const Dim& heads) {
  const Shape s = n.e.shape(x);
  if (s[1] == heads) return x;
  const Dim times = Dim::floor_div(heads, s[1]);
  if (!(times * s[1] == heads)) n.fail("the query's heads are no multiple of the key's");
  return n.e.repeat(x, 1, times);
}

/// The mask padded along its last axis to the number of keys: what is beyond it is masked out.
ValueId padded_mask(NodeContext& n, ValueId mask, const Dim& keys) {
  const int64_t rank = n.e.rank(mask);
  if (n.e.extent(mask, rank - 1) == Dim(1)) return mask;
  const double fill = n.e.element(mask) == ElementType::boolean ? 0 : kMinusInfinity;
  return extended(n.e, mask, rank - 1, keys, fill);
}

ValueId masked(NodeContext& n, ValueId scores, const Dim& past) {
  Emitter& e = n.e;
  const Shape shape = e.shape(scores);
  const ValueId nothing = e.scalar(e.element(scores), kMinusInfinity);
  if (n.has(3)) {
    if (n.rank(3) < 1 || n.rank(3) > 4) n.fail("the mask has to be of rank 1 to 4");
    const ValueId mask = padded_mask(n, n.input(3), shape[3]);
    scores = e.element(mask) == ElementType::boolean
                 ? e.select(mask, scores, nothing)
                 : e.add(scores, e.cast(mask, e.element(scores)));
  }
  if (n.attr_int("is_causal", 0) != 0) scores = causal(e, scores, past);
  if (n.has(6)) {
    if (n.rank(6) != 1) n.fail("nonpad_kv_seqlen has to be a vector");
    const ValueId key = e.positions(shape, 3);
    const ValueId length = e.broadcast_in(e.cast(n.input(6), ElementType::i32), shape, {0});
    scores = e.select(e.compare(Comparison::lt, key, length), scores, nothing);
  }
  return scores;
}

void attention(NodeContext& n) {
  Emitter& e = n.e;
  const bool packed = n.rank(0) == 3;
  const auto operand = [&](size_t i, const char* heads) {
    const ValueId x = n.input(i);
    if (packed) return split_heads(n, x, heads_attribute(n, heads));
    if (e.rank(x) != 4) n.fail("Q, K and V have to be of rank 3 or 4");
    return x;
  };
  const ElementType element = n.element(0);
  const ValueId q = operand(0, "q_num_heads");
  ValueId k = operand(1, "kv_num_heads"), v = operand(2, "kv_num_heads");
  Dim past(0);
  if (n.has(4) != n.has(5)) n.fail("past_key and past_value are used together only");
  if (n.has(4)) {
    if (n.rank(4) != 4 || n.rank(5) != 4) n.fail("past_key and past_value have to be of rank 4");
    past = e.extent(n.input(4), 2);
    k = e.concat({n.input(4), k}, 2);
    v = e.concat({n.input(5), v}, 2);
  }
  n.set(1, k);
  n.set(2, v);
  const Dim heads = e.extent(q, 1);
  k = repeat_heads(n, k, heads);
  v = repeat_heads(n, v, heads);
  const Dim width = e.extent(q, 3);
  if (!n.has_attr("scale") && !width.is_constant()) n.fail("the head size has to be fixed");
  const double scale = n.has_attr("scale") ? n.attr_float("scale", 1)
                                           : 1 / std::sqrt(static_cast<double>(width.constant()));
  // Half of the scale goes to either side, which keeps f16 in range.
  const double root = std::sqrt(std::abs(scale));
  const DotGeneralAttrs keys = {{0, 1}, {0, 1}, {3}, {3}}, values = {{0, 1}, {0, 1}, {3}, {2}};
  ValueId scores = e.dot(e.mul(q, scale < 0 ? -root : root), e.mul(k, root), keys);
  const int64_t mode = n.attr_int("qk_matmul_output_mode", 0);
  if (mode == 0) n.set(3, scores);
  scores = soft_capped(n, scores);
  if (mode == 1) n.set(3, scores);
  scores = masked(n, scores, past);
  if (mode == 2) n.set(3, scores);
  const ElementType precision = n.attr_element("softmax_precision", element);
  const ValueId weights = softmax(n, e.cast(scores, precision), 3);
  if (mode == 3) n.set(3, e.cast(weights, element));
  const ValueId y = e.dot(e.cast(weights, e.element(v)), v, values);
  n.result(e.cast(packed ? merge_heads(n, y) : y, element));
}

void rotary_embedding(NodeContext& n) {
  Emitter& e = n.e;
  const bool packed = n.rank(0) == 3;
  const ValueId x =
      packed ? split_heads(n, n.input(0), heads_attribute(n, "num_heads")) : n.input(0);
  if (e.rank(x) != 4) n.fail("the input has to be of rank 3 or 4");
  const Shape s = e.shape(x);  // [B, H, S, D]
  if (!s[3].is_constant()) n.fail("the head size has to be fixed");
  int64_t extent = n.attr_int("rotary_embedding_dim", 0);
  if (extent == 0) extent = s[3].constant();
  if (extent < 2 || extent % 2 != 0 || extent > s[3].constant()) {
    n.fail(fmt::format("attribute \"rotary_embedding_dim\" is {}", extent));
  }
  const auto cache = [&](size_t i) {
    ValueId table = n.input(i);
    if (n.has(3)) table = e.take(table, n.input(3), 0);
    const Shape shape = {s[0], s[2], Dim(extent / 2)};
    if (!(e.shape(table) == shape)) n.fail("a cache has another shape than the input asks for");
    return e.unsqueeze(table, 1);
  };
  const bool interleaved = n.attr_int("interleaved", 0) != 0;
  const ValueId y = rotated(e, x, {cache(1), cache(2), extent, interleaved});
  n.result(packed ? merge_heads(n, y) : y);
}

/// The recurrence of linear attention, step by step; the state is [B, H, d_k, d_v] in f32.
void linear_attention(NodeContext& n) {
  Emitter& e = n.e;
  const int64_t q_heads = heads_attribute(n, "q_num_heads");
  const int64_t heads = heads_attribute(n, "kv_num_heads");
  const std::string rule = n.attr_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") {
    n.fail(fmt::format("attribute \"update_rule\" is \"{}\"", rule));
  }
  if (gated != n.has(4) || delta != n.has(5)) {
    n.fail("decay goes with the gated rules and beta with the delta rules");
  }
  const ElementType f32 = ElementType::f32;
  const auto unpack = [&](size_t i, int64_t count) {
    return split_heads(n, e.cast(n.input(i), f32), count);
  };
  const ValueId q = unpack(0, q_heads), k = unpack(1, heads), v = unpack(2, heads);
  const Dim steps = e.extent(q, 2), width = e.extent(q, 3);
  if (!steps.is_constant() || steps.constant() > 4096) {
    n.fail("the number of time steps has to be fixed and at most 4096");
  }
  if (!width.is_constant()) n.fail("the head size has to be fixed");
  const double scale = scale_attribute(n, width);
  ValueId decay, beta;
  if (gated) {
    const bool per_head = n.shape(4).back() == Dim(heads);
    decay = e.unary(ops::exp,
                    per_head ? split_heads(n, e.cast(n.input(4), f32), heads) : unpack(4, heads));
  }
  if (delta) beta = unpack(5, n.shape(5).back() == Dim(1) ? 1 : heads);
  const Shape matrix = {e.extent(q, 0), Dim(heads), width, e.extent(v, 3)};
  ValueId state = n.has(3) ? e.cast(n.input(3), f32) : e.filled({f32, matrix}, 0);
  std::vector<ValueId> outputs;
  for (int64_t t = 0; t < steps.constant(); ++t) {
    const auto at = [&](ValueId x) { return e.slice_axis(x, 2, t, t + 1); };
    const ValueId key = e.transpose(at(k), {0, 1, 3, 2});  // [B, H, d_k, 1]
    if (gated) state = e.mul(state, e.transpose(at(decay), {0, 1, 3, 2}));
    ValueId value = at(v);  // [B, H, 1, d_v]
    if (delta) {
      const ValueId recalled = e.dot(at(k), state, {{0, 1}, {0, 1}, {3}, {2}});
      value = e.mul(e.sub(value, recalled), at(beta));
    }
    state = e.add(state, e.mul(key, value));
    const ValueId shared = repeat_heads(n, state, q_heads);
    outputs.push_back(e.dot(at(q), shared, {{0, 1}, {0, 1}, {3}, {2}}));
  }
  if (outputs.empty()) n.fail("there is no time step");
  const ValueId y = e.mul(e.concat(outputs, 2), scale);
  n.result(e.cast(merge_heads(n, y), n.element(0)));
  n.set(1, e.cast(state, n.has(3) ? n.element(3) : n.element(0)));
}

/// A depthwise convolution that looks back only, over what the state remembers.
void causal_conv_with_state(NodeContext& n) {
  Emitter& e = n.e;
  if (n.rank(0) != 3 || n.rank(1) != 3) n.fail("the input and the weights have to be of rank 3");
  const Shape s = n.shape(0), w = n.shape(1);
  if (!w[2].is_constant() || !s[1].is_constant()) n.fail("channels and kernel have to be fixed");
  const Dim memory = w[2] - 1;
  const ValueId past = n.has(3) ? n.input(3) : e.filled({n.element(0), {s[0], s[1], memory}}, 0);
  const ValueId x = e.concat({past, n.input(0)}, 2);
  ConvAttrs attrs;
  attrs.input_spatial = attrs.kernel_spatial = attrs.output_spatial = {2};
  attrs.strides = attrs.input_dilation = attrs.kernel_dilation = {1};
  attrs.pad_low = attrs.pad_high = {Dim(0)};
  attrs.feature_groups = s[1].constant();
  ValueId y = e.emit(ops::conv, {x, n.input(1)}, std::move(attrs));
  if (n.has(2)) y = e.add(y, e.broadcast_in(n.input(2), e.shape(y), {1}));
  const std::string activation = n.attr_string("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = e.mul(y, e.unary(ops::sigmoid, y));
  } else if (activation != "none") {
    n.fail(fmt::format("attribute \"activation\" is \"{}\"", activation));
  }
  n.result(y);
  n.set(1, e.slice_axis(x, 2, e.extent(x, 2) - memory, e.extent(x, 2)));
}

/// Writes `update` into the cache from each batch's position on.
void tensor_scatter(NodeContext& n) {
  Emitter& e = n.e;
  const int64_t rank = n.rank(0);
  const int64_t axis = n.attr_axis("axis", -2, rank);
  if (axis == 0 || n.rank(1) != rank) n.fail("cache and update need equal ranks, and axis >= 1");
  const std::string mode = n.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") n.fail("attribute \"mode\" is unknown");
  const ValueId start = n.has(2) ? n.input(2) : ValueId();
  n.result(written(e, n.input(0), n.input(1), {axis, start, mode == "circular"}));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Attention", 23, 23, 3, 6, attention,
     "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
     "softmax_precision:i"},
    {"Attention", 24, kNew, 3, 7, attention,
     "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
     "softmax_precision:i"},
    {"RotaryEmbedding", 23, kNew, 3, 4, rotary_embedding,
     "interleaved:i num_heads:i rotary_embedding_dim:i"},
    {"LinearAttention", 27, kNew, 3, 6, linear_attention,
     "chunk_size:i kv_num_heads:i q_num_heads:i scale:f update_rule:s"},
    {"CausalConvWithState", 27, kNew, 2, 4, causal_conv_with_state, "activation:s"},
    {"TensorScatter", 24, kNew, 2, 3, tensor_scatter, "axis:i mode:s"},
};

}  // namespace

int64_t heads_attribute(const NodeContext& n, const char* name) {
  const int64_t heads = n.attr_int(name, 0);
  if (heads < 1 || heads > INT32_MAX)
    n.fail(fmt::format("attribute \"{}\" has to be positive", name));
  return heads;
}

ValueId split_heads(NodeContext& n, ValueId x, int64_t heads) {
  const Shape s = n.e.shape(x);
  if (s.size() != 3 || !(Dim::mod(s[2], heads) == Dim(0))) {
    n.fail(fmt::format("shape {} cannot be split into {} heads", to_string(s), heads));
  }
  const ValueId split = n.e.reshape(x, {s[0], s[1], Dim(heads), Dim::floor_div(s[2], heads)});
  return n.e.transpose(split, {0, 2, 1, 3});
}

ValueId merge_heads(NodeContext& n, ValueId x) {
  const Shape s = n.e.shape(x);
  return n.e.reshape(n.e.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

double scale_attribute(const NodeContext& n, const Dim& width) {
  const double scale = n.attr_float("scale", 0);
  if (scale != 0) return scale;
  if (!width.is_constant()) n.fail("the head size has to be fixed");
  return 1 / std::sqrt(static_cast<double>(width.constant()));
}

ValueId soft_capped(NodeContext& n, ValueId x) {
  const double cap = n.attr_float("softcap", 0);
  return cap > 0 ? n.e.mul(n.e.unary(ops::tanh, n.e.div(x, cap)), cap) : x;
}

ValueId extended(Emitter& e, ValueId x, int64_t axis, const Dim& extent, double fill) {
  const Dim missing = extent - e.extent(x, axis);
  if (missing == Dim(0)) return x;
  const Dims none(static_cast<size_t>(e.rank(x)), Dim(0));
  Dims more = none;
  more[static_cast<size_t>(axis)] = missing;
  return e.pad(x, e.scalar(e.element(x), fill), none, more);
}

ValueId causal(Emitter& e, ValueId scores, const Dim& past) {
  const Shape shape = e.shape(scores), matrix = {shape[2], shape[3]};
  const ValueId before = e.cast(e.dimension(past), ElementType::i32);
  const ValueId row = e.add(e.positions(matrix, 0), before);
  const ValueId visible = e.compare(Comparison::le, e.positions(matrix, 1), row);
  return e.select(visible, scores, e.scalar(e.element(scores), kMinusInfinity));
}

ValueId written(Emitter& e, ValueId cache, ValueId update, const CacheWrite& to) {
  const int64_t rank = e.rank(cache);
  const Shape shape = e.shape(update);
  std::vector<ValueId> coordinates;
  for (int64_t i = 0; i < rank; ++i) {
    ValueId along = e.iota(ElementType::i64, shape, i);
    if (i == to.axis && to.start.valid()) {
      along = e.add(along, e.broadcast_in(e.cast(to.start, ElementType::i64), shape, {0}));
    }
    if (i == to.axis && to.circular) {
      along = e.binary(ops::mod, along, e.dimension(e.extent(cache, i)));
    }
    coordinates.push_back(e.unsqueeze(along, rank));
  }
  ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = counting(rank);
  attrs.index_vector_dim = rank;
  return e.emit(ops::scatter, {cache, e.concat(coordinates, rank), update}, std::move(attrs));
}

ValueId rotated(Emitter& e, ValueId x, const Rotation& by) {
  const Dim width = e.extent(x, 3);
  const int64_t half = by.extent / 2;
  const ValueId turned = e.slice_axis(x, 3, 0, by.extent);
  const auto part = [&](int64_t begin) {
    return by.interleaved ? e.slice_axis(turned, 3, begin, by.extent, 2)
                          : e.slice_axis(turned, 3, begin * half, (begin + 1) * half);
  };
  const ValueId a = part(0), b = part(1);
  const ValueId real = e.sub(e.mul(a, by.cosine), e.mul(b, by.sine));
  const ValueId imaginary = e.add(e.mul(a, by.sine), e.mul(b, by.cosine));
  ValueId y;
  if (by.interleaved) {
    y = e.concat({e.unsqueeze(real, 4), e.unsqueeze(imaginary, 4)}, 4);
    y = e.reshape(y, e.shape(turned));
  } else {
    y = e.concat({real, imaginary}, 3);
  }
  return width == Dim(by.extent) ? y : e.concat({y, e.slice_axis(x, 3, by.extent, width)}, 3);
}

std::span<const OperatorRule> attention_rules() { return kRules; }

}  // namespace backcast
