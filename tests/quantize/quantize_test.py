#!/usr/bin/env python3
"""Networks that `backcast quantize` wrote: ONNX's checker and reference evaluator have to read them
and find what Backcast computes of them, and they have to do what the networks in floating point do.
    quantize_test.py PROGRAM
"""

import re
import unittest

from quantize_case import GATES, ROOT, QuantizeCase

import digits_data
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_network import Network

DIGITS = ROOT / "examples/digits"


def every_kind(opset=21):
    """Convolutions with what may follow them, a dense layer, softmax."""
    n = Network([1, 3, 16, 16], opset)
    norm = [n.weight(8, low=0.5), n.weight(8), n.weight(8), n.weight(8, low=0.5)]
    a = n.node("Conv", "x", n.weight(8, 3, 3, 3), pads=[1, 1, 1, 1])
    a = n.node("Relu", n.node("BatchNormalization", a, *norm))
    b = n.node("Conv", a, n.weight(8, 1, 3, 3), n.weight(8), group=8, pads=[1, 1, 1, 1])
    b = n.node("Mul", b, n.node("Sigmoid", b))
    c = n.node("Relu", n.node("Add", a, n.node("Conv", b, n.weight(8, 8, 1, 1), n.weight(8))))
    c = n.node("Concat", n.node("MaxPool", c, kernel_shape=[2, 2], strides=[2, 2]),
               n.node("AveragePool", b, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    gate = n.node("HardSigmoid", n.node("Conv", n.node("GlobalAveragePool", c),
                                        n.weight(16, 16, 1, 1), n.weight(16)))
    c = n.node("Mul", c, gate)
    d = n.node("ConvTranspose", c, n.weight(16, 4, 2, 2), n.weight(4), strides=[2, 2])
    d = n.node("LeakyRelu", d, alpha=0.1)
    e = n.node("GlobalAveragePool", n.node("Conv", d, n.weight(12, 4, 3, 3), strides=[2, 2]))
    e = n.node("Relu", n.node("Gemm", n.node("Flatten", e), n.weight(10, 12), n.weight(10),
                              transB=1))
    f = n.node("Add", n.node("MatMul", e, n.weight(10, 6)), n.weight(6))
    return n.model(n.node("Softmax", f), [1, 6])


def recurrent(kind, direction="forward", opset=21, **attributes):
    """A recurrent layer of 12 steps, what it gives last and a dense layer on each of its states."""
    n = Network([12, 2, 8], opset)
    count, rows = 2 if direction == "bidirectional" else 1, GATES[kind] * 16
    inputs = ["x", n.weight(count, rows, 8), n.weight(count, rows, 16), n.weight(count, 2 * rows)]
    y = n.node(kind, *inputs, hidden_size=16, direction=direction, **attributes)
    n.nodes[-1].output.append("last")
    scores = n.node("MatMul", y, n.weight(16, 5))
    return n.model(n.node("Add", scores, n.node("ReduceMean", "last", keepdims=0)),
                   [12, count, 2, 5])


def decoded_recurrence(kind):
    """Recurrent weights in 8 bits, which DequantizeLinear decodes."""
    n = Network([24, 1, 8])
    rows, hidden = GATES[kind] * 48, 48
    weights = [n.weight(1, rows, 8), n.weight(1, rows, hidden)]
    for i, name in enumerate(weights):
        floats = numpy_helper.to_array(n.weights[i])[0]
        scale = np.abs(floats).max(1) / 127
        integers = np.rint(floats / scale[:, None]).astype(np.int8)
        n.weights[i] = numpy_helper.from_array(integers, name)
        n.weights.append(numpy_helper.from_array(scale.astype(np.float32), name + "_scale"))
        decoded = n.node("DequantizeLinear", name, name + "_scale", axis=0)
        weights[i] = n.node("Unsqueeze", decoded, "axes")
    n.weights.append(numpy_helper.from_array(np.array([0]), "axes"))
    attributes = {"linear_before_reset": 1} if kind == "GRU" else {}
    y = n.node(kind, "x", *weights, hidden_size=hidden, **attributes)
    return n.model(y, [24, 1, 1, hidden])


class Quantize(QuantizeCase):
    def examples(self, count=16):
        return np.random.default_rng(2).normal(0, 1, (count, 3, 16, 16)).astype(np.float32)

    def test_reference_evaluator_agrees(self):
        data = self.examples()
        said = self.quantize(every_kind(), data)
        self.assertGreater(self.decibels(said), 30)
        self.assertIn("8 products", said)
        evaluator = ReferenceEvaluator(onnx.load(self.folder / "small.onnx"))
        for x in data[:4]:
            (want,) = evaluator.run(None, {"x": x[None]})
            np.testing.assert_allclose(self.run_model(x[None]), want, rtol=1e-5, atol=1e-6)

    def test_weights_are_a_quarter(self):
        n = Network([1, 256])
        y = n.node("MatMul", n.node("Relu", n.node("MatMul", "x", n.weight(256, 256))),
                   n.weight(256, 256))
        said = self.quantize(n.model(y, [1, 256]), np.random.default_rng(3).normal(0, 1, (8, 256)).astype("f"))
        small, large = map(int, re.search(r"(\d+) bytes, of (\d+)", said).groups())
        self.assertLess(small, 0.27 * large)
        model = onnx.load(self.folder / "small.onnx")
        self.assertNotIn(TensorProto.FLOAT, [t.data_type for t in model.graph.initializer
                                             if np.prod(t.dims) > 256])

    def test_weights_that_nodes_compute_are_weights(self):
        """Exporters leave some of what they make of weights to nodes, which then go."""
        n = Network([1, 4, 8, 8])
        n.weights.append(numpy_helper.from_array(np.array([16, 4, 3, 3]), "shape"))
        a = n.node("Conv", "x", n.node("Reshape", n.weight(16, 36), "shape"))
        a = n.node("Flatten", n.node("Relu", a))
        b = n.node("MatMul", a, n.node("Transpose", n.weight(10, 16 * 36), perm=[1, 0]))
        data = np.random.default_rng(6).normal(0, 1, (8, 4, 8, 8)).astype(np.float32)
        said = self.quantize(n.model(b, [1, 10]), data)
        self.assertIn("2 products", said)
        self.assertGreater(self.decibels(said), 30)
        graph = onnx.load(self.folder / "small.onnx").graph
        self.assertNotIn("Transpose", [node.op_type for node in graph.node])
        self.assertNotIn(TensorProto.FLOAT, [t.data_type for t in graph.initializer
                                             if np.prod(t.dims) > 100])
        evaluator = ReferenceEvaluator(onnx.load(self.folder / "small.onnx"))
        (want,) = evaluator.run(None, {"x": data[:1]})
        np.testing.assert_allclose(self.run_model(data[:1]), want, rtol=1e-5, atol=1e-6)

    def test_digits_are_read_as_before(self):
        images, _ = digits_data.load("train")
        test, labels = digits_data.load("test")
        for network in ("digits_cnn", "digits_mlp"):
            model = onnx.load(DIGITS / f"{network}.onnx")
            for value in (*model.graph.input, *model.graph.output):
                value.type.tensor_type.shape.dim[0].dim_param = "N"
            self.quantize(model, images[:256])
            right = []
            for name in ("large.onnx", "small.onnx"):
                right.append(int((self.run_model(test, name).argmax(1) == labels).sum()))
            self.assertGreaterEqual(right[1], right[0] - 2, network)

    def test_ranges_are_cut_where_that_helps(self):
        n = Network([1, 32])
        model = n.model(n.node("Gemm", "x", n.weight(6, 32), transB=1), [1, 6])
        data = np.random.default_rng(5).normal(0, 1, (20000, 32)).astype(np.float32)
        data[3, 4] = 15  # once in 640,000 values
        whole = self.quantize(model, data, "--ranges", "all")
        cut = self.quantize(model, data, "--ranges", "least-error")
        chosen = self.quantize(model, data)
        self.assertNotIn("cut where", whole)
        self.assertGreater(self.decibels(cut), self.decibels(whole) + 0.5)
        self.assertEqual(cut, chosen)
        even = np.random.default_rng(6).uniform(-1, 1, (500, 32)).astype(np.float32)
        self.assertNotIn("cut where", self.quantize(model, even))
        self.assertIn("auto, all, least-error",
                      self.quantize(model, data, "--ranges", "some", expect=1))

    def test_cortex_m4_computes_the_same(self):
        data = self.examples(4)
        self.quantize(every_kind(), data)
        self.verify_on_cortex(data, "cortex-m4")

    def sequences(self, count=8):
        return np.random.default_rng(4).normal(0, 1, (count * 12, 2, 8)).astype(np.float32)

    def test_recurrent_layers(self):
        data = self.sequences()
        for kind, attributes in (("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}),
                                 ("RNN", {}), ("RNN", {"activations": ["Relu"]})):
            said = self.quantize(recurrent(kind, **attributes), data)
            self.assertIn("1 product and 1 recurrent layer", said)
            self.assertGreater(self.decibels(said), 25, kind)
            model = onnx.load(self.folder / "small.onnx")
            self.assertEqual({n.op_type for n in model.graph.node} & set(GATES), set())
            evaluator = ReferenceEvaluator(model)
            for x in data[:24].reshape(2, 12, 2, 8):
                (want,) = evaluator.run(None, {"x": x})
                np.testing.assert_allclose(self.run_model(x), want, rtol=1e-5, atol=1e-6)

    def test_recurrent_layers_run_backwards(self):
        data = self.sequences()
        for kind in GATES:
            for opset in (11, 17, 21):
                self.quantize(recurrent(kind, opset=opset), data)
                forwards = self.run_model(data[:12])
                said = self.quantize(recurrent(kind, "reverse", opset), data[::-1].copy())
                np.testing.assert_array_equal(self.run_model(data[:12][::-1].copy())[::-1], forwards)
                said = self.quantize(recurrent(kind, "bidirectional", opset), data)
                self.assertGreater(self.decibels(said), 25, kind)

    def test_states_may_come_from_outside(self):
        model = recurrent("LSTM")
        for name in ("h", "c"):
            state = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 16])
            model.graph.input.append(state)
        model.graph.node[0].input.extend(["", "h", "c"])
        del model.graph.node[0].output[:]
        model.graph.node[0].output.extend(["lstm0_out", "last", "cell"])
        for name in ("last", "cell"):
            state = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 16])
            model.graph.output.append(state)
        onnx.save(model, self.folder / "large.onnx")
        random = np.random.default_rng(5)
        feeds = {"x": self.sequences(1), **{name: random.normal(0, 0.3, (1, 2, 16)).astype("f")
                                            for name in ("h", "c")}}
        files = []
        for name, value in feeds.items():
            np.save(self.folder / f"{name}.npy", value)
            files += [f"{name}={name}.npy"]
        self.backcast("quantize", "large.onnx", *(w for f in files for w in ("--data", f)), "-o",
                      "small.onnx")
        self.backcast("run", "small.onnx", *(w for f in files for w in ("--input", f)), "-o", "out")
        evaluator = ReferenceEvaluator(onnx.load(self.folder / "small.onnx"))
        for name, want in zip(("y", "last", "cell"), evaluator.run(None, feeds)):
            have = np.load(self.folder / f"out/{name}.npy")
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)

    def test_decoded_weights_of_recurrent_layers_take_no_room(self):
        for kind in GATES:
            onnx.save(decoded_recurrence(kind), self.folder / "decoded.onnx")
            for target in ("cortex-m4", "x86-64-v3"):
                self.backcast("compile", "decoded.onnx", "--target", target, "-o", target)
                header = (self.folder / target / "decoded.h").read_text()
                arena = int(re.search(r"#define DECODED_ARENA_BYTES (\d+)", header)[1])
                # What all steps share of the data, and nothing like 48 rows for each gate.
                self.assertLess(arena, 4 * 24 * (GATES[kind] + 2) * 48, (kind, target))

    def test_weights_alone_need_no_data(self):
        """They take a quarter of the file and of flash, and no RAM where they are decoded."""
        gru = recurrent("GRU", linear_before_reset=1)
        for model, data in ((every_kind(), self.examples(4)), (gru, self.sequences(2))):
            onnx.save(model, self.folder / "large.onnx")
            said = self.backcast("quantize", "large.onnx", "--weights-only", "-o", "small.onnx")
            self.assertRegex(said, r"^int8 +\d+ weight tensors\nsmall.onnx: \d+ bytes, of \d+\n$")
            graph = onnx.load(self.folder / "small.onnx").graph
            onnx.checker.check_model(onnx.load(self.folder / "small.onnx"))
            self.assertNotIn("QuantizeLinear", [node.op_type for node in graph.node])
            self.assertNotIn(TensorProto.FLOAT, [t.data_type for t in graph.initializer
                                                 if np.prod(t.dims) > 200])
            said = self.quantize(model, data, "--weights-only")
            self.assertGreater(self.decibels(said), 35)
            arenas = []
            for name in ("large.onnx", "small.onnx"):
                self.backcast("compile", name, "--target", "cortex-m4", "--name", "net", "--ram", "1M")
                header = (self.folder / "net.h").read_text()
                arenas.append(int(re.search(r"NET_ARENA_BYTES (\d+)", header)[1]))
            self.assertEqual(*arenas)

    def test_weights_within_loops_and_branches(self):
        """A loop hands its weights on as TensorFlow's do; branches have initializers of their own."""
        random = np.random.default_rng(8)
        tensor = lambda name, *shape: numpy_helper.from_array(
            random.normal(0, shape[0] ** -0.5, shape).astype(np.float32), name)
        value = lambda name, kind=TensorProto.FLOAT, shape=None: helper.make_tensor_value_info(
            name, kind, shape)
        step = helper.make_graph(
            [helper.make_node("Slice", ["w_in", "begin", "end", "axis"], ["part"]),
             helper.make_node("MatMul", ["h_in", "part"], ["p"]),
             helper.make_node("Tanh", ["p"], ["h_out"]),
             helper.make_node("Identity", ["w_in"], ["w_out"]),
             helper.make_node("Identity", ["more_in"], ["more_out"])], "step",
            [value("i", TensorProto.INT64, []), value("more_in", TensorProto.BOOL, []),
             value("h_in", shape=[1, 24]), value("w_in", shape=[24, 48])],
            [value("more_out", TensorProto.BOOL, []), value("h_out", shape=[1, 24]),
             value("w_out", shape=[24, 48])])
        branches = {}
        for name in ("then", "else"):
            branches[f"{name}_branch"] = helper.make_graph(
                [helper.make_node("MatMul", ["h", f"{name}_w"], [f"{name}_y"])], name, [],
                [value(f"{name}_y", shape=[1, 16])], [tensor(f"{name}_w", 24, 16)])
        integers = lambda name, *values: numpy_helper.from_array(np.array(values), name)
        graph = helper.make_graph(
            [helper.make_node("Loop", ["trips", "go", "x", "w"], ["h", "w_last"], body=step),
             helper.make_node("If", ["which"], ["y"], **branches)], "network",
            [value("x", shape=[1, 24]), value("which", TensorProto.BOOL, [])],
            [value("y", shape=[1, 16])],
            [tensor("w", 24, 48), numpy_helper.from_array(np.array(5), "trips"),
             numpy_helper.from_array(np.array(True), "go"),
             integers("begin", 24), integers("end", 48), integers("axis", 1)])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
        onnx.save(model, self.folder / "large.onnx")
        said = self.backcast("quantize", "large.onnx", "--weights-only", "-o", "small.onnx")
        self.assertIn("3 weight tensors", said)
        small = onnx.load(self.folder / "small.onnx")
        onnx.checker.check_model(small)
        feeds = {"x": random.normal(0, 1, (1, 24)).astype(np.float32)}
        for which in (True, False):
            feeds["which"] = np.array(which)
            for name, data in feeds.items():
                np.save(self.folder / f"{name}.npy", data)
            self.backcast("run", "small.onnx", "--input", "x=x.npy", "--input", "which=which.npy",
                          "-o", "out")
            have = np.load(self.folder / "out/y.npy")
            (want,) = ReferenceEvaluator(small).run(None, feeds)
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
            (want,) = ReferenceEvaluator(model).run(None, feeds)
            self.assertLess(np.abs(have - want).max(), 0.05 * np.abs(want).max())

    def test_tables_are_weights(self):
        n = Network([6])
        y = n.node("MatMul", n.node("Gather", n.weight(50, 16), "x"), n.weight(16, 4))
        model = n.model(y, [6, 4])
        model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
        data = np.random.default_rng(7).integers(0, 50, (12,)).astype(np.int64)
        self.assertIn("2 weight tensors", self.quantize(model, data, "--weights-only"))
        said = self.quantize(model, data, "--weights-only", "--float", "gather")
        self.assertRegex(said, r"float +gather0 \(Gather\): as was asked")
        self.assertIn("1 weight tensor\n", said)

    def test_inputs_can_be_integers(self):
        data = self.examples()
        said = self.quantize(every_kind(), data, "--integer-inputs")
        scale, zero = re.search(r'"x" is int8: value = (\S+) · \(integer - (-?\d+)\)', said).groups()
        model = onnx.load(self.folder / "small.onnx")
        self.assertEqual(model.graph.input[0].type.tensor_type.elem_type, TensorProto.INT8)
        integers = np.clip(np.rint(data[:1] / np.float32(scale)) + int(zero), -128, 127)
        have = self.run_model(integers.astype(np.int8))
        self.quantize(every_kind(), data)
        np.testing.assert_array_equal(have, self.run_model(data[:1]))

    def test_files_without_scales_of_channels_use_the_runtime_s_operators(self):
        self.assertGreater(self.decibels(self.quantize(every_kind(11), self.examples())), 30)
        model = onnx.load(self.folder / "small.onnx")
        linear = {n.domain for n in model.graph.node if n.op_type.endswith("zeLinear")}
        self.assertEqual(linear, {"com.microsoft"})
        self.assertIn("com.microsoft", [o.domain for o in model.opset_import])

    def test_layers_can_stay_in_floating_point(self):
        said = self.quantize(every_kind(), self.examples(), "--float", "^gemm", "--float", "^conv0$")
        self.assertIn("6 products", said)
        self.assertRegex(said, r"float +conv0 \(Conv\): as was asked")
        evaluator = ReferenceEvaluator(onnx.load(self.folder / "small.onnx"))
        x = self.examples(1)
        (want,) = evaluator.run(None, {"x": x})
        np.testing.assert_allclose(self.run_model(x), want, rtol=1e-5, atol=1e-6)

    def test_external_data_moves_into_the_file(self):
        onnx.save(every_kind(), self.folder / "external.onnx", save_as_external_data=True,
                  location="weights.bin", size_threshold=0)
        data = self.examples(4)
        self.quantize("external.onnx", data)
        (self.folder / "weights.bin").unlink()
        have = self.run_model(data[:1])
        self.quantize(every_kind(), data)
        np.testing.assert_array_equal(have, self.run_model(data[:1]))

    def test_last_layer_can_learn(self):
        self.quantize(every_kind(), self.examples(4))
        self.backcast("compile", "small.onnx", "--train", "--trainable", "last:1", "--name", "net")
        self.assertIn("net_train_step", (self.folder / "net.h").read_text())

    def test_bad_input_is_named(self):
        data = self.examples(4)
        for words, data, message in (
                ([], data[:, :2], r'large.onnx.*"x".*|input "x" takes \[1,3,16,16\]'),
                (["--float", "("], data, r"--float \("),
                (["--float", "."], data, r"nothing to quantise"),
                ([], np.where(data > 3, np.nan, data), r"not finite")):
            said = self.quantize(every_kind(), data, *words, name="bad.onnx", expect=1)
            self.assertRegex(said, message)
            self.assertFalse((self.folder / "bad.onnx").exists())
        said = self.backcast("quantize", "large.onnx", "--data", "none.npy", "-o", "bad.onnx",
                             expect=1)
        self.assertIn("none.npy", said)
        self.backcast("quantize", "large.onnx", "-o", "bad.onnx", expect=1)


if __name__ == "__main__":
    unittest.main()
