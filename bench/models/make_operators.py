"""Writes models of one operator each, to find those that a peer runs faster.

    python3 make_operators.py DIR [NAME]...
    bench/run host DIR/*.onnx --quick --no-peers --side lib

Callers hand over images channels first, as most exporters do; sizes are those of layers of real
networks. Weights are seeded. Needs only numpy and onnx.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IMAGE = (1, 64, 64, 64)


def weights(*shape):
    return (np.random.default_rng(shape).standard_normal(shape) * 0.1).astype(np.float32)


def model_of(nodes, shapes, constants=None):
    """`nodes`: (operator, inputs, result, attributes); the last result is `y`."""
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [result], **attributes)
         for op, inputs, result, attributes in nodes], "operator",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
         for name, shape in zip("xz", shapes)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()])
    model = onnx.shape_inference.infer_shapes(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    onnx.checker.check_model(model)
    return model


def unary(op, shape=IMAGE, **attributes):
    return lambda: model_of([(op, ["x"], "y", attributes)], [shape])


def binary(op, *shapes):
    return lambda: model_of([(op, ["x", "z"], "y", {})], shapes)


def with_constants(op, shape, constants, **attributes):
    """`constants` by name, in the order of the operator's inputs."""
    return lambda: model_of([(op, ["x", *constants], "y", attributes)], [shape], constants)


def convolution(shape, kernel, op="Conv", **attributes):
    features = kernel[1] if op == "ConvTranspose" else kernel[0]
    return lambda: model_of([(op, ["x", "w", "b"], "y", attributes)], [shape],
                            {"w": weights(*kernel), "b": weights(features)})


def resize(shape, factor, mode, transformation):
    scales = np.array([1, 1, factor, factor], np.float32)
    return lambda: model_of([("Resize", ["x", "", "s"], "y", {
        "mode": mode, "coordinate_transformation_mode": transformation,
        "nearest_mode": "floor"})], [shape], {"s": scales})


def recurrent(op, gates, steps, inputs, hidden, **attributes):
    return with_constants(op, (steps, 1, inputs), {
        "w": weights(1, gates * hidden, inputs), "r": weights(1, gates * hidden, hidden),
        "b": weights(1, 2 * gates * hidden)}, hidden_size=hidden, **attributes)


def silu():
    return model_of([("Sigmoid", ["x"], "s", {}), ("Mul", ["x", "s"], "y", {})], [IMAGE])


def products_of_rows():
    return model_of([("Transpose", ["z"], "t", {"perm": [0, 2, 1]}),
                     ("MatMul", ["x", "t"], "y", {})], [(12, 128, 64)] * 2)


OPERATORS = {
    "conv1d_dilated": convolution((1, 64, 1024), (64, 64, 3), dilations=[8], pads=[8, 8]),
    "conv1d_strided": convolution((1, 16, 2048), (32, 16, 7), strides=[2], pads=[3, 3]),
    "conv1d_one_channel": convolution((1, 1, 4096), (16, 1, 9), pads=[4, 4]),
    "conv1d_depthwise": convolution((1, 128, 500), (128, 1, 31), group=128, pads=[15, 15]),
    "conv2d": convolution((1, 48, 35, 35), (64, 48, 5, 5), pads=[2] * 4),
    "conv2d_dilated": convolution((1, 64, 32, 32), (64, 64, 3, 3), dilations=[2, 2], pads=[2] * 4),
    "conv2d_first": convolution((1, 3, 224, 224), (64, 3, 7, 7), strides=[2, 2], pads=[3] * 4),
    "conv2d_patches": convolution((1, 3, 224, 224), (96, 3, 4, 4), strides=[4, 4]),
    "conv2d_groups": convolution((1, 128, 28, 28), (128, 16, 3, 3), group=8, pads=[1] * 4),
    "conv2d_pointwise_strided": convolution((1, 256, 28, 28), (512, 256, 1, 1), strides=[2, 2]),
    "conv2d_row": convolution((1, 128, 17, 17), (128, 128, 1, 7), pads=[0, 3, 0, 3]),
    "conv2d_three_features": convolution((1, 64, 128, 128), (3, 64, 3, 3), pads=[1] * 4),
    "conv2d_depthwise3": convolution((1, 32, 112, 112), (32, 1, 3, 3), group=32, pads=[1] * 4),
    "conv2d_depthwise5_strided": convolution((1, 96, 56, 56), (96, 1, 5, 5), group=96,
                                             strides=[2, 2], pads=[2] * 4),
    "conv2d_depthwise7": convolution((1, 96, 56, 56), (96, 1, 7, 7), group=96, pads=[3] * 4),
    "conv3d": convolution((1, 16, 16, 32, 32), (16, 16, 3, 3, 3), pads=[1] * 6),
    "transposed1d": convolution((1, 128, 128), (128, 64, 16), "ConvTranspose", strides=[8],
                                pads=[4, 4]),
    "transposed2": convolution((1, 64, 64, 64), (64, 32, 2, 2), "ConvTranspose", strides=[2, 2]),
    "transposed4": convolution((1, 64, 32, 32), (64, 32, 4, 4), "ConvTranspose", strides=[2, 2],
                               pads=[1] * 4),
    "max_pool2": unary("MaxPool", (1, 64, 112, 112), kernel_shape=[2, 2], strides=[2, 2]),
    "max_pool3_strided": unary("MaxPool", (1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2],
                               pads=[1] * 4),
    "max_pool5": unary("MaxPool", (1, 128, 20, 20), kernel_shape=[5, 5], pads=[2] * 4),
    "average_pool3": unary("AveragePool", (1, 64, 56, 56), kernel_shape=[3, 3], pads=[1] * 4),
    "global_average_pool": unary("GlobalAveragePool", (1, 512, 14, 14)),
    **{op.lower(): unary(op) for op in (
        "Sigmoid", "Tanh", "Exp", "Erf", "Softplus", "HardSwish", "Elu", "Selu", "LeakyRelu",
        "Sin", "Abs", "Reciprocal")},
    "silu": silu,
    "softmax": unary("Softmax", (8, 128, 128), axis=-1),
    "softmax_classes": unary("Softmax", (1, 1000), axis=-1),
    "softmax_channels": unary("Softmax", (1, 21, 128, 128), axis=1),
    "log_softmax": unary("LogSoftmax", (8, 128, 128), axis=-1),
    "mean_channels": unary("ReduceMean", axes=[1]),
    "mean_space": unary("ReduceMean", axes=[2, 3]),
    "max_row": unary("ReduceMax", axes=[3]),
    "arg_max_channels": unary("ArgMax", (1, 21, 256, 256), axis=1),
    "arg_max_last": unary("ArgMax", (1, 128, 128, 21), axis=-1),
    "arg_max_classes": unary("ArgMax", (1, 1000), axis=1),
    "transpose_space": unary("Transpose", perm=[0, 2, 3, 1]),
    "transpose_matrix": unary("Transpose", (512, 512), perm=[1, 0]),
    "transpose_heads": unary("Transpose", (1, 128, 12, 64), perm=[0, 2, 1, 3]),
    "depth_to_space": unary("DepthToSpace", blocksize=2),
    "space_to_depth": unary("SpaceToDepth", (1, 16, 64, 64), blocksize=2),
    "response_norm": unary("LRN", (1, 64, 27, 27), size=5),
    "layer_norm": with_constants("LayerNormalization", (1, 128, 256),
                                 {"g": weights(256), "b": weights(256)}),
    "instance_norm": with_constants("InstanceNormalization", IMAGE,
                                    {"g": weights(64), "b": weights(64)}),
    "matmul": with_constants("MatMul", (256, 512), {"w": weights(512, 512)}),
    "matmul_row": with_constants("MatMul", (1, 1024), {"w": weights(1024, 1000)}),
    "matmul_variable": binary("MatMul", (128, 128), (128, 128)),
    "matmul_batched": binary("MatMul", (12, 64, 64), (12, 64, 64)),
    "matmul_batched_rows": products_of_rows,
    "add": binary("Add", IMAGE, IMAGE),
    "concatenation": lambda: model_of([("Concat", ["x", "z"], "y", {"axis": 1})],
                                      [(1, 64, 32, 32)] * 2),
    "prelu": with_constants("PRelu", IMAGE, {"s": weights(64, 1, 1)}),
    "clip": with_constants("Clip", IMAGE, {"low": np.array(0, np.float32),
                                           "high": np.array(6, np.float32)}),
    "pad_reflected": with_constants("Pad", (1, 32, 64, 64),
                                    {"p": np.array([0, 0, 2, 2] * 2)}, mode="reflect"),
    "cumulative_sum": with_constants("CumSum", (64, 1000), {"a": np.array(1)}),
    "resize_nearest": resize((1, 64, 32, 32), 2, "nearest", "asymmetric"),
    "resize_linear": resize((1, 64, 32, 32), 2, "linear", "half_pixel"),
    "resize_corners": resize((1, 21, 33, 33), 4, "linear", "align_corners"),
    "resize_cubic": resize((1, 16, 32, 32), 2, "cubic", "half_pixel"),
    "gru": recurrent("GRU", 3, 50, 64, 128, linear_before_reset=1),
    "lstm": recurrent("LSTM", 4, 16, 128, 256),
    "rnn": recurrent("RNN", 1, 50, 32, 64),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(OPERATORS)}")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or OPERATORS:
        onnx.save(OPERATORS[name](), options.folder / f"{name}.onnx")


if __name__ == "__main__":
    main()
