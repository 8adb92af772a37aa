"""The test models, one function each, returning a checked ONNX model with seeded weights."""

import numpy as np
from onnx import TensorProto, helper

import classical
import fused
import packed
from graph_builder import GraphBuilder


def int_scalar(value):
    """A rank-0 int64 array."""
    return np.array(value, dtype=np.int64)


def float_scalar(value):
    return np.array(value, dtype=np.float32)


def perceptron(batch=1, name="perceptron"):
    """64-32-10: the smallest trainable network. `batch` may be a symbol's name."""
    g = GraphBuilder(name, seed=1)
    x = g.input("input", [batch, 64])
    x = g.node("Relu", "relu1", [g.dense("fc1", x, 64, 32)])
    g.dense("fc2", x, 32, 10, result="logits")
    g.output("logits", [batch, 10])
    return g.model()


def perceptron_dynN():
    return perceptron(batch="N", name="perceptron_dynN")


def dscnn_small():
    """Depthwise-separable: odd sizes, strides, asymmetric pads, BatchNormalization, Softmax."""
    g = GraphBuilder("dscnn_small", seed=3)
    x = g.input("input", [1, 1, 25, 11])

    def block(stage, x, inputs, outputs, kernel, pads, strides):
        x = g.conv(f"dw{stage}", x, inputs, inputs, kernel, group=inputs, bias=False, pads=pads,
                   strides=strides)
        x = g.node("Relu", f"dw{stage}_relu", [g.batch_norm(f"dw{stage}_bn", x, inputs)])
        x = g.conv(f"pw{stage}", x, inputs, outputs, (1, 1), bias=False)
        return g.node("Relu", f"pw{stage}_relu", [g.batch_norm(f"pw{stage}_bn", x, outputs)])

    x = g.conv("conv1", x, 1, 12, (7, 3), pads=[2, 1, 3, 1], strides=[2, 2])
    x = g.node("Relu", "conv1_relu", [g.batch_norm("conv1_bn", x, 12)])  # 12x12x6
    x = block(1, x, 12, 14, (3, 3), [1, 1, 1, 1], [1, 1])  # 14x12x6
    x = block(2, x, 14, 17, (3, 3), [0, 0, 1, 1], [2, 2])  # 17x6x3
    x = block(3, x, 17, 19, (5, 3), [2, 0, 1, 1], [1, 1])  # 19x5x2
    x = g.node("AveragePool", "avgpool", [x], kernel_shape=[2, 1], strides=[2, 1])  # 19x2x2
    x = g.node("GlobalAveragePool", "gap", [x])
    x = g.node("Flatten", "flatten", [x], axis=1)
    x = g.dense("fc", x, 19, 12)
    g.node("Softmax", "softmax", [x], "probabilities", axis=1)
    g.output("probabilities", [1, 12])
    return g.model()


def resnet_small():
    """Residual additions, one block with a stride-2 1x1 convolution on the shortcut."""
    g = GraphBuilder("resnet_small", seed=4)
    x = g.input("input", [1, 3, 17, 15])

    def conv_bn(name, x, inputs, outputs, size, stride):
        pads = [size // 2] * 4
        x = g.conv(name, x, inputs, outputs, (size, size), bias=False, pads=pads,
                   strides=[stride, stride])
        return g.batch_norm(f"{name}_bn", x, outputs)

    def block(name, x, inputs, outputs, stride):
        shortcut = x
        if stride != 1 or inputs != outputs:
            shortcut = conv_bn(f"{name}.shortcut", x, inputs, outputs, 1, stride)
        y = conv_bn(f"{name}.conv1", x, inputs, outputs, 3, stride)
        y = g.node("Relu", f"{name}.relu1", [y])
        y = conv_bn(f"{name}.conv2", y, outputs, outputs, 3, 1)
        y = g.node("Add", f"{name}.add", [y, shortcut])
        return g.node("Relu", f"{name}.relu2", [y])

    x = g.node("Relu", "stem_relu", [conv_bn("stem", x, 3, 8, 3, 1)])
    x = g.node("MaxPool", "stem_pool", [x], kernel_shape=[3, 3], strides=[2, 2],
               pads=[1, 1, 1, 1])  # 8x9x8
    x = block("block1", x, 8, 8, 1)
    x = block("block2", x, 8, 16, 2)  # 16x5x4
    x = g.node("GlobalAveragePool", "gap", [x])
    x = g.node("Flatten", "flatten", [x], axis=1)
    g.dense("fc", x, 16, 10, result="logits")
    g.output("logits", [1, 10])
    return g.model()


def shape_arithmetic():
    """Shapes computed in the graph the way PyTorch exporters leave them, symbolic batch N."""
    g = GraphBuilder("shape_arithmetic", seed=5)
    x = g.input("input", ["N", 6, 8])

    def extent(name, value, axis):
        shape = g.node("Shape", f"{name}_shape", [value])
        axis = g.constant(f"{name}_axis", int_scalar(axis))
        return g.node("Gather", f"{name}_gather", [shape, axis], axis=0)

    def shape_of(name, parts):
        """Unsqueeze the scalars among the parts, concatenate; ints become constants."""
        vectors = []
        for index, part in enumerate(parts):
            if isinstance(part, int):
                vectors.append(g.node("Constant", f"{name}_const{index}", [], value_ints=[part]))
            else:
                axes = g.ints(f"{name}_axes{index}", [0])
                vectors.append(g.node("Unsqueeze", f"{name}_unsqueeze{index}", [part, axes]))
        return g.node("Concat", f"{name}_concat", vectors, axis=0)

    n, tokens = extent("batch", x, 0), extent("tokens", x, 1)
    # [N, 6, 8] -> [N, 6, 2, 4] -> [N, 2, 6, 4]
    x = g.node("Reshape", "split_heads", [x, shape_of("heads", [n, tokens, 2, 4])])
    x = g.node("Transpose", "transpose_heads", [x], perm=[0, 2, 1, 3])
    x = g.node("Softmax", "softmax", [x], axis=-1)
    # [N, 2, 6, 4] -> [N * 2, 6, 4]: the batch times the heads
    rows = g.node("Mul", "batch_heads", [extent("again", x, 0), extent("head", x, 1)])
    x = g.node("Reshape", "merge_batch", [x, shape_of("merged", [rows, tokens, -1])])
    x = g.node("Mul", "scale", [x, g.weight("scale.weight", (6, 4), 2)])
    # [N * 2, 6, 4] -> [N, 48]: divide again, and take the rest with Slice and ReduceProd
    shape = g.node("Shape", "flat_tail_shape", [x])
    tail = g.node("Slice", "flat_tail", [shape, g.ints("flat_starts", [1]),
                                         g.ints("flat_ends", [3]), g.ints("flat_axes", [0])])
    width = g.node("ReduceProd", "flat_product", [tail], axes=[0], keepdims=1)
    width = g.node("Mul", "flat_width", [width, g.ints("flat_heads", [2])])
    half = g.node("Div", "flat_batch", [extent("flat", x, 0), g.constant("two", int_scalar(2))])
    half = g.node("Unsqueeze", "flat_batch_unsqueeze", [half, g.ints("flat_batch_axes", [0])])
    x = g.node("Reshape", "flatten",
               [x, g.node("Concat", "flat_concat", [half, width], axis=0)])
    # A bias expanded to the batch: ConstantOfShape and Expand with a computed shape.
    bias = g.node("Expand", "expand_bias",
                  [g.vector("expanded.bias", 48), shape_of("bias", [n, 48])])
    x = g.dense("fc", g.node("Add", "add_bias", [x, bias]), 48, 5)
    halves = g.node("ConstantOfShape", "halves", [shape_of("halves", [n, 5])],
                    value=helper.make_tensor("value", TensorProto.FLOAT, [1], [0.5]))
    g.node("Sub", "subtract", [x, halves], "output")
    g.output("output", ["N", 5])
    return g.model()


def keras_style():
    """As converters leave a Keras model: NHWC input, Transposes, MatMul + Add, Softmax."""
    g = GraphBuilder("keras_style", seed=6)
    x = g.input("input_1", [1, 9, 7, 3])
    x = g.node("Transpose", "model/conv2d/Conv2D__6", [x], perm=[0, 3, 1, 2])
    # TensorFlow's SAME with stride 2 on 9x7 pads one row and column on both sides of 3x3.
    x = g.conv("model/conv2d/Conv2D", x, 3, 8, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = g.node("Relu", "model/conv2d/Relu", [x])  # 8x5x4
    x = g.conv("model/conv2d_1/Conv2D", x, 8, 12, (2, 2), bias=False, auto_pad="SAME_UPPER",
               strides=[1, 1])
    bias = g.constant("model/conv2d_1/BiasAdd/bias",
                      g.rng.uniform(-0.2, 0.2, (1, 12, 1, 1)).astype("float32"))
    x = g.node("Add", "model/conv2d_1/BiasAdd", [x, bias])
    x = g.node("Relu", "model/conv2d_1/Relu", [x])  # 12x5x4
    x = g.node("MaxPool", "model/max_pooling2d/MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = g.node("Transpose", "model/max_pooling2d/MaxPool__12", [x], perm=[0, 2, 3, 1])  # 2x2x12
    x = g.node("Reshape", "model/flatten/Reshape", [x, g.ints("model/flatten/shape", [-1, 48])])

    def dense(name, x, inputs, outputs):
        weight = g.weight(f"{name}/kernel", (inputs, outputs), inputs)
        x = g.node("MatMul", f"{name}/MatMul", [x, weight])
        return g.node("Add", f"{name}/BiasAdd", [x, g.vector(f"{name}/bias", outputs)])

    x = g.node("Relu", "model/dense/Relu", [dense("model/dense", x, 48, 20)])
    x = dense("model/dense_1", x, 20, 6)
    g.node("Softmax", "model/dense_1/Softmax", [x], "dense_1", axis=-1)
    g.output("dense_1", [1, 6])
    return g.model()


def node_weights():
    """Every weight in a node of type Constant, as Paddle's converter writes them."""
    g = GraphBuilder("node_weights", seed=13)
    x = g.input("input", [1, 2, 9, 7])
    x = g.conv("conv", x, 2, 12, (3, 3), bias=False, pads=[1, 1, 1, 1], strides=[2, 2])
    x = g.node("HardSwish", "act", [g.batch_norm("norm", x, 12)])
    x = g.node("GlobalAveragePool", "pool", [x])
    x = g.node("Flatten", "flatten", [x])
    g.dense("fc", x, 12, 5, result="scores")
    g.output("scores", [1, 5])
    model = g.model()
    nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in model.graph.initializer]
    del model.graph.initializer[:]
    nodes += model.graph.node
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def transformer_small():
    """One pre-norm encoder block on 8 tokens x 16, two heads, Gelu spelled with Erf."""
    g = GraphBuilder("transformer_small", seed=7)
    def scalar(name, value):
        return g.constant(name, float_scalar(value))

    def linear(name, x, inputs, outputs):
        weight = g.weight(f"{name}.weight", (inputs, outputs), 2 * inputs)
        x = g.node("MatMul", f"{name}.matmul", [x, weight])
        return g.node("Add", f"{name}.add", [g.vector(f"{name}.bias", outputs), x])

    def heads(name, x, perm):
        x = g.node("Reshape", f"{name}.reshape", [x, g.ints(f"{name}.shape", [1, 8, 2, 8])])
        return g.node("Transpose", f"{name}.transpose", [x], perm=perm)

    x = g.input("tokens", [1, 8, 16])
    x = g.node("Add", "positions", [x, g.weight("positions.weight", (1, 8, 16), 8)])
    y = linear("attn.qkv", g.layer_norm("norm1", x, 16), 16, 48)
    q, k, v = g.node("Split", "attn.split", [y, g.ints("attn.sizes", [16, 16, 16])],
                     ["attn.q", "attn.k", "attn.v"], axis=-1)
    q, k, v = heads("attn.qh", q, [0, 2, 1, 3]), heads("attn.kh", k, [0, 2, 3, 1]), heads(
        "attn.vh", v, [0, 2, 1, 3])
    scores = g.node("Div", "attn.scale", [g.node("MatMul", "attn.scores", [q, k]),
                                          scalar("attn.sqrt_d", np.sqrt(8))])
    y = g.node("MatMul", "attn.mix", [g.node("Softmax", "attn.softmax", [scores], axis=-1), v])
    y = g.node("Transpose", "attn.merge", [y], perm=[0, 2, 1, 3])
    y = g.node("Reshape", "attn.flatten", [y, g.ints("attn.flat_shape", [0, 0, -1])])
    x = g.node("Add", "residual1", [x, linear("attn.out", y, 16, 16)])

    y = linear("mlp.fc1", g.layer_norm("norm2", x, 16), 16, 32)
    erf = g.node("Erf", "gelu.erf", [g.node("Div", "gelu.div", [y, scalar("sqrt2", np.sqrt(2))])])
    y = g.node("Mul", "gelu.mul", [y, g.node("Add", "gelu.add", [erf, scalar("one", 1)])])
    y = g.node("Mul", "gelu.half", [y, scalar("half", 0.5)])
    x = g.node("Add", "residual2", [x, linear("mlp.fc2", y, 32, 16)])

    x = g.node("ReduceMean", "pool", [g.layer_norm("norm3", x, 16)], axes=[1], keepdims=0)
    g.dense("head", x, 16, 4, result="logits")
    g.output("logits", [1, 4])
    return g.model()


def quirks():
    """Attributes that are easy to get wrong, in one small graph with two outputs."""
    g = GraphBuilder("quirks", seed=8)

    def scalar(name, value):
        return g.constant(name, float_scalar(value))

    x = g.input("input", [1, 6, 11, 9])
    # Asymmetric pads with ceil_mode; padding counted on one branch and not on the other.
    window = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 0, 1], "ceil_mode": 1}
    counted = g.node("AveragePool", "avg_counted", [x], count_include_pad=1, **window)
    uncounted = g.node("AveragePool", "avg_uncounted", [x], count_include_pad=0, **window)
    dilated = g.node("MaxPool", "max_dilated", [x], kernel_shape=[2, 2], strides=[2, 2],
                     dilations=[2, 1], pads=[1, 0, 1, 1])
    x = g.node("Concat", "concat", [counted, uncounted, dilated], axis=1)  # 18x6x5
    a, b, c = g.node("Split", "split", [x, g.ints("split_sizes", [8, 4, 6])],
                     ["split_a", "split_b", "split_c"], axis=1)

    a = g.conv("grouped", a, 8, 12, (3, 3), group=4, pads=[3, 0, 1, 2], strides=[1, 2],
               dilations=[2, 1])
    a = g.node("HardSwish", "hardswish", [a])  # 12x6x3
    b = g.conv("same_lower", b, 4, 6, (2, 4), auto_pad="SAME_LOWER", strides=[1, 2])
    b = g.node("Clip", "clip_both", [b, scalar("clip_low", -0.5), scalar("clip_high", 0.75)])
    g.node("Concat", "merge", [a, b], "features", axis=-3)
    g.output("features", [1, 18, 6, 3])

    # Clip with no lower bound; negative step and ends; a Pad that crops one side and fills another.
    c = g.node("Clip", "clip_upper", [c, "", scalar("clip_top", 0.4)])
    c = g.node("Slice", "slice",
               [c, g.ints("slice_starts", [-1, 0]), g.ints("slice_ends", [-7, -1]),
                g.ints("slice_axes", [2, 3]), g.ints("slice_steps", [-2, 1])])
    c = g.node("Pad", "pad_reflect", [c, g.ints("reflect_pads", [0, 0, 1, 0, 0, 0, 1, 2])],
               mode="reflect")  # 6x5x6
    c = g.node("Pad", "pad_crop", [c, g.ints("crop_pads", [0, 0, 0, 1, 0, 0, -1, -1]),
                                   scalar("pad_value", 0.25)])  # 6x4x6
    c = g.node("ConvTranspose", "up",
               [c, g.weight("up.weight", (6, 2, 3, 3), 27), g.vector("up.bias", 4)], group=2,
               kernel_shape=[3, 3], strides=[2, 1], pads=[1, 0, 0, 1], output_padding=[1, 0])
    g.node("LeakyRelu", "leaky", [c], "upsampled", alpha=0.1)
    g.output("upsampled", [1, 4, 9, 7])
    return g.model()


def any_batch():
    """Images of any number N, large enough that examples go one by one: a fire module, depthwise
    and residual layers, a mean that is seen in another shape."""
    g = GraphBuilder("any_batch", seed=8)
    x = g.input("input", ["N", 3, 24, 21])
    x = g.node("Relu", "stem_relu", [g.conv("stem", x, 3, 16, (3, 3), pads=[1, 1, 1, 1])])
    thin = g.node("Relu", "squeeze_relu", [g.conv("squeeze", x, 16, 8, (1, 1))])
    wide = g.conv("expand1", thin, 8, 12, (1, 1))
    far = g.conv("expand3", thin, 8, 20, (3, 3), pads=[1, 1, 1, 1])
    x = g.node("Relu", "fire", [g.node("Concat", "expand", [wide, far], axis=1)])
    y = g.conv("depthwise", x, 32, 32, (5, 5), pads=[2, 2, 2, 2], group=32)
    y = g.node("Clip", "clipped", [y, g.constant("low", float_scalar(0)),
                                   g.constant("high", float_scalar(6))])
    x = g.node("Add", "residual", [g.conv("project", y, 32, 32, (1, 1)), x])
    x = g.node("Relu", "last_relu", [g.conv("last", x, 32, 16, (3, 3), strides=[2, 2])])
    x = g.node("GlobalAveragePool", "mean", [x])
    x = g.node("Flatten", "flat", [x], axis=1)
    g.node("Softmax", "softmax", [g.dense("fc", x, 16, 10)], "probabilities", axis=1)
    g.output("probabilities", ["N", 10])
    return g.model()


def any_length():
    """A sound of any length N: convolutions, layers that run both ways, a pyramid whose halves
    are resized, attention."""
    g = GraphBuilder("any_length", seed=7)
    x = g.input("input", [1, 5, "N"])

    def resize_to(name, x, like, **attributes):
        size = g.node("Slice", f"{name}_size", [g.node("Shape", f"{name}_shape", [like]),
                                                g.ints(f"{name}_from", [2]),
                                                g.ints(f"{name}_to", [3])])
        kept = g.ints(f"{name}_kept", [1, 12])
        sizes = g.node("Concat", f"{name}_sizes", [kept, size], axis=0)
        return g.node("Resize", name, [x, "", "", sizes], **attributes)

    fine = g.node("Relu", "fine", [g.conv("first", x, 5, 12, (3,), pads=[1, 1])])
    causal = g.conv("causal", fine, 12, 12, (5,), pads=[8, 0], dilations=[2])
    half = g.node("AveragePool", "half", [causal], kernel_shape=[3], strides=[2], pads=[1, 1])
    half = g.node("Tanh", "half_tanh", [half])
    steps = g.node("Transpose", "steps", [half], perm=[2, 0, 1])
    both = g.node("GRU", "both", [
        steps, g.weight("both.weight", (2, 18, 12), 24), g.weight("both.recurrent", (2, 18, 6), 12),
        g.vector("both.bias", (2, 36))], hidden_size=6, direction="bidirectional")
    both = g.node("Transpose", "both_back", [both], perm=[2, 1, 3, 0])
    both = g.node("Reshape", "both_map", [both, g.ints("both_shape", [1, 12, -1])])
    half = g.node("Add", "half_sum", [half, both])
    quarter = g.node("MaxPool", "quarter", [half], kernel_shape=[3], strides=[2], pads=[1, 1])
    twice = g.node("Resize", "twice", [quarter, "", g.constant(
        "twice_scales", np.array([1, 1, 2], np.float32))], mode="nearest",
        nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    g.node("Sigmoid", "gate", [twice], "gate")
    back = resize_to("back", half, fine, mode="linear")
    near = resize_to("near", quarter, fine, mode="nearest", nearest_mode="floor",
                     coordinate_transformation_mode="asymmetric")
    x = g.node("Tanh", "bounded", [g.node("Sum", "pyramid", [fine, back, near])])
    rows = g.node("Transpose", "rows", [x], perm=[0, 2, 1])
    scores = g.node("MatMul", "scores", [rows, x])
    weights = g.node("Softmax", "weights", [
        g.node("Mul", "scaled", [scores, g.constant("scale", float_scalar(0.5))])], axis=-1)
    mixed = g.node("MatMul", "mixed", [weights, rows])
    g.node("Add", "sum", [mixed, rows], "rows")
    g.output("rows", [1, "N", 12])
    g.output("gate", [1, 12, None])
    return g.model()


ALL = {
    "perceptron": perceptron,
    "perceptron_dynN": perceptron_dynN,
    "dscnn_small": dscnn_small,
    "resnet_small": resnet_small,
    "shape_arithmetic": shape_arithmetic,
    "any_batch": any_batch,
    "any_length": any_length,
    "keras_style": keras_style,
    "node_weights": node_weights,
    "transformer_small": transformer_small,
    "quirks": quirks,
    "classical": classical.classical,
    "fused_cnn": fused.cnn,
    "fused_transformer": fused.transformer,
    "fused_decoder": fused.decoder,
    "packed_weights": packed.weights,
}
