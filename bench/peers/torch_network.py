"""An ONNX file as a PyTorch module: plain calls of torch.nn.functional in a traced graph.

What a file says about shapes is evaluated while the graph is built, so the module consists of the
tensor operations alone, as if it had been written by hand.
"""

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

CPU_TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 11: torch.float64}


def pads(attributes, rank):
    """Low and high padding per spatial dimension."""
    values = attributes.get("pads", [0] * 2 * rank)
    return values[:rank], values[rank:]


def pad_then(f, x, low, high, value=0.0):
    """Calls f(x, padding); pads beforehand where the two sides differ."""
    if list(low) == list(high):
        return f(x, list(low))
    widths = [w for pair in zip(reversed(low), reversed(high)) for w in pair]
    return f(functional.pad(x, widths, value=value), [0] * len(low))


def convolution(attributes, x, weight, bias=None):
    rank = weight.dim() - 2
    f = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[rank]
    return pad_then(lambda y, padding: f(y, weight, bias, attributes.get("strides", [1] * rank),
                                         padding, attributes.get("dilations", [1] * rank),
                                         attributes.get("group", 1)),
                    x, *pads(attributes, rank))


def average_pool(attributes, x):
    low, high = pads(attributes, len(attributes["kernel_shape"]))
    if low != high:
        raise NotImplementedError("AveragePool with unequal padding")
    return functional.avg_pool2d(x, attributes["kernel_shape"], attributes.get("strides"), low,
                                 count_include_pad=bool(attributes.get("count_include_pad", 0)))


def max_pool(attributes, x):
    return pad_then(lambda y, padding: functional.max_pool2d(
        y, attributes["kernel_shape"], attributes.get("strides"), padding),
        x, *pads(attributes, len(attributes["kernel_shape"])), value=-np.inf)


def gemm(attributes, a, b, c=None):
    if attributes.get("alpha", 1.0) != 1 or attributes.get("beta", 1.0) != 1 or \
            attributes.get("transA"):
        raise NotImplementedError("Gemm with a factor")
    return functional.linear(a, b if attributes.get("transB") else b.t(), c)


def batch_norm(attributes, x, scale, bias, mean, variance):
    return functional.batch_norm(x, mean, variance, scale, bias, False, 0.0,
                                 attributes.get("epsilon", 1e-5))


def layer_norm(attributes, x, scale, bias=None):
    return functional.layer_norm(x, scale.shape, scale, bias, attributes.get("epsilon", 1e-5))


def reshape(attributes, x, shape):
    return x.reshape(attributes["shapes"][1])


def slice_(attributes, x, starts, ends, axes=None, steps=None):
    index = [slice(None)] * len(attributes["shapes"][0])
    for k, (begin, end) in enumerate(zip(starts.tolist(), ends.tolist())):
        axis = int(axes[k]) if axes is not None else k
        index[axis] = slice(begin, end, int(steps[k]) if steps is not None else 1)
    return x[tuple(index)]


def lstm(attributes, x, w, r, b=None, lengths=None, h=None, c=None, *rest):
    """Forward direction, gates reordered from ONNX's i, o, f, c to i, f, c, o."""
    if attributes.get("direction", b"forward") != b"forward" or rest:
        raise NotImplementedError("LSTM other than forward")
    size = attributes["hidden_size"]

    def gates(t):
        i, o, f, g = t.split(size, 0)
        return torch.cat([i, f, g, o]).contiguous()
    zero = torch.zeros(1, attributes["shapes"][0][1], size)
    weights = [gates(w[0]), gates(r[0])]
    if b is not None:
        weights += [gates(b[0, :4 * size]), gates(b[0, 4 * size:])]
    result = torch.lstm(x, (zero if h is None else h, zero if c is None else c), weights,
                        b is not None, 1, 0.0, False, False, False)
    return result[0].unsqueeze(1), result[1], result[2]


def axes_of(attributes, axes):
    return axes.tolist() if axes is not None else attributes.get("axes")


def squeeze(attributes, x, axes=None):
    found = axes_of(attributes, axes)
    return x.squeeze(tuple(found)) if found else x.squeeze()


def unsqueeze(attributes, x, axes=None):
    for axis in sorted(axes_of(attributes, axes)):
        x = x.unsqueeze(axis)
    return x


def gather(attributes, x, index):
    axis = attributes.get("axis", 0)
    return x.select(axis, int(index)) if index.dim() == 0 else x.index_select(axis, index)


OPERATORS = {
    "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y, "Sqrt": lambda a, x: x.sqrt(), "Erf": lambda a, x: x.erf(),
    "Pow": lambda a, x, y: x ** y, "Relu": lambda a, x: torch.relu(x),
    "Sigmoid": lambda a, x: x.sigmoid(), "Tanh": lambda a, x: x.tanh(), "Identity": lambda a, x: x,
    "Clip": lambda a, x, low=None, high=None: torch.clamp(
        x, None if low is None else float(low), None if high is None else float(high)),
    "MatMul": lambda a, x, y: torch.matmul(x, y), "Gemm": gemm, "Conv": convolution,
    "AveragePool": average_pool, "MaxPool": max_pool, "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm, "LSTM": lstm, "Reshape": reshape, "Slice": slice_,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "Flatten": lambda a, x: torch.flatten(x, a.get("axis", 1)),
    "Transpose": lambda a, x: x.permute(a["perm"]),
    "Softmax": lambda a, x: torch.softmax(x, a.get("axis", -1)),
    "ReduceMean": lambda a, x, axes=None: x.mean(axes_of(a, axes), bool(a.get("keepdims", 1))),
    "Shape": lambda a, x: torch.tensor(a["shapes"][0]), "Gather": gather, "Squeeze": squeeze,
    "Unsqueeze": unsqueeze, "Concat": lambda a, *x: torch.cat(x, a["axis"]),
    "Expand": lambda a, x, shape: x.expand(torch.broadcast_shapes(a["shapes"][0], shape.tolist())),
    "Cast": lambda a, x: x.to(CPU_TYPES[a["to"]]),
    "Constant": lambda a: torch.from_numpy(numpy_helper.to_array(a["value"]).copy()),
}


class Network(torch.nn.Module):
    """The nodes of a graph in order, for inputs of fixed shapes.

    Running it once on `arguments` fixes every shape; what then does not depend on the values of
    the inputs is a constant.
    """

    def __init__(self, graph, arguments):
        super().__init__()
        constants = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy())
                     for t in graph.initializer}
        self.inputs = [v.name for v in graph.input if v.name not in constants]
        self.outputs = [v.name for v in graph.output]
        values, self.nodes = {**constants, **dict(zip(self.inputs, arguments))}, []
        varying = set(self.inputs)
        for node in graph.node:
            if node.op_type not in OPERATORS:
                raise NotImplementedError(f"operator {node.op_type}")
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if node.input:
                attributes["shapes"] = [list(values[node.input[0]].shape), None]
            if node.op_type == "Reshape":
                shape = values[node.input[1]].tolist()
                extents = [attributes["shapes"][0][i] if e == 0 else e for i, e in enumerate(shape)]
                attributes["shapes"][1] = extents
            apply = OPERATORS[node.op_type]
            values.update(zip(node.output, results_of(apply, attributes, node.input, values)))
            if node.op_type != "Shape" and varying & set(node.input):
                varying |= set(node.output)
                self.nodes.append((apply, attributes, list(node.input), list(node.output)))
        self.constants = {name: t for name, t in values.items() if name not in varying}

    def forward(self, *arguments):
        values = {**self.constants, **{name: arguments[i] for i, name in enumerate(self.inputs)}}
        for apply, attributes, inputs, outputs in self.nodes:
            values.update(zip(outputs, results_of(apply, attributes, inputs, values)))
        return tuple(values[name] for name in self.outputs)


def results_of(apply, attributes, inputs, values):
    results = apply(attributes, *(values[name] if name else None for name in inputs))
    return results if isinstance(results, tuple) else (results,)


def load(model, arguments):
    """The network of an ONNX file as a function of len(arguments) tensors."""
    with torch.no_grad():
        return torch.fx.symbolic_trace(Network(onnx.load(model).graph, arguments))
