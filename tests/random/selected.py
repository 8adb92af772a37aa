"""Random networks whose tensors are as large as the data has it: rows are chosen by NonZero,
Compress, Unique or NonMaxSuppression, and what follows works on however many there are."""

import math

import numpy as np
from onnx import TensorProto, helper

from model import MOST_ELEMENTS, Model

SMOOTH = ["Tanh", "Sigmoid", "Softplus", "Elu", "Erf"]


class Selected(Model):
    """`shape` is [rows, width]; rows that are chosen are a name, `most` the number there can be."""

    def __init__(self, seed):
        super().__init__(seed)
        self.starts_from("x", [self.rng.randint(1, 24), self.rng.choice([1, 2, 3, 5, 8, 16, 17])])
        self.most, self.chosen = self.shape[0], 0
        self.choose()

    def declared(self, shape):
        return list(shape)

    def fits(self):
        rows = self.most if isinstance(self.shape[0], str) else self.shape[0]
        return rows * self.shape[1] <= MOST_ELEMENTS

    @property
    def width(self):
        return self.shape[1]

    # --- choices ----------------------------------------------------------------------------------

    def mask(self):
        """[rows] of bool, seldom all alike."""
        one = self.node("MatMul", [self.value, self.weights(self.width, 1)])
        score = self.node("Squeeze", [one, self.whole(1)])
        return self.node("Greater", [score, self.constant(self.rng.choice([-0.5, 0.0, 0.3, 1.0]))])

    def becomes_rows(self, rows, width):
        self.chosen += 1
        self.becomes(rows, [f"n{self.chosen}", width])

    def choose(self):
        self.rng.choice([self.by_places, self.by_places, self.by_condition, self.by_overlap,
                         self.by_elements, self.by_value])()

    def by_places(self):
        places = self.node("NonZero", [self.mask()])
        flat = self.node("Reshape", [places, self.whole(-1)])
        self.becomes_rows(self.node("Gather", [self.value, flat], axis=0), self.width)

    def by_condition(self):
        self.becomes_rows(self.node("Compress", [self.value, self.mask()], axis=0), self.width)

    def by_elements(self):
        """The positive elements as a column."""
        places = self.node("NonZero", [self.node("Relu", [self.value])])
        vectors = self.node("Transpose", [places], perm=[1, 0])
        column = self.node("GatherND", [self.value, vectors])
        rows = self.shape[0] if isinstance(self.shape[0], int) else self.most
        self.most = rows * self.width
        self.becomes_rows(self.node("Unsqueeze", [column, self.whole(1)]), 1)

    def by_value(self):
        whole = self.node("Cast", [self.value], to=TensorProto.INT64)  # ONNX Runtime has few others
        if self.rng.random() < 0.5:
            found = self.results("Unique", [whole], 4, sorted=self.rng.randint(0, 1))
            rows = self.shape[0] if isinstance(self.shape[0], int) else self.most
            self.most, width = rows * self.width, 1
            kept = self.node("Unsqueeze", [found[self.rng.choice([0, 1, 3])], self.whole(1)])
        else:
            found = self.results("Unique", [whole], 4, axis=0, sorted=self.rng.randint(0, 1))
            kept, width = found[0], self.width
        self.becomes_rows(self.node("Cast", [kept], to=TensorProto.FLOAT), width)

    def by_overlap(self):
        boxes = self.node("MatMul", [self.value, self.weights(self.width, 4)])
        classes = self.rng.randint(1, 3)
        scores = self.node("MatMul", [self.value, self.weights(self.width, classes)])
        inputs = [self.node("Unsqueeze", [boxes, self.whole(0)]),
                  self.node("Unsqueeze", [self.node("Transpose", [scores], perm=[1, 0]),
                                          self.whole(0)]),
                  self.whole(self.rng.randint(1, 12)),
                  self.constant(np.array([self.rng.choice([0.0, 0.2, 0.5])], np.float32))]
        if self.rng.random() < 0.7:
            inputs.append(self.constant(np.array([self.rng.choice([-0.5, 0.0, 0.4])], np.float32)))
        taken = self.node("NonMaxSuppression", inputs,
                          center_point_box=self.rng.randint(0, 1))
        column = self.node("Gather", [taken, self.constant(np.int64(2))], axis=1)
        self.most *= classes
        self.becomes_rows(self.node("Gather", [self.value, column], axis=0), self.width)

    # --- parts ------------------------------------------------------------------------------------

    def parts(self):
        return {self.linear: 3, self.pointwise: 3, self.normal: 1, self.attention: 1,
                self.joined: 1, self.cut: 1, self.counted: 1, self.running: 1, self.again: 1,
                self.put_back: 1, self.beside_total: 1, self.padded: 1, self.beside_earlier: 1,
                self.maybe: 1}

    def linear(self):
        width = self.rng.choice([1, 3, 4, 8, 16, 20])
        product = self.node("MatMul", [self.value, self.weights(self.width, width)])
        self.becomes(self.node("Add", [product, self.around(0, width)]), [self.shape[0], width])

    def pointwise(self):
        self.becomes(self.node(self.rng.choice(SMOOTH), [self.value]), self.shape)

    def normal(self):
        axis = self.rng.randint(0, 1)
        self.becomes(self.node("Softmax", [self.value], axis=axis), self.shape)

    def attention(self):
        """Every row looks at all."""
        turned = self.node("Transpose", [self.value], perm=[1, 0])
        scores = self.node("MatMul", [self.value, turned])
        scaled = self.node("Mul", [scores, self.constant(1 / math.sqrt(self.width))])
        rows = self.node("MatMul", [self.node("Softmax", [scaled], axis=1), self.value])
        self.becomes(rows, self.shape)

    def joined(self):
        """Behind or before some constant rows, or twice side by side."""
        if self.rng.random() < 0.3:
            twice = self.node("Concat", [self.value, self.value], axis=1)
            return self.becomes(twice, [self.shape[0], 2 * self.width])
        count = self.rng.randint(1, 5)
        parts = [self.value, self.weights(count, self.width)]
        self.rng.shuffle(parts)
        self.most += count
        self.becomes(self.node("Concat", parts, axis=0), [f"j{len(self.nodes)}", self.width])

    def cut(self):
        """Some rows from the beginning or to the end."""
        begin, end = self.rng.choice([(0, 3), (1, 1000), (-2, 1000), (0, -1)])
        rows = self.node("Slice", [self.value, self.whole(begin), self.whole(end), self.whole(0)])
        self.becomes(rows, [f"c{len(self.nodes)}", self.width])

    def counted(self):
        """Plus the number of the row."""
        shape = self.node("Shape", [self.value])
        rows = self.node("Gather", [shape, self.constant(np.int64(0))], axis=0)
        zero, one = self.constant(np.int64(0)), self.constant(np.int64(1))
        places = self.node("Cast", [self.node("Range", [zero, rows, one])], to=TensorProto.FLOAT)
        column = self.node("Unsqueeze", [places, self.whole(1)])
        small = self.node("Mul", [column, self.constant(0.1)])
        self.becomes(self.node("Add", [self.value, small]), self.shape)

    def running(self):
        total = self.node("CumSum", [self.value, self.constant(np.int64(self.rng.randint(0, 1)))])
        self.becomes(self.node("Tanh", [total]), self.shape)

    def again(self):
        if self.chosen < 3:
            self.choose()

    def put_back(self):
        """Added up in as many rows as there are, in another order."""
        places = self.node("NonZero", [self.mask()])
        flat = self.node("Reshape", [places, self.whole(-1)])
        rows = self.node("Gather", [self.value, flat], axis=0)
        vectors = self.node("Transpose", [places], perm=[1, 0])
        self.becomes(self.node("ScatterND", [self.value, vectors, self.node("Neg", [rows])]),
                     self.shape)

    def beside_total(self):
        """Minus what all rows have in common."""
        kind = self.rng.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"])
        total = self.node(kind, [self.value, self.whole(0)], keepdims=1)
        self.becomes(self.node("Sub", [self.value, self.node("Tanh", [total])]), self.shape)

    def padded(self):
        low, high = self.rng.randint(0, 2), self.rng.randint(0, 2)
        rows = self.node("Pad", [self.value, self.whole(low, 0, high, 0)])
        self.most += low + high
        self.becomes(rows, [f"p{len(self.nodes)}", self.width])

    def beside_earlier(self):
        """Behind or before rows that were there before."""
        fitting = [other for other, shape in self.earlier if other and shape[1] == self.width]
        parts = [self.rng.choice(fitting or [self.value]), self.value]
        self.rng.shuffle(parts)
        self.most *= 2
        self.becomes(self.node("Concat", parts, axis=0), [f"e{len(self.nodes)}", self.width])

    def maybe(self):
        """Other rows where the data says so, none perhaps."""
        def branch(name, value):
            out = f"{name}{len(self.nodes)}"
            return helper.make_graph([helper.make_node("Identity", [value], [out])], name, [],
                                     [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)])
        count = self.rng.randint(0, 3)
        others = self.constant(np.ones([count, self.width], np.float32))
        largest = self.node("ReduceMax", [self.value, self.whole(0, 1)], keepdims=0)
        is_so = self.node("Greater", [largest, self.constant(self.rng.choice([-1.0, 0.2, 0.6]))])
        branches = [branch("given", self.value), branch("other", others)]
        self.rng.shuffle(branches)
        rows = self.node("If", [is_so], then_branch=branches[0], else_branch=branches[1])
        self.most = max(self.most, count)
        self.becomes(rows, [f"i{len(self.nodes)}", self.width])

    def head(self):
        if self.rng.random() < 0.5:
            total = self.node("ReduceSum", [self.value, self.whole(0)], keepdims=1)
            self.becomes(total, [1, self.width])
        self.node("Mul", [self.value, self.constant(0.5)], self.shape)

    def target(self, numbers):
        return np.zeros([1], np.float32)  # only gradients are judged
