"""ONNX models written down in a few lines."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Nodes on random weights, with the input x."""

    def __init__(self, shape, opset=21):
        self.random = np.random.default_rng(1)
        self.shape, self.opset = shape, opset
        self.nodes, self.weights = [], []

    def weight(self, *shape, low=None):
        values = self.random.normal(0, 1 / np.sqrt(np.prod(shape[1:] or (4,))), shape)
        if low is not None:
            values = self.random.uniform(low, low + 1, shape)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def integers(self, *values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def node(self, op_type, *inputs, **attributes):
        name = f"{op_type.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name + "_out"], name,
                                           **attributes))
        return name + "_out"

    def model(self, output, shape):
        self.nodes.append(helper.make_node("Identity", [output], ["y"], "result"))
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "network", [value("x", self.shape)],
                                  [value("y", shape)], self.weights)
        return helper.make_model(graph, ir_version=10,
                                 opset_imports=[helper.make_opsetid("", self.opset)])
