// Operators of com.microsoft in which ONNX Runtime's optimiser joins several of ONNX: products with
// their activation, sums with the normalisation behind them, forms of GELU.
#include <numeric>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/named_activation.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

// --- activations
// -----------------------------------------------------------------------------------

/// Input 0, and input 1 added where there is one.
ValueId biased(NodeContext& n) { return n.has(1) ? n.e.add(n.input(0), n.input(1)) : n.input(0); }

void gelu_by_erf(NodeContext& n) { n.result(gelu(n.e, biased(n), false)); }
void gelu_by_tanh(NodeContext& n) { n.result(gelu(n.e, biased(n), true)); }

void quick_gelu(NodeContext& n) {
  const ValueId x = n.input(0);
  n.result(n.e.mul(x, n.e.unary(ops::sigmoid, n.e.mul(x, n.attr_float("alpha", 1.702f)))));
}

ValueId activated(NodeContext& n, ValueId x, const std::string& name, std::optional<double> first,
                  std::optional<double> second) {
  if (name.empty()) return x;
  if (name != "Clip") return named_activation(n, name, first, second).apply(n.e, x);
  if (!first || !second) n.fail("activation \"Clip\" needs both of its bounds");
  return n.e.clamp(x, *first, *second);
}

// --- products
// --------------------------------------------------------------------------------------

void fused_conv(NodeContext& n) {
  ValueId y = biased_convolution(n);
  if (n.has(3)) y = n.e.add(y, n.input(3));
  const std::vector<float> given = n.attr_floats("activation_params");
  const auto parameter = [&](size_t i) {
    return i < given.size() ? std::optional<double>(given[i]) : std::nullopt;
  };
  n.result(activated(n, y, n.attr_string("activation", ""), parameter(0), parameter(1)));
}

void fused_gemm(NodeContext& n) {
  const auto parameter = [&](const char* name) {
    return n.has_attr(name) ? std::optional<double>(n.attr_float(name, 0)) : std::nullopt;
  };
  n.result(activated(n, gemm(n), n.attr_string("activation", ""), parameter("activation_alpha"),
                     parameter("activation_beta")));
}

/// An operand of FusedMatMul as MatMul takes it. `batch`: its first axis is moved to the place
/// before the last, before these two may be swapped.
ValueId turned(NodeContext& n, size_t i, const char* swap, const char* batch) {
  const int64_t rank = n.rank(i);
  if (rank < 2) return n.input(i);
  Ints order = counting(rank);
  if (n.attr_int(batch, 0) != 0) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (n.attr_int(swap, 0) != 0) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return n.e.transpose(n.input(i), order);
}

void fused_matmul(NodeContext& n) {
  const double alpha = n.attr_float("alpha", 1);
  const ValueId y =
      matmul(n, turned(n, 0, "transA", "transBatchA"), turned(n, 1, "transB", "transBatchB"));
  n.result(alpha == 1 ? y : n.e.mul(y, alpha));
}

// --- normalisations
// --------------------------------------------------------------------------------

Normalisation last_axis(const NodeContext& n, ValueId x, double epsilon) {
  return {n.e.rank(x) - 1, n.attr_float("epsilon", epsilon), stash_of(n.e.element(x))};
}

/// Input 0 and what is added to it: the skipped input 1 and a bias.
ValueId skipped_sum(NodeContext& n, size_t bias) {
  if (n.uses(1) || n.uses(2)) {
    n.fail("mean and deviation as outputs are not supported; leave these outputs out");
  }
  const Shape shape = n.shape(0);
  if (shape.empty()) n.fail("the input must not be a scalar");
  ValueId sum = n.e.add(n.input(0), n.e.broadcast_to(n.input(1), shape));
  if (n.has(bias)) sum = n.e.add(sum, n.e.broadcast_to(n.input(bias), shape));
  n.set(3, sum);
  return sum;
}

void skip_layer_normalization(NodeContext& n) {
  const ValueId x = skipped_sum(n, 4), beta = n.has(3) ? n.input(3) : ValueId();
  n.result(layer_normalised(n, x, n.input(2), beta, last_axis(n, x, 1e-12f)));
}

void skip_rms_normalization(NodeContext& n) {
  const ValueId x = skipped_sum(n, 3);
  n.result(rms_normalised(n, x, n.input(2), last_axis(n, x, 1e-12f)));
}

/// Embeddings of words, places and segments, normalised; and how many words of the mask count.
void embed_layer_normalization(NodeContext& n) {
  Emitter& e = n.e;
  const Shape ids = n.shape(0);
  if (ids.size() != 2) n.fail(fmt::format("the words are {} and not a matrix", to_string(ids)));
  if (n.attr_int("mask_index_type", 0) != 0) {
    n.fail("attribute \"mask_index_type\" has to be 0");
  }
  ValueId sum = e.take(n.input(2), n.input(0), 0);
  const ValueId places =
      n.has(8) ? e.take(n.input(3), n.input(8), 0) : e.slice_axis(n.input(3), 0, 0, ids[1]);
  sum = e.add(sum, places);
  if (n.has(1) != n.has(4)) n.fail("segments and their embedding are used together only");
  if (n.has(1)) sum = e.add(sum, e.take(n.input(4), n.input(1), 0));
  n.result(layer_normalised(n, sum, n.input(5), n.input(6), last_axis(n, sum, 1e-12f)));
  if (n.wants(1)) {
    n.set(1, n.has(7) ? e.reduce(Reduction::sum,
                                 e.cast(e.compare(Comparison::eq, n.input(7), 1), ElementType::i32),
                                 {1}, false)
                      : e.filled({ElementType::i32, {ids[0]}}, 0));
  }
  n.set(2, sum);
}

constexpr int64_t kNew = kMicrosoftOpset;
constexpr std::string_view kMs = kMicrosoftDomain;

const OperatorRule kRules[] = {
    {"Gelu", 1, kNew, 1, 1, gelu_by_erf, "", kMs},
    {"BiasGelu", 1, kNew, 2, 2, gelu_by_erf, "", kMs},
    {"FastGelu", 1, kNew, 1, 2, gelu_by_tanh, "", kMs},
    {"QuickGelu", 1, kNew, 1, 1, quick_gelu, "alpha:f", kMs},
    {"FusedConv", 1, kNew, 2, 4, fused_conv,
     "activation:s activation_params:F auto_pad:s dilations:I group:i kernel_shape:I pads:I "
     "strides:I",
     kMs},
    {"FusedGemm", 1, kNew, 2, 3, fused_gemm,
     "activation:s activation_alpha:f activation_beta:f activation_gamma:f alpha:f beta:f "
     "transA:i transB:i",
     kMs},
    {"FusedMatMul", 1, kNew, 2, 2, fused_matmul,
     "alpha:f transA:i transB:i transBatchA:i transBatchB:i", kMs},
    {"SkipLayerNormalization", 1, kNew, 3, 5, skip_layer_normalization, "epsilon:f", kMs},
    {"SkipSimplifiedLayerNormalization", 1, kNew, 3, 4, skip_rms_normalization, "epsilon:f", kMs},
    {"EmbedLayerNormalization", 1, kNew, 7, 9, embed_layer_normalization,
     "epsilon:f mask_index_type:i", kMs},
};

}  // namespace

std::span<const OperatorRule> fused_rules() { return kRules; }

}  // namespace backcast
