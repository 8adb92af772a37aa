"""Models of the operators in which ONNX Runtime's optimiser joins several of ONNX."""

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder

EXAMPLES, STEPS, WIDTH, HEADS, HEAD = 2, 6, 16, 2, 8
WORDS = 12  # that tokens are drawn from


def cnn():
    """Products with activations of every kind that is joined with one, and a sum before it."""
    g = GraphBuilder("fused_cnn", seed=9)

    def conv(name, x, inputs, outputs, sum_with=None, **attributes):
        operands = [x, g.weight(f"{name}.weight", (outputs, inputs, 3, 3), 9 * inputs),
                    g.vector(f"{name}.bias", outputs)]
        operands += [sum_with] if sum_with else []
        return g.fused("FusedConv", name, operands, kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                       **attributes)

    x = g.input("input", [2, 3, 9, 7])
    x = conv("relu", x, 3, 8, activation="Relu")
    y = conv("leaky", x, 8, 8, activation="LeakyRelu", activation_params=[0.2])
    x = conv("sum", y, 8, 8, sum_with=x, activation="Relu")
    x = conv("clip", x, 8, 6, activation="Clip", activation_params=[-0.5, 1.25], strides=[2, 2])
    x = conv("hard", x, 6, 6, activation="HardSigmoid", activation_params=[0.3, 0.4])
    x = conv("tanh", x, 6, 4, activation="Tanh", dilations=[1, 1])
    x = g.node("Flatten", "flatten", [x])  # 4x5x4
    x = g.fused("FusedGemm", "gemm_leaky",
                [x, g.weight("gemm_leaky.weight", (12, 80), 80), g.vector("gemm_leaky.bias", 12)],
                transB=1, alpha=0.75, beta=2.0, activation="LeakyRelu", activation_alpha=0.1)
    x = g.fused("FusedGemm", "gemm_relu", [x, g.weight("gemm_relu.weight", (12, 12), 12)],
                activation="Relu")
    g.fused("FusedMatMul", "scaled", [x, g.weight("scaled.weight", (5, 12), 12)], "scores",
            transB=1, alpha=1.5)
    g.output("scores", [2, 5])

    # Operands whose first axis is moved before the last, swapped with it or not.
    x = g.input("rows", [4, 2, 5])
    y = g.fused("FusedMatMul", "moved", [x, g.weight("moved.weight", (2, 5, 3), 5)], transBatchA=1)
    g.fused("FusedMatMul", "both", [y, g.weight("both.weight", (2, 6, 4), 4)], "products",
            transA=1, transB=1)
    g.output("products", [2, 3, 6])
    return g.model()


def transformer():
    """Embedding, attention with masks of keys, lengths and sums, a past, rotary positions, and the
    sums with normalisations and activations around them."""
    g = GraphBuilder("fused_transformer", seed=16)

    def vector(name, size=WIDTH, low=-0.2, high=0.2):
        return g.vector(name, size, low, high)

    def scale(name):
        return vector(name, WIDTH, 0.5, 1.5)

    def linear(name, x, inputs, outputs):
        return g.node("MatMul", name, [x, g.weight(f"{name}.weight", (inputs, outputs), inputs)])

    def above(name, x, bound):
        is_more = g.node("Greater", f"{name}.more",
                         [x, g.constant(f"{name}.bound", np.array(bound, np.int32))])
        return g.node("Cast", name, [is_more], to=TensorProto.INT32)

    ids = g.input("ids", [EXAMPLES, STEPS], TensorProto.INT32)
    mask = above("mask", ids, 3)
    x, lengths, _ = g.fused(
        "EmbedLayerNormalization", "embed",
        [ids, above("segments", ids, 6), g.weight("words", (WORDS, WIDTH), 2),
         g.weight("places", (9, WIDTH), 8), g.weight("kinds", (2, WIDTH), 8), scale("embed.scale"),
         vector("embed.bias"), mask], ["embedded", "lengths", "embedding_sum"], epsilon=1e-5)

    def attention(name, x, more, results=None, **attributes):
        return g.fused("Attention", name,
                       [x, g.weight(f"{name}.weight", (WIDTH, 3 * WIDTH), WIDTH),
                        vector(f"{name}.bias", 3 * WIDTH), *more], results, num_heads=HEADS,
                       **attributes)

    y = attention("masked", x, [mask], unidirectional=1)
    x, _, _, total = g.fused(
        "SkipLayerNormalization", "skip", [y, x, scale("skip.scale"), vector("skip.beta"),
                                           vector("skip.bias")],
        ["skipped", "", "", "skip_sum"], epsilon=1e-5)
    y = g.fused("FusedMatMul", "wide", [x, g.weight("wide.weight", (32, WIDTH), WIDTH)], transB=1)
    y = g.fused("BiasGelu", "gelu_bias", [y, vector("gelu_bias.bias", 32)])
    y = linear("narrow", y, 32, WIDTH)
    x = g.fused("SkipSimplifiedLayerNormalization", "skip_rms",
                [y, total, scale("skip_rms.scale"), vector("skip_rms.bias")], epsilon=1e-5)
    past = g.weight("past", (2, EXAMPLES, HEADS, 3, HEAD), 2)
    y, present = attention("counted", x, [lengths, past], ["counted_out", "present"], scale=0.3)
    g.output("present", [2, EXAMPLES, HEADS, STEPS + 3, HEAD])
    y = g.fused("FastGelu", "gelu_fast", [y, vector("gelu_fast.bias")])

    angles = np.arange(10)[:, None] / 10.0 ** (np.arange(HEAD // 2) / 4)
    caches = [g.constant("cosines", np.cos(angles).astype(np.float32)),
              g.constant("sines", np.sin(angles).astype(np.float32))]
    places = g.constant("places_of_rows", np.array([[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9]]))
    query = g.fused("RotaryEmbedding", "turned", [y, places, *caches])
    key = g.fused("RotaryEmbedding", "interleaved", [x, g.ints("first", [2]), *caches],
                  interleaved=1)
    y, key, value = g.fused(
        "MultiHeadAttention", "own",
        [query, key, x, vector("own.bias", 3 * WIDTH), mask,
         g.weight("own.added", (1, HEADS, STEPS, STEPS), 2)],
        ["own_out", "own_key", "own_value"], num_heads=HEADS)
    x = g.fused("SkipLayerNormalization", "skip_plain", [y, x, scale("skip_plain.scale")])
    y = g.fused("MultiHeadAttention", "cross", [x, key, value], num_heads=HEADS)
    # Without the outputs of what is kept, ONNX Runtime reads past them.
    y, _, _ = g.fused("MultiHeadAttention", "later", [y, x, x, "", "", "", key, value],
                      ["later_out", "kept_keys", "kept_values"], num_heads=HEADS,
                      unidirectional=1)
    y = g.fused("QuickGelu", "gelu_quick", [y], alpha=1.5)
    g.fused("Gelu", "gelu", [linear("last", y, WIDTH, 7)], "features")
    g.output("features", [EXAMPLES, STEPS, 7])
    return g.model()


def decoder():
    """Two blocks of a language model, as generators for ONNX Runtime write them: N tokens behind N
    that are cached, heads that share keys, rotary positions, gates."""
    g = GraphBuilder("fused_decoder", seed=23)
    heads, groups, head = 4, 2, 16
    width = heads * head

    def scale(name, size=width):
        return g.vector(name, size, 0.5, 1.5)

    def linear(name, x, inputs, outputs):
        return g.node("MatMul", name, [x, g.weight(f"{name}.weight", (inputs, outputs), inputs)])

    ids = g.input("ids", [1, "N"], TensorProto.INT32)
    pasts = [g.input(name, [1, groups, "N", head])
             for name in ("keys_0", "values_0", "keys_1", "values_1")]
    steps = g.node("Gather", "steps", [g.node("Shape", "shape", [ids]), g.ints("axis", 1)])
    total = g.node("Add", "total_64", [steps, steps])
    total = g.node("Cast", "total", [total], to=TensorProto.INT32)
    length = g.node("Sub", "last", [total, g.constant("one", np.array([1], np.int32))])

    angles = np.arange(32)[:, None] / 10.0 ** (np.arange(head // 2) / 4)
    caches = [g.constant("cosines", np.cos(angles).astype(np.float32)),
              g.constant("sines", np.sin(angles).astype(np.float32))]

    def attention(block, operands, past, more, **attributes):
        kept = [f"all_keys_{block}", f"all_values_{block}"]
        y, *_ = g.fused("GroupQueryAttention", f"attention_{block}",
                        [*operands, *past, length, total, *more], [f"mixed_{block}", *kept],
                        num_heads=heads, kv_num_heads=groups, **attributes)
        for name in kept:
            g.output(name, [1, groups, "2*N", head])
        return linear(f"out_{block}", y, width, width)

    def gated(block, x):
        gate = linear(f"gate_{block}", x, width, 96)
        gate = g.fused("QuickGelu", f"swish_{block}", [gate], alpha=1.0)
        y = g.node("Mul", f"gated_{block}", [gate, linear(f"up_{block}", x, width, 96)])
        return linear(f"down_{block}", y, 96, width)

    def skip(name, y, x):
        y, _, _, x = g.fused("SkipSimplifiedLayerNormalization", name,
                             [y, x, scale(f"{name}.scale")],
                             [f"{name}_out", "", "", f"{name}_sum"], epsilon=1e-5)
        return y, x

    x = g.node("Gather", "embedded", [g.weight("words", (WORDS, width), 2), ids])
    y = g.node("LayerNormalization", "first", [x, scale("first.scale")], epsilon=1e-5)
    joined = linear("joined", y, width, (heads + 2 * groups) * head)
    y = attention(0, [joined, "", ""], pasts[:2], caches, do_rotary=1)
    y, x = skip("inner_0", y, x)
    y, x = skip("outer_0", gated(0, y), x)
    own = [linear(f"{part}_1", y, width, count * head)
           for part, count in (("query", heads), ("key", groups), ("value", groups))]
    y = attention(1, own, pasts[2:], [*caches, "", "", g.vector("sinks", heads, -1, 1)],
                  do_rotary=1, rotary_interleaved=1, local_window_size=5, softcap=3.0, scale=0.3)
    y, x = skip("inner_1", y, x)
    y, _ = skip("outer_1", gated(1, y), x)
    g.node("MatMul", "logits", [y, g.weight("logits.weight", (width, WORDS), width)], "scores")
    g.output("scores", [1, "N", WORDS])
    return g.model()
