"""Random networks as ONNX models: small, but with everything next to everything.

A network grows operator by operator from a map of features [N, C, spatial...]. Weights
are scaled by their fan-in, so that values stay near 1 and a wrong element shows."""

import math

import numpy as np
from onnx import TensorProto

from model import Model, divisors

POINTWISE = ["Relu", "Sigmoid", "Tanh", "HardSwish", "Elu", "Softplus", "Mish", "Erf", "Gelu",
             "LeakyRelu", "Abs", "Neg", "Exp", "Sqrt", "Clip", "HardSigmoid", "Selu"]


class Network(Model):
    """`earlier` is what residuals, concatenations and products join the map of features with."""

    sides = {1: (8, 60), 2: (4, 20), 3: (3, 8)}  # extents by the number of spatial axes
    channels = (1, 8)     # of the input
    most_results = 12     # of a convolution, at most
    most_channels = 32    # of any tensor

    def __init__(self, seed):
        super().__init__(seed)
        self.dims = self.rng.choice([1, 2, 2, 2, 2, 2, 3])
        spatial = [self.rng.randint(*self.sides[self.dims]) for _ in range(self.dims)]
        examples = self.rng.choice([1, 1, 1, 2, 3])
        self.starts_from("x", [examples, self.rng.randint(*self.channels), *spatial])

    # --- parts ------------------------------------------------------------------------------------

    def spatial(self):
        return self.shape[2:]

    # --- windows ----------------------------------------------------------------------------------

    def window(self, most=5):
        """(kernel, strides, dilations, pads, output) of a window that fits, per axis."""
        kernel, strides, dilations, begins, ends, output = [], [], [], [], [], []
        for extent in self.spatial():
            k = self.rng.choice([1, 2, 3, 3, 3, most])
            s = self.rng.choice([1, 1, 1, 2, 2, 3])
            d = self.rng.choice([1, 1, 1, 2])
            before, after = self.rng.randint(0, (k - 1) * d), self.rng.randint(0, (k - 1) * d)
            if self.rng.random() < 0.5:
                before = after = (k - 1) * d // 2
            if extent + before + after < (k - 1) * d + 1:
                k = d = 1
                before = after = 0
            kernel.append(k)
            strides.append(s)
            dilations.append(d)
            begins.append(before)
            ends.append(after)
            output.append((extent + before + after - (k - 1) * d - 1) // s + 1)
        return kernel, strides, dilations, begins + ends, output

    def convolution(self):
        channels = self.shape[1]
        groups = self.rng.choice([1, 1, 1, channels, self.rng.choice(divisors(channels))])
        results = groups * self.rng.randint(1, max(1, self.most_results // groups))
        kernel, strides, dilations, pads, output = self.window()
        if self.rng.random() < 0.3:
            kernel, dilations, pads = [1] * self.dims, [1] * self.dims, [0] * 2 * self.dims
            output = [(e - 1) // s + 1 for e, s in zip(self.spatial(), strides)]
        inputs = [self.value, self.weights(results, channels // groups, *kernel)]
        if self.rng.random() < 0.7:
            inputs.append(self.around(0, results))
        self.node("Conv", inputs, [self.shape[0], results, *output], group=groups,
                  kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads)

    def transposed_convolution(self):
        channels = self.shape[1]
        groups = self.rng.choice([1, 1, channels])
        results = groups * self.rng.randint(1, max(1, self.most_results * 2 // 3 // groups))
        kernel = [self.rng.choice([1, 2, 3, 4]) for _ in range(self.dims)]
        strides = [self.rng.choice([1, 2, 2, 3]) for _ in range(self.dims)]
        pads = [self.rng.randint(0, k // 2) for k in kernel] * 2
        extra = [self.rng.randint(0, s - 1) for s in strides]
        output = [(e - 1) * s + k - 2 * p + x for e, s, k, p, x in
                  zip(self.spatial(), strides, kernel, pads, extra)]
        if min(output) < 1:
            return
        fan_in = channels // groups * math.prod(kernel) / math.prod(strides)
        inputs = [self.value, self.weights(channels, results // groups, *kernel, fan_in=fan_in)]
        if self.rng.random() < 0.7:
            inputs.append(self.around(0, results))
        self.node("ConvTranspose", inputs, [self.shape[0], results, *output], group=groups,
                  kernel_shape=kernel, strides=strides, pads=pads, output_padding=extra)

    def pooling(self):
        kernel, strides, _, pads, output = self.window(4)
        pads = [min(p, k - 1) for p, k in zip(pads, kernel * 2)]
        output = [(e + pads[i] + pads[i + self.dims] - kernel[i]) // strides[i] + 1
                  for i, e in enumerate(self.spatial())]
        if min(output) < 1:
            return
        kind = self.rng.choice(["MaxPool", "AveragePool"])
        more = {"count_include_pad": self.rng.randint(0, 1)} if kind == "AveragePool" else {}
        self.node(kind, [self.value], [*self.shape[:2], *output], kernel_shape=kernel,
                  strides=strides, pads=pads, **more)

    # --- elementwise, normalisation ---------------------------------------------------------------

    def activation(self):
        kind = self.rng.choice(POINTWISE)
        if kind == "Clip":
            # Bounds of their own: where values lie on one, differences have two sides.
            bounds = (self.constant(0.1 - self.rng.random()), self.constant(1 + self.rng.random()))
            self.node("Clip", [self.value, *bounds], self.shape)
        elif kind in ("Exp", "Sqrt"):  # of what neither grows nor ends at zero
            bounded = self.node("Sigmoid", [self.value])
            self.node(kind, [bounded], self.shape)
        else:
            self.node(kind, [self.value], self.shape)

    def prelu(self):
        slope = self.constant(0.25 + 0.1 * self.numpy.standard_normal(
            [self.shape[1], *[1] * self.dims]))
        self.node("PRelu", [self.value, slope], self.shape)

    def batch_normalization(self):
        c = self.shape[1]
        variance = self.constant(0.5 + self.numpy.random(c))
        self.node("BatchNormalization", [self.value, self.around(1, c), self.around(0, c),
                                         self.around(0, c), variance], self.shape)

    def other_normalization(self):
        c = self.shape[1]
        kind = self.rng.choice(["InstanceNormalization", "GroupNormalization", "LRN",
                                "LayerNormalization", "LpNormalization"])
        if kind == "InstanceNormalization":
            if math.prod(self.spatial()) < 4:
                return
            self.node(kind, [self.value, self.around(1, c), self.around(0, c)], self.shape)
        elif kind == "GroupNormalization":
            groups = self.rng.choice(divisors(c))
            if c // groups * math.prod(self.spatial()) < 4:
                return
            mean = self.reduce_groups(groups)
            self.node("Mul", [mean, self.around(1, [c, *[1] * self.dims])], self.shape)
        elif kind == "LRN":
            if self.dims == 2:
                self.node(kind, [self.value], self.shape, size=self.rng.choice([1, 3, 5]),
                          alpha=0.1)
        elif kind == "LayerNormalization":
            if self.shape[-1] < 4:
                return
            self.node(kind, [self.value, self.around(1, self.shape[-1]),
                             self.around(0, self.shape[-1])], self.shape, axis=-1)
        else:
            moved = self.node("Add", [self.value, self.constant(0.7)])
            self.node(kind, [moved], self.shape, axis=1, p=2)

    def reduce_groups(self, groups):
        """Group normalisation as exporters write it."""
        n, c = self.shape[:2]
        flat = self.node("Reshape", [self.value, self.sizes([n, groups, -1])])
        normal = self.node("InstanceNormalization", [flat, self.constant(np.ones(groups)),
                                                     self.constant(np.zeros(groups))])
        return self.node("Reshape", [normal, self.sizes(self.shape)])

    def squeeze_excite(self):
        n, c = self.shape[:2]
        mean = self.node("GlobalAveragePool", [self.value])
        hidden = self.rng.randint(1, 4)
        ones = [1] * self.dims
        first = self.node("Conv", [mean, self.weights(hidden, c, *ones), self.around(0, hidden)])
        active = self.node("Relu", [first])
        second = self.node("Conv", [active, self.weights(c, hidden, *ones), self.around(0, c)])
        gate = self.node(self.rng.choice(["Sigmoid", "HardSigmoid"]), [second])
        self.node("Mul", [self.value, gate], self.shape)

    def softmax(self):
        axis = self.rng.randint(1, len(self.shape) - 1)
        if self.shape[axis] < 2:
            return
        scores = self.node("Softmax", [self.value], axis=axis)
        self.node("Mul", [scores, self.constant(float(self.shape[axis]))], self.shape)

    # --- joining ----------------------------------------------------------------------------------

    def join(self):
        """With an earlier tensor of the same shape, or of the same but for channels."""
        same = [name for name, shape in self.earlier if shape == self.shape]
        beside = [(name, shape) for name, shape in self.earlier
                  if shape[0] == self.shape[0] and shape[2:] == self.shape[2:]]
        kind = self.rng.choice(["Add", "Add", "Mul", "Sub", "Max", "Concat", "Concat"])
        if kind == "Concat" and beside:
            name, shape = self.rng.choice(beside)
            channels = shape[1] + self.shape[1]
            pair = [self.value, name]
            self.rng.shuffle(pair)
            self.node("Concat", pair, [self.shape[0], channels, *self.spatial()], axis=1)
        elif kind != "Concat" and same:
            other = self.rng.choice(same)
            if kind == "Mul":
                other = self.node("Sigmoid", [other])
            self.node(kind, [self.value, other], self.shape)

    def residual(self):
        """A block of two layers whose sum with its operand may be rectified."""
        start, shape = self.value, self.shape
        hidden = self.rng.randint(1, self.most_results)
        middle = self.same_convolution(start, shape[1], hidden)
        active = self.node(self.rng.choice(["Relu", "HardSwish"]), [middle])
        last = self.same_convolution(active, hidden, shape[1])
        self.node("Add", [last, start], shape)
        if self.rng.random() < 0.5:
            self.node("Relu", [self.value], shape)

    def same_convolution(self, value, channels, results):
        kernel = [self.rng.choice([1, 3, 3, 5])] * self.dims
        pads = [k // 2 for k in kernel] * 2
        return self.node("Conv", [value, self.weights(results, channels, *kernel),
                                  self.around(0, results)], kernel_shape=kernel, pads=pads)

    def branches(self):
        """Two convolutions of the same tensor, one after the other or joined."""
        start, shape = self.value, self.shape
        self.convolution()
        left, left_shape = self.value, self.shape
        self.value, self.shape = start, shape
        self.convolution()
        if left_shape == self.shape:
            self.node("Add", [left, self.value], self.shape)
        elif left_shape[2:] == self.shape[2:]:
            self.node("Concat", [left, self.value],
                      [shape[0], left_shape[1] + self.shape[1], *self.spatial()], axis=1)

    # --- moving -----------------------------------------------------------------------------------

    def resize(self):
        scale = self.rng.choice([2, 2, 3])
        shape = [*self.shape[:2], *(e * scale for e in self.spatial())]
        mode = self.rng.choice(["nearest", "nearest", "linear"])
        more = {"nearest_mode": "floor"} if mode == "nearest" else {}
        place = self.rng.choice(["asymmetric", "half_pixel"])
        self.node("Resize", [self.value, "", self.constant([1.0, 1.0, *[scale] * self.dims])],
                  shape, mode=mode, coordinate_transformation_mode=place, **more)

    def pad(self):
        pads = [self.rng.randint(0, 2) for _ in range(2 * self.dims)]
        mode = self.rng.choice(["constant", "reflect", "edge"])
        if mode == "reflect" and min(self.spatial()) < 4:
            return
        output = [e + pads[i] + pads[i + self.dims] for i, e in enumerate(self.spatial())]
        every = [0, 0, *pads[:self.dims], 0, 0, *pads[self.dims:]]
        self.node("Pad", [self.value, self.whole(*every)],
                  [*self.shape[:2], *output], mode=mode)

    def cut(self):
        axis = self.rng.randint(1, len(self.shape) - 1)
        extent = self.shape[axis]
        if extent < 3:
            return
        begin, end = self.rng.randint(0, extent // 3), extent - self.rng.randint(0, extent // 3)
        step = self.rng.choice([1, 1, 2])
        shape = list(self.shape)
        shape[axis] = (end - begin + step - 1) // step
        whole = [begin, end, axis, step]
        if self.rng.random() < 0.2:  # backwards
            whole = [end - 1, begin - 1 - extent, axis, -1]
            shape[axis] = end - begin
        self.node("Slice", [self.value, *map(self.whole, whole)], shape)

    def shuffle(self):
        n, c = self.shape[:2]
        groups = self.rng.choice(divisors(c))
        apart = self.sizes([n, groups, c // groups, *self.spatial()])
        parts = self.node("Reshape", [self.value, apart])
        turned = self.node("Transpose", [parts], perm=[0, 2, 1, *range(3, 3 + self.dims)])
        self.node("Reshape", [turned, self.sizes(self.shape)], self.shape)

    def turn(self):
        """Swaps two spatial axes, or channels with one of them."""
        axes = list(range(len(self.shape)))
        i, j = self.rng.sample(axes[1:], 2)
        if self.shape[j] > 24 and i == 1:
            return
        axes[i], axes[j] = axes[j], axes[i]
        self.node("Transpose", [self.value], [self.shape[a] for a in axes], perm=axes)

    def depth_and_space(self):
        if self.dims != 2:
            return
        n, c, h, w = self.shape
        if c % 4 == 0:
            self.node("DepthToSpace", [self.value], [n, c // 4, 2 * h, 2 * w], blocksize=2,
                      mode=self.rng.choice(["DCR", "CRD"]))
        elif h % 2 == 0 and w % 2 == 0 and c < 5:
            self.node("SpaceToDepth", [self.value], [n, 4 * c, h // 2, w // 2], blocksize=2)

    def gather(self):
        axis = self.rng.randint(1, len(self.shape) - 1)
        picked = [self.rng.randrange(self.shape[axis]) for _ in range(self.rng.randint(1, 6))]
        shape = list(self.shape)
        shape[axis] = len(picked)
        self.node("Gather", [self.value, self.whole(*picked)], shape,
                  axis=axis)

    def reduce(self):
        axis = self.rng.randint(1, len(self.shape) - 1)
        kind = self.rng.choice(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2"])
        shape = list(self.shape)
        shape[axis] = 1
        axes = self.whole(axis)
        value = self.value
        if kind == "ReduceL2":
            value = self.node("Add", [value, self.constant(0.7)])
        reduced = self.node(kind, [value, axes], keepdims=1)
        if self.rng.random() < 0.7:  # against what it is of
            self.node(self.rng.choice(["Sub", "Add"]), [self.value, reduced], self.shape)
        else:
            self.node("Tanh", [reduced], shape)

    # --- sequences --------------------------------------------------------------------------------

    def sequence(self):
        """Channels become the features of T = all positions; a layer or two on them, and back."""
        n, c = self.shape[:2]
        t = math.prod(self.spatial())
        if not 2 <= t <= 80 or c < 2:
            return
        flat = self.node("Reshape", [self.value, self.sizes([n, c, t])])
        rows = self.node("Transpose", [flat], perm=[0, 2, 1])
        done, width = self.rng.choice(self.layers())(rows, c)
        back = self.node("Transpose", [done], perm=[0, 2, 1])
        shape = [n, width, *self.spatial()]
        self.node("Reshape", [back, self.sizes(shape)], shape)

    def layers(self):
        """Functions of rows and their width; they give back rows and width."""
        return [self.attention, self.dense, self.recurrent]

    def attention(self, rows, c):
        normal = rows
        if c >= 4:  # of fewer it would amplify rounding
            normal = self.node("LayerNormalization", [rows, self.around(1, c), self.around(0, c)],
                               axis=-1)
        query, key, value = (self.node("MatMul", [normal, self.weights(c, c, fan_in=c)])
                             for _ in range(3))
        turned = self.node("Transpose", [key], perm=[0, 2, 1])
        scores = self.node("MatMul", [query, turned])
        scaled = self.node("Mul", [scores, self.constant(1 / math.sqrt(c))])
        weights = self.node("Softmax", [scaled], axis=-1)
        mixed = self.node("MatMul", [weights, value])
        return self.node("Add", [rows, mixed]), c

    def dense(self, rows, c):
        hidden, width = self.rng.randint(1, 20), self.rng.randint(1, 12)
        first = self.node("MatMul", [rows, self.weights(c, hidden, fan_in=c)])
        biased = self.node("Add", [first, self.around(0, hidden)])
        active = self.node(self.rng.choice(["Relu", "Gelu", "Tanh"]), [biased])
        return self.node("MatMul", [active, self.weights(hidden, width, fan_in=hidden)]), width

    def recurrent(self, rows, c):
        kind, gates = self.rng.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
        width = self.rng.randint(1, 9)
        steps = self.node("Transpose", [rows], perm=[1, 0, 2])
        inputs = [steps, self.weights(1, gates * width, c, fan_in=c),
                  self.weights(1, gates * width, width, fan_in=width),
                  self.around(0, [1, 2 * gates * width])]
        every = self.node(kind, inputs, hidden_size=width)
        squeezed = self.node("Squeeze", [every, self.whole(1)])
        return self.node("Transpose", [squeezed], perm=[1, 0, 2]), width

    # --- the whole --------------------------------------------------------------------------------

    def parts(self):
        """Methods that append one, and how often each is taken."""
        return {self.convolution: 8, self.activation: 6, self.pooling: 2, self.join: 4,
                self.batch_normalization: 2, self.branches: 2, self.residual: 3,
                self.transposed_convolution: 1, self.prelu: 1, self.other_normalization: 1,
                self.squeeze_excite: 1, self.softmax: 1, self.resize: 1, self.pad: 1, self.cut: 1,
                self.shuffle: 1, self.turn: 1, self.depth_and_space: 1, self.gather: 1,
                self.reduce: 1, self.sequence: 2}

    def fits(self):
        return super().fits() and self.shape[1] <= self.most_channels

    def head(self):
        has_weights = any(node.op_type in ("Conv", "MatMul") for node in self.nodes)
        kind = self.rng.choice(["none", "pool", "dense"]) if has_weights else "dense"
        if kind == "pool":
            self.node("GlobalAveragePool", [self.value], [*self.shape[:2], *[1] * self.dims])
        if kind != "none":
            features = math.prod(self.shape[1:])
            self.node("Flatten", [self.value], [self.shape[0], features])
            results = self.rng.randint(1, 10)
            self.node("Gemm", [self.value, self.weights(results, features),
                               self.around(0, results)], [self.shape[0], results], transB=1)


class Wide(Network):
    """Of so many features that products are cut into blocks and panels."""

    sides = {1: (1, 24), 2: (1, 9), 3: (1, 4)}
    channels = (8, 160)
    most_results = 160
    most_channels = 256

    def grow(self):
        if len(self.nodes) < 12:  # a few are enough to wait for
            super().grow()


class Symbolic(Network):
    """Of any number N of examples, with one or two inputs and one or two outputs."""

    def __init__(self, seed):
        super().__init__(seed)
        if self.rng.random() < 0.5:
            self.inputs["z"] = self.inputs["x"]
            self.earlier.append(("z", self.shape))
            self.node("Add", ["x", "z"], self.shape)

    def head(self):
        super().head()
        inner = [(name, shape) for name, shape in self.earlier
                 if name.startswith("v") and name != self.value]
        if inner and self.rng.random() < 0.5:
            name, shape = self.rng.choice(inner)
            self.outputs[name] = (TensorProto.FLOAT, shape)

    def declared(self, shape):
        return ["N", *shape[1:]]
