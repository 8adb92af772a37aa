// Random tensors. In training they are made of the state, like the masks of Dropout; otherwise of a
// seed that the caller gives, or of the node's own.
#include <bit>
#include <cmath>
#include <numbers>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/random_words.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

RandomSource source_of(NodeContext& n) {
  const TrainingImport& training = n.training();
  if (training.mode == ImportMode::training) return trained_source(n);
  if (n.has_attr("seed")) {
    return fixed_source(n, std::bit_cast<uint32_t>(static_cast<float>(n.attr_float("seed", 0))));
  }
  if (training.builder != &n.e.builder()) {
    n.fail("draws inside of If, Loop or Scan; give the node a seed, or draw outside");
  }
  const ValueId word = n.e.reshape(training.seed, {Dim(1)});
  return {n.e.concat({word, n.e.like(word, 0)}, 0), n.e.scalar(kRandomWord, 0)};
}

/// What is computed in: f32, or f64 for f64.
ElementType wide(ElementType element) {
  return element == ElementType::f64 ? ElementType::f64 : ElementType::f32;
}

/// Numbers from 0 on and below 1, or with `open` above 0: multiples of 2^-24 in f32, of 2^-32 in
/// f64. `element`: one of the two.
ValueId uniform(NodeContext& n, const RandomSource& source, const Shape& shape, ElementType element,
                bool open = false) {
  const int64_t bits = element == ElementType::f64 ? 32 : 24;
  const ValueId words = random_words(n, source, shape);
  const ValueId top =
      n.e.binary(ops::shift_right, words, n.e.like(words, static_cast<double>(32 - bits)));
  const ValueId number = n.e.cast(top, element);
  return n.e.mul(open ? n.e.add(number, 1) : number, std::ldexp(1.0, -static_cast<int>(bits)));
}

/// The transform of Box and Muller ("A note on the generation of random normal deviates", 1958).
ValueId normal(NodeContext& n, const RandomSource& source, const Shape& shape,
               ElementType element) {
  const ValueId radius = n.e.unary(
      ops::sqrt, n.e.mul(n.e.unary(ops::log, uniform(n, source, shape, element, true)), -2));
  const ValueId angle = n.e.mul(uniform(n, source, shape, element), 2 * std::numbers::pi);
  return n.e.mul(radius, n.e.unary(ops::cos, angle));
}

void set_normal(NodeContext& n, const TensorType& type) {
  const ValueId x = normal(n, source_of(n), type.shape, wide(type.element));
  const ValueId scaled = n.e.mul(x, n.attr_float("scale", 1));
  n.result(n.e.cast(n.e.add(scaled, n.attr_float("mean", 0)), type.element));
}

void set_uniform(NodeContext& n, const TensorType& type) {
  const double low = n.attr_float("low", 0), high = n.attr_float("high", 1);
  const ValueId x = uniform(n, source_of(n), type.shape, wide(type.element));
  n.result(n.e.cast(n.e.add(n.e.mul(x, high - low), low), type.element));
}

/// The type of what is drawn: by the attributes, or like the input.
TensorType drawn_type(NodeContext& n) {
  TensorType type;
  const bool like = n.input_count() > 0;
  type.element = n.attr_element("dtype", like ? n.element(0) : ElementType::f32);
  if (like) {
    type.shape = n.shape(0);
  } else {
    const std::optional<Ints> shape = n.attr_ints("shape");
    if (!shape) n.fail("attribute \"shape\" is missing");
    for (const int64_t extent : *shape) {
      if (extent < 0) n.fail(fmt::format("attribute \"shape\" has the extent {}", extent));
      type.shape.push_back(Dim(extent));
    }
  }
  if (!is_float(type.element)) {
    n.fail(
        fmt::format("draws numbers of type {}; attribute \"dtype\" has to be a floating-point one",
                    name_of(type.element)));
  }
  return type;
}

void random_normal(NodeContext& n) { set_normal(n, drawn_type(n)); }
void random_uniform(NodeContext& n) { set_uniform(n, drawn_type(n)); }

void bernoulli(NodeContext& n) {
  const ElementType element = n.attr_element("dtype", n.element(0));
  const ElementType computed = wide(n.element(0));
  const ValueId p = n.e.cast(n.input(0), computed);
  const ValueId drawn = uniform(n, source_of(n), n.shape(0), computed);
  n.result(n.e.cast(n.e.compare(Comparison::lt, drawn, p), element));
}

/// Of every row of logarithms of weights, [batch, classes], so many classes: how many shares,
/// summed up, lie below a number between 0 and their total.
void multinomial(NodeContext& n) {
  const ElementType element = n.attr_element("dtype", ElementType::i32);
  if (element != ElementType::i32 && element != ElementType::i64) {
    n.fail("attribute \"dtype\" has to be int32 or int64");
  }
  if (n.rank(0) != 2) n.fail("needs an input of rank 2");
  const int64_t samples = n.attr_int("sample_size", 1);
  if (samples < 1) n.fail(fmt::format("attribute \"sample_size\" is {}", samples));
  const Dim batch = n.shape(0)[0], classes = n.shape(0)[1];
  const ElementType computed = wide(n.element(0));
  const ValueId shares = softmax(n, n.e.cast(n.input(0), computed), 1);
  const ValueId below = n.e.cumulative(Reduction::sum, shares, 1, false, false);
  // The last bound is left out, so that rounding names no class that does not exist.
  const ValueId bounds = n.e.slice_axis(below, 1, Dim(0), classes - 1);
  const Shape table{batch, Dim(samples), classes - 1};
  const ValueId drawn = uniform(n, source_of(n), {batch, Dim(samples)}, computed);
  const ValueId passed = n.e.compare(Comparison::ge, n.e.broadcast_in(drawn, table, {0, 1}),
                                     n.e.broadcast_in(bounds, table, {0, 2}));
  n.result(n.e.reduce(Reduction::sum, n.e.cast(passed, element), {2}));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"RandomNormal", 7, kNew, 0, 0, random_normal, "dtype:i mean:f scale:f seed:f shape:I"},
    {"RandomNormalLike", 7, kNew, 1, 1, random_normal, "dtype:i mean:f scale:f seed:f"},
    {"RandomUniform", 7, kNew, 0, 0, random_uniform, "dtype:i high:f low:f seed:f shape:I"},
    {"RandomUniformLike", 7, kNew, 1, 1, random_uniform, "dtype:i high:f low:f seed:f"},
    {"Bernoulli", 15, kNew, 1, 1, bernoulli, "dtype:i seed:f"},
    {"Multinomial", 7, kNew, 1, 1, multinomial, "dtype:i sample_size:i seed:f"},
};

}  // namespace

std::span<const OperatorRule> random_rules() { return kRules; }

}  // namespace backcast
