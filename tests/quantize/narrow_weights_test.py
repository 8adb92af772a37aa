#!/usr/bin/env python3
"""Networks that `backcast quantize --weight-bits` wrote: which weights have 4 bits, how they are
rounded, and what microcontrollers compute of them.
    narrow_weights_test.py PROGRAM
"""

import json
import unittest

from quantize_case import GATES, QuantizeCase

import numpy as np
import onnx
from onnx import numpy_helper
from onnx_network import Network


def long_sums(opset=21):
    """Convolutions and dense layers whose channels have weights enough for 4 bits, but the first."""
    n = Network([1, 3, 12, 12], opset)
    a = n.node("Relu", n.node("Conv", "x", n.weight(16, 3, 3, 3), n.weight(16), pads=[1, 1, 1, 1]))
    b = n.node("Conv", a, n.weight(16, 8, 3, 3), n.weight(16), group=2, auto_pad="SAME_UPPER")
    b = n.node("Conv", n.node("Add", a, b), n.weight(32, 16, 3, 3), strides=[2, 2])
    norm = [n.weight(32, low=0.5), n.weight(32), n.weight(32), n.weight(32, low=0.5)]
    b = n.node("LeakyRelu", n.node("BatchNormalization", b, *norm), alpha=0.1)
    c = n.node("Flatten", n.node("Relu", n.node("Conv", b, n.weight(8, 32, 1, 1))))
    d = n.node("Relu", n.node("Gemm", c, n.weight(64, 200), n.weight(64), transB=1))
    return n.model(n.node("MatMul", d, n.weight(64, 10)), [1, 10])


class NarrowWeights(QuantizeCase):
    def images(self, count=24):
        """Neighbours go together, as in pictures."""
        noise = np.random.default_rng(7).normal(0, 1, (count, 3, 14, 14))
        smooth = sum(noise[:, :, i:i + 12, j:j + 12] for i in range(3) for j in range(3)) / 3
        return smooth.astype(np.float32)

    def integers(self, count):
        """Weights of small.onnx, of as many values each."""
        graph = onnx.load(self.folder / "small.onnx").graph
        tensors = [numpy_helper.to_array(t) for t in graph.initializer if len(t.dims) > 1]
        return [t.astype(int) for t in tensors if t.size == count]

    def test_weights_of_four_bits(self):
        data = self.images()
        said = self.quantize(long_sums(), data[:16], "--weight-bits", "4")
        self.assertIn("int4       5 weight tensors", said)
        for count in (16 * 8 * 9, 32 * 16 * 9, 8 * 32, 64 * 200, 64 * 10):
            (weights,) = self.integers(count)
            self.assertEqual((weights.min() >= -8, weights.max() <= 7), (True, True))
            self.assertGreater(len(np.unique(weights)), 8)
        (first,) = self.integers(16 * 27)
        self.assertGreater(np.abs(first).max(), 100)
        self.verify_on_cortex(data[20:], "cortex-m4", "cortex-m55", "cortex-m0")

    def test_weights_of_four_bits_take_half_the_flash(self):
        data = self.images()
        # Registers hold 16 channels of a pixel: those that have no more keep bytes.
        for target, share in (("cortex-m4", 0.56), ("cortex-m55", 0.67)):
            flash = []
            for bits in ("8", "4"):
                self.quantize(long_sums(), data, "--weight-bits", bits)
                self.backcast("compile", "small.onnx", "--target", target, "-o", "out")
                report = json.loads((self.folder / "out/small.report.json").read_text())
                flash.append(report["weight_bytes"])
            self.assertLess(flash[1], share * flash[0], target)

    def test_weights_are_rounded_for_what_they_are_multiplied_by(self):
        n = Network([1, 64])
        model = n.model(n.node("Gemm", "x", n.weight(24, 64), transB=1), [1, 24])
        random = np.random.default_rng(8)
        rows = random.normal(0, 1, (400, 8)) @ random.normal(0, 1, (8, 64))
        data = (rows + 0.1 * random.normal(0, 1, rows.shape)).astype(np.float32)
        self.quantize(model, data[:300], "--weight-bits", "4")
        weights = numpy_helper.to_array(model.graph.initializer[0])
        scale = np.abs(weights).max(1, keepdims=True) / 7
        nearest = np.rint(weights / scale) * scale
        graph = onnx.load(self.folder / "small.onnx").graph
        own = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        (rounded,) = (t for t in own.values() if t.shape == weights.shape)
        (scales,) = (t for t in own.values() if t.shape == (24,) and t.dtype == np.float32)
        test = data[300:]
        error = np.square(test @ (rounded * scales[:, None] - weights).T).sum()
        self.assertLess(error, np.square(test @ (nearest - weights).T).sum() / 4)

    def test_weights_have_four_bits_where_that_costs_little(self):
        n = Network([1, 64])
        hidden = n.node("Relu", n.node("Gemm", "x", n.weight(40, 64), transB=1))
        model = n.model(n.node("Gemm", hidden, n.weight(10, 40), transB=1), [1, 10])
        random = np.random.default_rng(10)
        steps = random.integers(-7, 8, (40, 64))
        steps[:, 0] = 7
        model.graph.initializer[0].CopyFrom(
            numpy_helper.from_array((0.03 * steps).astype(np.float32), n.weights[0].name))
        data = random.normal(0, 1, (200, 64)).astype(np.float32)
        eight = self.decibels(self.quantize(model, data))
        four = self.decibels(self.quantize(model, data, "--weight-bits", "4"))
        said = self.quantize(model, data, "--weight-bits", "auto")
        self.assertLess(four, eight - 3)
        self.assertGreater(self.decibels(said), eight - 3)
        self.assertIn("int4       1 weight tensor\n", said)
        (weights,) = self.integers(40 * 64)
        np.testing.assert_array_equal(weights, steps)

    def test_recurrent_weights_of_four_bits(self):
        for kind, direction in (("LSTM", "forward"), ("GRU", "bidirectional")):
            count, rows = 2 if direction == "bidirectional" else 1, GATES[kind] * 40
            n = Network([10, 1, 48])
            weights = [n.weight(count, rows, 48), n.weight(count, rows, 40)]
            y = n.node(kind, "x", *weights, n.weight(count, 2 * rows), hidden_size=40,
                       direction=direction)
            model = n.model(n.node("Squeeze", y, n.integers(2)), [10, count, 40])
            data = np.random.default_rng(9).normal(0, 1, (160, 1, 48)).astype(np.float32)
            said = self.quantize(model, data, "--weight-bits", "4")
            self.assertIn("int4       2 weight tensors", said)
            self.assertGreater(self.decibels(said), 15)
            graph = onnx.load(self.folder / "small.onnx").graph
            held = [numpy_helper.to_array(t) for t in graph.initializer if len(t.dims) > 1]
            held = [t for t in held if t.dtype == np.int8]
            self.assertGreater(len(held), 1)
            for tensor in held:
                self.assertEqual((tensor.min() >= -8, tensor.max() <= 7), (True, True))
            self.backcast("compile", "small.onnx", "--target", "cortex-m4", "-o", "out")
            report = json.loads((self.folder / "out/small.report.json").read_text())
            self.assertLess(report["weight_bytes"], 0.7 * sum(t.size for t in held))

    def test_layers_can_keep_weights_of_eight_bits(self):
        model = long_sums()
        name = next(node.name or node.output[0] for node in model.graph.node
                    if node.op_type == "Gemm")
        said = self.quantize(model, self.images(), "--weight-bits", "4", "--byte-weights",
                             f"^{name}$")
        self.assertIn("int4       4 weight tensors", said)
        (weights,) = self.integers(64 * 200)
        self.assertGreater(np.abs(weights).max(), 100)

    def test_bad_input_is_named(self):
        data = self.images(4)
        for words, message in (
                (["--weight-bits", "4", "--byte-weights", "["], r"--byte-weights \["),
                (["--weight-bits", "5"], r"choose one of 8, 4, auto"),
                (["--byte-weights", "."], r"--weight-bits 4.*give that as well"),
                (["--weights-only", "--weight-bits", "4"], r"4 are for layers of integers")):
            said = self.quantize(long_sums(), data, *words, name="bad.onnx", expect=1)
            self.assertRegex(said, message)
            self.assertFalse((self.folder / "bad.onnx").exists())


if __name__ == "__main__":
    unittest.main()
