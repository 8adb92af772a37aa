"""Random networks of sequences: rows [N, T, F] from tokens or frames, with attention in the forms
that exporters write, recurrent layers with all that they may be given, convolutions along time and
gates. Wide enough for the products of large networks: packed panels, several tiles, remainders."""

import math

import numpy as np
from onnx import TensorProto, helper

from model import MOST_ELEMENTS, Model, divisors

WIDTHS = [4, 6, 8, 12, 16, 24, 32, 33, 48, 64, 96]
SMOOTH = ["Tanh", "Sigmoid", "Gelu", "Softplus", "HardSigmoid", "Elu"]
LEAST = -1e9  # of a score that is masked


class Sequence(Model):
    """May have a second input `z`: lengths, a mask of positions or another sequence. Ends in rows,
    in one vector per example, or in scores of labels, which are trained by cross-entropy."""

    def __init__(self, seed):
        super().__init__(seed)
        self.n, t = self.rng.choice([1, 1, 2, 3]), self.rng.randint(2, 20)
        self.vocabulary = self.rng.randint(2, 40)
        if self.rng.random() < 0.5:
            kind = self.rng.choice([TensorProto.INT64, TensorProto.INT32])
            self.starts_from("x", [self.n, t], kind)
            self.embed()
        else:
            self.starts_from("x", [self.n, t, self.rng.choice(WIDTHS)])
        self.second = self.rng.choice(["none", "none", "lengths", "mask", "sequence"])
        if self.second == "lengths":
            self.inputs["z"] = (TensorProto.INT32, [self.n])
        elif self.second == "mask":
            self.inputs["z"] = (TensorProto.BOOL, [self.n, t])
            self.mask()
        elif self.second == "sequence":
            self.memory = [self.n, self.rng.randint(1, 12), self.rng.choice(WIDTHS[:6])]
            self.inputs["z"] = (TensorProto.FLOAT, self.memory)
            self.cross_attention()

    # --- data -------------------------------------------------------------------------------------

    def feed(self, name, numbers, examples=None):
        element, shape = self.inputs[name]
        kind = helper.tensor_dtype_to_np_dtype(element)
        if element == TensorProto.FLOAT:
            return super().feed(name, numbers, examples)
        if element == TensorProto.BOOL:
            mask = numbers.random(shape) < 0.7
            mask[:, 0] = True
            return mask
        if name == "z":
            _, (_, t, *_) = self.inputs["x"]
            return numbers.integers(1, t + 1, shape).astype(kind)
        return numbers.integers(0, self.vocabulary, shape).astype(kind)

    def target(self, numbers):
        if self.loss == "mse":
            return super().target(numbers)
        return numbers.integers(0, self.shape[1], self.shape[0])

    # --- rows -------------------------------------------------------------------------------------

    @property
    def t(self):
        return self.shape[1]

    def width(self):
        return self.shape[2]

    def embed(self):
        width = self.rng.choice(WIDTHS)
        table = self.weights(self.vocabulary, width, fan_in=2)
        if self.rng.random() < 0.2:
            depth, values = self.whole(self.vocabulary), self.constant(np.array([0, 1], np.float32))
            ids = self.node("Cast", ["x"], to=TensorProto.INT64)  # ONNX Runtime has no other
            hot = self.node("OneHot", [ids, depth, values])
            rows = self.node("MatMul", [hot, table])
        else:
            rows = self.node("Gather", [table, "x"])
        if self.rng.random() < 0.5:
            rows = self.node("Add", [rows, self.around(0, [1, self.t, width])])
        self.becomes(rows, [self.n, self.t, width])

    def linear(self, rows, width, results):
        product = self.node("MatMul", [rows, self.weights(width, results, fan_in=width)])
        if self.rng.random() < 0.4:
            return product
        return self.node("Add", [product, self.around(0, results)])

    def normal(self, rows, width):
        kind = self.rng.choice(["LayerNormalization", "root of squares"])
        if width < 4:  # of fewer it would amplify rounding
            return rows
        if kind == "LayerNormalization":
            return self.node(kind, [rows, self.around(1, width), self.around(0, width)], axis=-1)
        square = self.node("Mul", [rows, rows])
        mean = self.node("ReduceMean", [square, self.whole(-1)], keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, self.constant(1e-3)])])
        return self.node("Mul", [self.node("Div", [rows, root]), self.around(1, width)])

    def normalization(self):
        self.becomes(self.normal(self.value, self.width()), self.shape)

    def residual(self, rows):
        """Rows of the present shape become part of the sum."""
        self.becomes(self.node("Add", [self.value, rows]), self.shape)

    def mask(self):
        """Zeros at positions that do not count."""
        column = self.node("Unsqueeze", ["z", self.whole(2)])
        if self.rng.random() < 0.5:
            kept = self.node("Cast", [column], to=TensorProto.FLOAT)
            rows = self.node("Mul", [self.value, kept])
        else:
            rows = self.node("Where", [column, self.value, self.constant(0.0)])
        self.becomes(rows, self.shape)

    # --- attention --------------------------------------------------------------------------------

    def heads_of(self, rows, t, heads, size):
        """[N, heads, T, size]"""
        apart = self.node("Reshape", [rows, self.sizes([self.n, t, heads, size])])
        return self.node("Transpose", [apart], perm=[0, 2, 1, 3])

    def rotated(self, rows, size):
        """Rotary positions of [N, heads, T, size]."""
        half = size // 2
        angles = np.arange(self.t)[:, None] / 10.0 ** (np.arange(half) / max(1, half))
        both = np.concatenate([angles, angles], axis=1)
        ends = [self.node("Slice", [rows, self.whole(a), self.whole(b), self.whole(3)])
                for a, b in ((half, size), (0, half))]
        turned = self.node("Concat", [self.node("Neg", ends[:1]), ends[1]], axis=3)
        return self.node("Add", [self.node("Mul", [rows, self.constant(np.cos(both))]),
                                 self.node("Mul", [turned, self.constant(np.sin(both))])])

    def shared(self, rows, t, heads, groups, size):
        """Each of `heads` heads of keys or values serves several of queries."""
        if groups == 1:
            return rows
        apart = self.node("Unsqueeze", [rows, self.whole(2)])
        several = self.node("Expand", [apart, self.whole(self.n, heads, groups, t, size)])
        return self.node("Reshape", [several, self.sizes([self.n, heads * groups, t, size])])

    def masked(self, scores):
        """Scores of [N, heads, T, T], some of them left out."""
        kinds = ["none", "causal", "causal", "positions"]
        kind = self.rng.choice(kinds if self.second == "mask" else kinds[:3])
        if kind == "causal":
            upper = np.triu(np.ones([self.t, self.t]), 1)
            if self.rng.random() < 0.5:
                return self.node("Add", [scores, self.constant(upper * LEAST)])
            return self.node("Where", [self.constant(upper == 1), self.constant(LEAST), scores])
        if kind == "positions":
            spread = self.node("Unsqueeze", ["z", self.whole(1, 2)])
            return self.node("Where", [spread, scores, self.constant(LEAST)])
        return scores

    def attention(self):
        width = self.width()
        rows = self.normal(self.value, width)
        heads = self.rng.choice(divisors(width)[:5])
        size = width // heads
        groups = self.rng.choice([1, 1, *divisors(heads)])
        few = heads // groups  # heads of keys and values
        if groups == 1 and self.rng.random() < 0.4:
            joined = self.linear(rows, width, 3 * width)
            parts = self.results("Split", [joined], 3, axis=2, num_outputs=3)
        else:
            parts = [self.linear(rows, width, count * size) for count in (heads, few, few)]
        query, key, value = (self.heads_of(part, self.t, count, size)
                             for part, count in zip(parts, (heads, few, few)))
        if size % 2 == 0 and self.rng.random() < 0.4:
            query, key = self.rotated(query, size), self.rotated(key, size)
        key = self.shared(key, self.t, few, groups, size)
        value = self.shared(value, self.t, few, groups, size)
        mixed = self.mixed(query, key, value, size, self.masked)
        self.residual(self.linear(self.rows_of(mixed, width), width, width))

    def mixed(self, query, key, value, size, masked):
        if self.rng.random() < 0.2:
            scores = self.node("Einsum", [query, key], equation="bhqd,bhkd->bhqk")
        else:
            turned = self.node("Transpose", [key], perm=[0, 1, 3, 2])
            scores = self.node("MatMul", [query, turned])
        scaled = self.node(*self.rng.choice([("Mul", [scores, self.constant(size ** -0.5)]),
                                             ("Div", [scores, self.constant(size ** 0.5)])]))
        weights = self.node("Softmax", [masked(scaled)], axis=-1)
        return self.node("MatMul", [weights, value])

    def rows_of(self, heads, width):
        turned = self.node("Transpose", [heads], perm=[0, 2, 1, 3])
        return self.node("Reshape", [turned, self.sizes([self.n, self.t, width])])

    def cross_attention(self):
        width, (_, t, f) = self.width(), self.memory
        heads = self.rng.choice(divisors(width)[:4])
        size = width // heads
        query = self.heads_of(self.linear(self.value, width, width), self.t, heads, size)
        key, value = (self.heads_of(self.linear("z", f, width), t, heads, size) for _ in range(2))
        mixed = self.mixed(query, key, value, size, lambda scores: scores)
        self.residual(self.rows_of(mixed, width))

    # --- position by position ---------------------------------------------------------------------

    def feed_forward(self):
        width, hidden = self.width(), self.rng.choice([*WIDTHS, 128, 160])
        rows = self.normal(self.value, width) if self.rng.random() < 0.7 else self.value
        inner = self.linear(rows, width, hidden)
        if self.rng.random() < 0.4:  # gated
            gate = self.linear(rows, width, hidden)
            active = self.node("Mul", [gate, self.node("Sigmoid", [gate])])
            inner = self.node("Mul", [active, inner])
        else:
            inner = self.node(self.rng.choice(["Relu", "Gelu", *SMOOTH]), [inner])
        if self.rng.random() < 0.6:
            self.residual(self.linear(inner, hidden, width))
        else:
            results = self.rng.choice(WIDTHS)
            self.becomes(self.linear(inner, hidden, results), [self.n, self.t, results])

    def experts(self):
        """The sum of several products, each weighted per position."""
        width, count = self.width(), self.rng.randint(2, 4)
        scores = self.node("Softmax", [self.linear(self.value, width, count)], axis=-1)
        spread = self.node("Unsqueeze", [scores, self.whole(-1)])
        bank = self.weights(count, width, width, fan_in=width)
        every = self.node("Einsum", [self.value, bank], equation="ntf,efg->nteg")
        mixed = self.node("ReduceSum", [self.node("Mul", [every, spread]), self.whole(2)],
                          keepdims=0)
        self.residual(self.node("Tanh", [mixed]))

    # --- along time -------------------------------------------------------------------------------

    def recurrent(self):
        kind, gates = self.rng.choice([("LSTM", 4), ("LSTM", 4), ("GRU", 3), ("RNN", 1)])
        width, hidden = self.width(), self.rng.choice([1, 5, 8, 16, 20, 32, 48])
        direction = self.rng.choice(["forward", "reverse", "bidirectional"])
        d = 2 if direction == "bidirectional" else 1
        steps = self.node("Transpose", [self.value], perm=[1, 0, 2])
        inputs = [steps, self.weights(d, gates * hidden, width, fan_in=width),
                  self.weights(d, gates * hidden, hidden, fan_in=hidden),
                  self.around(0, [d, 2 * gates * hidden]) if self.rng.random() < 0.7 else "",
                  "z" if self.second == "lengths" and self.rng.random() < 0.7 else ""]
        starts = self.rng.random() < 0.4
        for _ in range(2 if kind == "LSTM" else 1):
            inputs.append(self.around(0, [d, self.n, hidden]) if starts else "")
        more = {"direction": direction, "hidden_size": hidden}
        if kind == "LSTM" and self.rng.random() < 0.3:
            inputs.append(self.around(0, [d, 3 * hidden]))
        if kind == "GRU":
            more["linear_before_reset"] = self.rng.randint(0, 1)
        if kind == "RNN" and self.rng.random() < 0.4:
            more["activations"] = [self.rng.choice(["Tanh", "Sigmoid", "Relu"])] * d
        while not inputs[-1]:
            inputs.pop()
        every, last = self.results(kind, inputs, 2, **more)
        if self.rng.random() < 0.2:  # where it ended, for every position
            ends = self.node("Transpose", [last], perm=[1, 0, 2])
            flat = self.node("Reshape", [ends, self.whole(0, 1, d * hidden)])
            rows = self.node("Expand", [flat, self.whole(self.n, self.t, d * hidden)])
        else:
            first = self.node("Transpose", [every], perm=[2, 0, 1, 3])
            rows = self.node("Reshape", [first, self.whole(0, 0, d * hidden)])
        self.becomes(rows, [self.n, self.t, d * hidden])

    def convolution(self):
        """Along time, of one channel or of all, from both sides or from the past."""
        width, k = self.width(), self.rng.choice([2, 3, 5, 7])
        dilation = self.rng.choice([1, 1, 2, 4])
        reach = (k - 1) * dilation
        pads = self.rng.choice([[reach, 0], [reach // 2, reach - reach // 2]])
        groups = self.rng.choice([1, width])
        gated = self.rng.random() < 0.3
        results = width * (2 if gated else 1)
        columns = self.node("Transpose", [self.value], perm=[0, 2, 1])
        done = self.node("Conv", [columns, self.weights(results, width // groups, k),
                                  self.around(0, results)], group=groups, kernel_shape=[k],
                         dilations=[dilation], pads=pads)
        if gated:
            left, right = self.results("Split", [done], 2, axis=1, num_outputs=2)
            done = self.node("Mul", [left, self.node("Sigmoid", [right])])
        self.residual(self.node("Transpose", [done], perm=[0, 2, 1]))

    def running_sum(self):
        total = self.node("CumSum", [self.value, self.constant(np.int64(1))],
                          exclusive=self.rng.randint(0, 1), reverse=self.rng.randint(0, 1))
        self.becomes(self.node("Mul", [total, self.constant(1 / self.t)]), self.shape)

    def shift(self):
        """A mixture of each position with the one before."""
        past = self.node("Slice", [self.value, self.whole(0), self.whole(self.t - 1),
                                   self.whole(1)])
        before = self.node("Pad", [past, self.whole(0, 1, 0, 0, 0, 0)])
        share = self.node("Sigmoid", [self.around(0, self.width())])
        change = self.node("Mul", [self.node("Sub", [before, self.value]), share])
        self.residual(change)

    def backwards(self):
        if self.second != "lengths":
            return
        rows = self.node("ReverseSequence", [self.value, self.node("Cast", ["z"],
                                                                   to=TensorProto.INT64)],
                         time_axis=1, batch_axis=0)
        self.residual(rows)

    def decay(self):
        """A state that keeps a share of itself, step by step."""
        width = self.width()
        info = helper.make_tensor_value_info
        share = 1 / (1 + math.exp(-self.rng.gauss(0, 1)))
        body = helper.make_graph(
            [helper.make_node("Constant", [], ["a"], value_float=share),
             helper.make_node("Mul", ["h", "a"], ["kept"]),
             helper.make_node("Add", ["kept", "step"], ["sum"]),
             helper.make_node("Tanh", ["sum"], ["next"]),
             helper.make_node("Identity", ["next"], ["out"])], "body",
            [info(name, TensorProto.FLOAT, [self.n, width]) for name in ("h", "step")],
            [info(name, TensorProto.FLOAT, [self.n, width]) for name in ("next", "out")])
        start = self.constant(np.zeros([self.n, width], np.float32))
        _, every = self.results("Scan", [start, self.value], 2, body=body, num_scan_inputs=1,
                                scan_input_axes=[1], scan_output_axes=[1])
        self.becomes(every, self.shape)

    def pooling(self):
        if self.t < 4 or self.second not in ("none", "sequence"):
            return
        columns = self.node("Transpose", [self.value], perm=[0, 2, 1])
        done = self.node(self.rng.choice(["MaxPool", "AveragePool"]), [columns], kernel_shape=[2],
                         strides=[2])
        self.becomes(self.node("Transpose", [done], perm=[0, 2, 1]),
                     [self.n, self.t // 2, self.width()])

    # --- the whole --------------------------------------------------------------------------------

    def parts(self):
        return {self.attention: 4, self.feed_forward: 4, self.recurrent: 3, self.convolution: 2,
                self.normalization: 2, self.experts: 1, self.running_sum: 1, self.shift: 1,
                self.backwards: 1, self.decay: 1, self.pooling: 1}

    def fits(self):
        return math.prod(self.shape) <= 4 * MOST_ELEMENTS and self.width() <= 192

    def head(self):
        width = self.width()
        kind = self.rng.choice(["rows", "last", "first", "mean", "most", "weighted"])
        if kind == "rows":
            results = self.rng.randint(1, 20)
            self.becomes(self.linear(self.value, width, results), [self.n, self.t, results])
            return
        if kind in ("last", "first"):
            place = self.constant(np.int64(-1 if kind == "last" else 0))
            vector = self.node("Gather", [self.value, place], axis=1)
        elif kind == "weighted":
            scores = self.node("Softmax", [self.linear(self.value, width, 1)], axis=1)
            vector = self.node("ReduceSum", [self.node("Mul", [self.value, scores]),
                                             self.whole(1)], keepdims=0)
        else:
            vector = self.node("ReduceMean" if kind == "mean" else "ReduceMax",
                               [self.value, self.whole(1)], keepdims=0)
        results = self.rng.randint(2, 12)
        self.node("Gemm", [vector, self.weights(results, width), self.around(0, results)],
                  [self.n, results], transB=1)
        if self.rng.random() < 0.6:
            self.loss = "cross-entropy"
