"""Writes the large models of the benchmarks, with seeded random weights, into a given folder.

    python3 make_models.py DIR [NAME]...

They are too big for the repository and need no data: only their size and shape matter. Needs only
numpy and onnx.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class GraphBuilder:
    """Collects one model; a node's result is named after the node unless told otherwise."""

    def __init__(self, name, seed, input_shape, output_shape):
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.input_shape, self.output_shape = input_shape, output_shape
        self.nodes, self.initializers = [], []

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def normal(self, name, shape, scale):
        values = self.rng.standard_normal(shape, dtype=np.float32)
        return self.constant(name, values * np.float32(scale))

    def uniform(self, name, shape, low, high):
        return self.constant(name, self.rng.uniform(low, high, shape))

    def node(self, op, name, inputs, result=None, **attributes):
        result = result or f"{name}_out"
        self.nodes.append(helper.make_node(op, inputs, [result], name=name, **attributes))
        return result

    def dense(self, name, x, inputs, outputs, result=None):
        weight = self.normal(f"{name}.weight", (outputs, inputs), np.sqrt(2 / inputs))
        bias = self.uniform(f"{name}.bias", outputs, -0.1, 0.1)
        return self.node("Gemm", name, [x, weight, bias], result, transB=1)

    def save(self, folder):
        graph = helper.make_graph(
            self.nodes, self.name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, self.input_shape)],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, self.output_shape)],
            self.initializers,
        )
        model = helper.make_model(graph, producer_name="bench/models/make_models.py",
                                  opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        path = folder / f"{self.name}.onnx"
        onnx.save(model, path)
        weights = sum(len(tensor.raw_data) for tensor in self.initializers)
        print(f"{path}: {len(self.nodes)} nodes, {weights / 1e6:.1f} MB of weights")


def perceptron(folder):
    """784-128-10, Gemm and Relu."""
    g = GraphBuilder("perceptron", 1, [1, 784], [1, 10])
    x = g.node("Relu", "relu1", [g.dense("fc1", "input", 784, 128)])
    g.dense("fc2", x, 128, 10, "output")
    g.save(folder)


def trainable_mlp(folder):
    """784-128-10 as a network to train: any batch."""
    g = GraphBuilder("trainable_mlp", 5, ["N", 784], ["N", 10])
    x = g.node("Relu", "relu1", [g.dense("fc1", "input", 784, 128)])
    g.dense("fc2", x, 128, 10, "output")
    g.save(folder)


def ad_frozen(folder):
    """The autoencoder of tests/training with its statistics frozen: a batch of one has none."""
    tests = pathlib.Path(__file__).resolve().parents[2] / "tests/training/models"
    model = onnx.load(tests / "ad.onnx")
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
    onnx.save(model, folder / "ad_frozen.onnx")


def resnet18(folder):
    """ResNet-18 at 224x224 (He et al., 2016), BatchNormalization kept as nodes."""
    g = GraphBuilder("resnet18", 2, [1, 3, 224, 224], [1, 1000])

    def conv_bn(name, norm, x, inputs, outputs, size, stride):
        scale = np.sqrt(2 / (inputs * size * size))
        weight = g.normal(f"{name}.weight", (outputs, inputs, size, size), scale)
        x = g.node("Conv", name, [x, weight], kernel_shape=[size] * 2, strides=[stride] * 2,
                   pads=[size // 2] * 4)
        ranges = {"weight": (0.5, 1), "bias": (-0.1, 0.1), "running_mean": (-0.1, 0.1),
                  "running_var": (0.8, 1.2)}
        statistics = [g.uniform(f"{norm}.{kind}", outputs, *bounds)
                      for kind, bounds in ranges.items()]
        return g.node("BatchNormalization", norm, [x, *statistics], epsilon=1e-5)

    def block(name, x, inputs, outputs, stride):
        y = conv_bn(f"{name}.conv1", f"{name}.bn1", x, inputs, outputs, 3, stride)
        y = g.node("Relu", f"{name}.relu1", [y])
        y = conv_bn(f"{name}.conv2", f"{name}.bn2", y, outputs, outputs, 3, 1)
        if stride != 1:
            x = conv_bn(f"{name}.downsample.0", f"{name}.downsample.1", x, inputs, outputs, 1,
                        stride)
        return g.node("Relu", f"{name}.relu2", [g.node("Add", f"{name}.add", [y, x])])

    x = g.node("Relu", "relu", [conv_bn("conv1", "bn1", "input", 3, 64, 7, 2)])
    x = g.node("MaxPool", "maxpool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, outputs in enumerate((64, 128, 256, 512), start=1):
        x = block(f"layer{stage}.0", x, channels, outputs, 1 if stage == 1 else 2)
        x = block(f"layer{stage}.1", x, outputs, outputs, 1)
        channels = outputs
    x = g.node("Flatten", "flatten", [g.node("GlobalAveragePool", "avgpool", [x])], axis=1)
    g.dense("fc", x, 512, 1000, "output")
    g.save(folder)


def matmul_100mb(folder):
    """Four 2500x2500 MatMuls: 100 MB of weights, nothing else."""
    size = 2500
    g = GraphBuilder("matmul_100mb", 3, [1, size], [1, size])
    x = "input"
    for layer in range(4):
        weight = g.normal(f"weight{layer}", (size, size), np.sqrt(1 / size))
        x = g.node("MatMul", f"matmul{layer}", [x, weight], "output" if layer == 3 else None)
    g.save(folder)


def nodes_10000(folder):
    """10,000 elementwise nodes on f32[1,64] in a chain.

    Every seventh adds an older value or, in turn, the input: on its own the chain would settle on
    a fixed point and forget the input. Tanh comes often enough to keep the values bounded.
    """
    count, width = 10000, 64
    g = GraphBuilder("nodes_10000", 4, [1, width], [1, width])
    constants = [g.uniform(f"constant{i}", (1, width), -1, 1) for i in range(32)]
    cycle = ("Mul", "Add", "Sigmoid", "Sub", "Relu", "Mul", "Add", "Tanh", "Neg", "Sub", "Abs",
             "Add", "LeakyRelu", "Max", "Min", "Tanh")
    unary = {"Sigmoid", "Relu", "Tanh", "Neg", "Abs", "LeakyRelu"}
    values = ["input"]
    for index in range(count):
        op = "Add" if index % 7 == 6 else cycle[index % len(cycle)]
        operands = [values[-1]]
        if index % 7 == 6:
            older = values[max(0, index - 5 - index % 23)]
            operands.append(older if index % 14 == 6 else "input")
        elif op not in unary:
            operands.append(constants[g.rng.integers(len(constants))])
        result = "output" if index == count - 1 else f"v{index}"
        values.append(g.node(op, f"{op.lower()}_{index}", operands, result))
    g.save(folder)


MODELS = {f.__name__: f
          for f in (perceptron, trainable_mlp, ad_frozen, resnet18, matmul_100mb,
                    nodes_10000)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    options = parser.parse_args()
    unknown = set(options.names) - set(MODELS)
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}; known: {', '.join(MODELS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or MODELS:
        MODELS[name](options.folder)


if __name__ == "__main__":
    main()
