"""An ONNX model that grows node by node from a random seed."""

import math
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
MOST_ELEMENTS = 6000  # of a tensor


class Model:
    """`value` and `shape` are the tensor that grows; `earlier`, what it may be joined with.

    `inputs` and `outputs` (those beside the last value) are (element type, shape) by name; `loss`
    is the one that the model is trained by."""

    loss = "mse"

    def __init__(self, seed):
        self.rng, self.numpy = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.initializers = [], []
        self.inputs, self.outputs = {}, {}
        self.value, self.shape, self.earlier = None, [], []

    def starts_from(self, name, shape, element=TensorProto.FLOAT):
        """Makes an input the tensor that grows."""
        self.inputs[name] = (element, list(shape))
        self.value, self.shape = name, list(shape)

    # --- constants and nodes ----------------------------------------------------------------------

    def constant(self, array):
        array = np.asarray(array)
        name = f"c{len(self.initializers)}"
        kept = array.astype(np.float32) if array.dtype.kind == "f" else array
        self.initializers.append(numpy_helper.from_array(kept, name))
        return name

    def whole(self, *numbers):
        """A vector of integers, as axes, sizes and positions are."""
        return self.constant(np.array(numbers, np.int64))

    def sizes(self, shape):
        """For a Reshape, which takes over the number of examples."""
        return self.whole(0, *shape[1:])

    def weights(self, *shape, fan_in=None):
        fan_in = fan_in or math.prod(shape[1:])
        return self.constant(self.numpy.standard_normal(shape) * 1.2 / math.sqrt(max(1, fan_in)))

    def around(self, center, count):
        return self.constant(center + 0.3 * self.numpy.standard_normal(count))

    def node(self, operator, inputs, shape=None, **attributes):
        """Appends a node; what grows becomes its result where a shape is given."""
        output = self.results(operator, inputs, 1, **attributes)[0]
        if shape is not None:
            self.becomes(output, shape)
        return output

    def results(self, operator, inputs, count, **attributes):
        """Appends a node of `count` results and gives their names."""
        name = f"v{len(self.nodes)}"
        names = [name if i == 0 else f"{name}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return names

    def becomes(self, value, shape):
        self.earlier.append((self.value, self.shape))
        self.value, self.shape = value, list(shape)

    # --- the whole --------------------------------------------------------------------------------

    def parts(self):
        """Methods that append a part, and how often each is taken."""
        raise NotImplementedError

    def head(self):
        """Appends what makes the last tensor the result."""
        raise NotImplementedError

    def fits(self):
        return math.prod(self.shape) <= MOST_ELEMENTS

    def grow(self):
        """One more part, given back where its result is too large."""
        before = (self.value, self.shape, list(self.earlier), len(self.nodes),
                  len(self.initializers))
        parts = self.parts()
        self.rng.choices(list(parts), list(parts.values()))[0]()
        if not self.fits():
            self.value, self.shape, self.earlier, nodes, initializers = before
            del self.nodes[nodes:], self.initializers[initializers:]

    def model(self):
        self.nodes[-1].output[0] = "y"
        for node in self.nodes:  # the last value may be used before it is named
            for i, name in enumerate(node.input):
                if name == self.value:
                    node.input[i] = "y"

        def described(tensors):
            return [helper.make_tensor_value_info(name, element, self.declared(shape))
                    for name, (element, shape) in tensors.items()]

        graph = helper.make_graph(
            self.nodes, "random", described(self.inputs),
            described({"y": (TensorProto.FLOAT, self.shape), **self.outputs}), self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=9)
        onnx.checker.check_model(model)
        return model

    def declared(self, shape):
        """An input's or output's shape as the model states it."""
        return shape

    # --- data -------------------------------------------------------------------------------------

    def feed(self, name, numbers, examples=None):
        """A random value of an input, for `examples` of them where any number goes."""
        _, shape = self.inputs[name]
        return numbers.standard_normal([examples or shape[0], *shape[1:]]).astype(np.float32)

    def dims_of(self, feeds):
        """Options that say how large these inputs are."""
        return []

    def target(self, numbers):
        return numbers.standard_normal(self.shape).astype(np.float32)


def make(seed, kind):
    """A grown network of a subclass, whose model() is the ONNX model."""
    network = kind(seed)
    for _ in range(network.rng.randint(3, 16)):
        network.grow()
    network.head()
    return network


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]
