"""The two networks in numpy, forward and backward, and their ONNX form.

Layers are small classes with forward, backward and nodes (what they become in ONNX), so a network
is a list of layers and both directions read top to bottom. Arithmetic is in double; weights are
rounded to single precision when they are exported.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Conv3x3:
    """3x3 convolution, padding 1, stride 1, as nine shifted products. NCHW, weight OIHW."""

    def __init__(self, name, inputs, outputs, rng):
        bound = np.sqrt(6.0 / (inputs * 9))
        self.name = name
        self.weight = rng.uniform(-bound, bound, (outputs, inputs, 3, 3))
        self.bias = np.zeros(outputs)

    def forward(self, x):
        height, width = x.shape[2:]
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        # columns: [N, H, W, C, 3, 3]
        self.columns = np.stack(
            [padded[:, :, i : i + height, j : j + width] for i in range(3) for j in range(3)], -1
        ).reshape(*x.shape, 3, 3).transpose(0, 2, 3, 1, 4, 5)
        y = np.tensordot(self.columns, self.weight, axes=((3, 4, 5), (1, 2, 3)))  # [N, H, W, O]
        return (y + self.bias).transpose(0, 3, 1, 2)

    def backward(self, dy):
        height, width = dy.shape[2:]
        self.weight_grad = np.tensordot(dy, self.columns, axes=((0, 2, 3), (0, 1, 2)))
        self.bias_grad = dy.sum(axis=(0, 2, 3))
        dcolumns = np.tensordot(dy, self.weight, axes=((1,), (0,)))  # [N, H, W, C, 3, 3]
        dpadded = np.zeros((dy.shape[0], self.weight.shape[1], height + 2, width + 2))
        for i in range(3):
            for j in range(3):
                dpadded[:, :, i : i + height, j : j + width] += dcolumns[
                    :, :, :, :, i, j
                ].transpose(0, 3, 1, 2)
        return dpadded[:, :, 1:-1, 1:-1]

    def node(self, x, y):
        return helper.make_node(
            "Conv", [x, f"{self.name}.weight", f"{self.name}.bias"], [y], name=self.name,
            kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1],
        )


class Dense:
    """y = x W^T + b, weight [outputs, inputs], as a Gemm with transB."""

    def __init__(self, name, inputs, outputs, rng):
        bound = np.sqrt(6.0 / inputs)
        self.name = name
        self.weight = rng.uniform(-bound, bound, (outputs, inputs))
        self.bias = np.zeros(outputs)

    def forward(self, x):
        self.x = x
        return x @ self.weight.T + self.bias

    def backward(self, dy):
        self.weight_grad = dy.T @ self.x
        self.bias_grad = dy.sum(axis=0)
        return dy @ self.weight

    def node(self, x, y):
        return helper.make_node(
            "Gemm", [x, f"{self.name}.weight", f"{self.name}.bias"], [y], name=self.name, transB=1
        )


class Relu:
    """max(x, 0); the derivative at 0 is 0."""

    def __init__(self, name):
        self.name = name

    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask

    def node(self, x, y):
        return helper.make_node("Relu", [x], [y], name=self.name)


class MaxPool2:
    """2x2 maximum, stride 2; the first maximum in row-major order takes the gradient."""

    def __init__(self, name):
        self.name = name

    def forward(self, x):
        n, c, h, w = self.shape = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        windows = windows.reshape(n, c, h // 2, w // 2, 4)
        self.winner = windows.argmax(axis=-1)[..., None]
        return np.take_along_axis(windows, self.winner, axis=-1)[..., 0]

    def backward(self, dy):
        n, c, h, w = self.shape
        windows = np.zeros((n, c, h // 2, w // 2, 4))
        np.put_along_axis(windows, self.winner, dy[..., None], axis=-1)
        windows = windows.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5)
        return windows.reshape(n, c, h, w)

    def node(self, x, y):
        return helper.make_node(
            "MaxPool", [x], [y], name=self.name, kernel_shape=[2, 2], strides=[2, 2]
        )


class Flatten:
    """[N, ...] to [N, product of the rest]."""

    def __init__(self, name):
        self.name = name

    def forward(self, x):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, dy):
        return dy.reshape(self.shape)

    def node(self, x, y):
        return helper.make_node("Flatten", [x], [y], name=self.name, axis=1)


def make_cnn(rng):
    return [
        Conv3x3("conv1", 1, 8, rng), Relu("relu1"),
        Conv3x3("conv2", 8, 16, rng), Relu("relu2"),
        MaxPool2("pool"), Flatten("flatten"), Dense("fc", 256, 10, rng),
    ]


def make_mlp(rng):
    return [Flatten("flatten"), Dense("fc1", 64, 64, rng), Relu("relu1"), Dense("fc2", 64, 10, rng)]


def forward(layers, x):
    for layer in layers:
        x = layer.forward(x)
    return x


def backward(layers, dy):
    for layer in reversed(layers):
        dy = layer.backward(dy)
    return dy


def trainable(layers):
    return [layer for layer in layers if hasattr(layer, "weight")]


def parameter_count(layers):
    return sum(layer.weight.size + layer.bias.size for layer in trainable(layers))


def export(layers, name, path, batch=1):
    """Writes the network as ONNX, opset 17: image f32[batch,1,8,8] -> logits f32[batch,10].

    A batch with a name instead of a number is left open.
    """
    nodes, value = [], "image"
    for index, layer in enumerate(layers):
        result = "logits" if index == len(layers) - 1 else f"{layer.name}_out"
        nodes.append(layer.node(value, result))
        value = result
    initializers = []
    for layer in trainable(layers):
        for kind in ("weight", "bias"):
            array = getattr(layer, kind).astype(np.float32)
            initializers.append(numpy_helper.from_array(array, f"{layer.name}.{kind}"))
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 10])],
        initializers,
    )
    model = helper.make_model(
        graph, producer_name="digits/train.py", opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
