"""A thin layer over onnx.helper: named nodes, seeded weights as raw initializers, value infos."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSIONS = {17: 8, 21: 10}
MICROSOFT, CLASSICAL = "com.microsoft", "ai.onnx.ml"
VERSIONS = {MICROSOFT: 1, CLASSICAL: 5}


class GraphBuilder:
    """Collects one model. A node's only result is named after the node unless told otherwise."""

    def __init__(self, name, seed, opset=OPSET):
        self.name, self.opset = name, opset
        self.rng = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []

    def input(self, name, shape, element=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def output(self, name, shape, element=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, element, shape))

    def constant(self, name, array):
        """An initializer, stored as raw bytes."""
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, name, values):
        return self.constant(name, np.array(values, dtype=np.int64))

    def weight(self, name, shape, fan_in):
        """Normal weights that keep the variance of a ReLU network."""
        scale = np.sqrt(2.0 / fan_in)
        return self.constant(name, (self.rng.standard_normal(shape) * scale).astype(np.float32))

    def vector(self, name, size, low=-0.2, high=0.2):
        return self.constant(name, self.rng.uniform(low, high, size).astype(np.float32))

    def node(self, op, name, inputs, results=None, **attributes):
        """Adds a node; returns its result's name, or the list of them when `results` is a list."""
        outputs = results if isinstance(results, list) else [results or f"{name}_out"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, **attributes))
        return outputs if isinstance(results, list) else outputs[0]

    def fused(self, op, name, inputs, results=None, **attributes):
        """A node of ONNX Runtime's own operators."""
        return self.node(op, name, inputs, results, domain=MICROSOFT, **attributes)

    def classical(self, op, name, inputs, results=None, **attributes):
        """A node of ONNX's operators for other machine learning."""
        return self.node(op, name, inputs, results, domain=CLASSICAL, **attributes)

    def conv(self, name, x, inputs, outputs, kernel, group=1, bias=True, **attributes):
        """Conv with weight [outputs, inputs/group, *kernel]."""
        fan_in = inputs // group * int(np.prod(kernel))
        operands = [x, self.weight(f"{name}.weight", (outputs, inputs // group, *kernel), fan_in)]
        if bias:
            operands.append(self.vector(f"{name}.bias", outputs))
        return self.node("Conv", name, operands, kernel_shape=list(kernel), group=group,
                         **attributes)

    def batch_norm(self, name, x, channels, epsilon=1e-5):
        operands = [
            x,
            self.vector(f"{name}.weight", channels, 0.5, 1.5),
            self.vector(f"{name}.bias", channels),
            self.vector(f"{name}.running_mean", channels),
            self.vector(f"{name}.running_var", channels, 0.5, 1.5),
        ]
        return self.node("BatchNormalization", name, operands, epsilon=epsilon)

    def dense(self, name, x, inputs, outputs, result=None):
        """Gemm with weight [outputs, inputs], as PyTorch exports a linear layer."""
        operands = [
            x,
            self.weight(f"{name}.weight", (outputs, inputs), inputs),
            self.vector(f"{name}.bias", outputs),
        ]
        return self.node("Gemm", name, operands, result, transB=1)

    def layer_norm(self, name, x, size, result=None):
        operands = [x, self.vector(f"{name}.weight", size, 0.5, 1.5),
                    self.vector(f"{name}.bias", size)]
        return self.node("LayerNormalization", name, operands, result, axis=-1, epsilon=1e-5)

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs,
                                  self.initializers)
        opsets = [helper.make_opsetid("", self.opset)]
        for domain in sorted({node.domain for node in self.nodes} & VERSIONS.keys()):
            opsets.append(helper.make_opsetid(domain, VERSIONS[domain]))
        model = helper.make_model(graph, producer_name="tests/models/make_models.py",
                                  opset_imports=opsets)
        model.ir_version = IR_VERSIONS[self.opset]
        onnx.checker.check_model(model, full_check=True)
        return model
