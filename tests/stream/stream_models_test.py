#!/usr/bin/env python3
"""Libraries of `--stream`: called piece by piece they have to give what ONNX's reference evaluator
gives of the whole sequence, compiled by LLVM and as C, on this machine and under QEMU.
    stream_models_test.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from onnx_network import Network
from onnx_reference import write_data

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
TARGETS = ["native", "x86-64", "cortex-m4", "cortex-m0", "aarch64"]


def causal():
    """Blocks of dilated convolutions that do not look ahead, as PyTorch writes them: padded on both
    sides and cropped."""
    n = Network([1, 3, 24])
    value, channels = "x", 3
    for dilation in (1, 2, 4):
        pad = 2 * dilation
        y = n.node("Conv", value, n.weight(6, channels, 3), n.weight(6), dilations=[dilation],
                   pads=[pad, pad])
        y = n.node("Slice", y, n.integers(0), n.integers(-pad), n.integers(2))
        y = n.node("Relu", y)
        shortcut = n.node("Conv", value, n.weight(6, channels, 1))
        value, channels = n.node("Add", y, shortcut), 6
    return n.model(value, [1, 6, 24])


def looks_ahead():
    """A padded convolution with a stride in front of a recurrent layer."""
    n = Network([1, 4, 32])
    y = n.node("Relu", n.node("Conv", "x", n.weight(6, 4, 5), n.weight(6), pads=[2, 2],
                              strides=[2]))
    y = n.node("Transpose", y, perm=[2, 0, 1])
    y = n.node("GRU", y, n.weight(1, 15, 6), n.weight(1, 15, 5), n.weight(1, 30), hidden_size=5,
               linear_before_reset=1)
    y = n.node("Squeeze", y, n.integers(1))
    return n.model(n.node("Softmax", y, axis=-1), [16, 1, 5])


def keyword():
    """Images of sound, padded along frequencies alone, and a mean over both."""
    n = Network([1, 1, 25, 8])
    y = n.node("Relu", n.node("Conv", "x", n.weight(8, 1, 5, 3), n.weight(8), strides=[2, 1],
                              pads=[0, 1, 0, 1]))
    y = n.node("Relu", n.node("Conv", y, n.weight(8, 1, 3, 3), n.weight(8), group=8,
                              pads=[0, 1, 0, 1]))
    y = n.node("Relu", n.node("Conv", y, n.weight(12, 8, 1, 1), n.weight(12)))
    y = n.node("Flatten", n.node("GlobalAveragePool", y))
    return n.model(n.node("Gemm", y, n.weight(4, 12), n.weight(4), transB=1), [1, 4])


def decoder():
    """A transposed convolution whose windows overlap, behind an encoder with a stride."""
    n = Network([1, 2, 32])
    y = n.node("Tanh", n.node("Conv", "x", n.weight(6, 2, 4), n.weight(6), strides=[4]))
    return n.model(n.node("ConvTranspose", y, n.weight(6, 2, 8), n.weight(2), strides=[4],
                          pads=[0, 4]), [1, 2, 32])


def attention():
    """Attention reads a whole stretch of what convolutions make."""
    n = Network([1, 4, 14])
    y = n.node("Relu", n.node("Conv", "x", n.weight(6, 4, 3), n.weight(6)))
    y = n.node("Transpose", y, perm=[0, 2, 1])
    q, k, v = (n.node("MatMul", y, n.weight(6, 6)) for _ in range(3))
    scores = n.node("Softmax", n.node("MatMul", q, n.node("Transpose", k, perm=[0, 2, 1])), axis=-1)
    y = n.node("ReduceMean", n.node("MatMul", scores, v), n.integers(1), keepdims=0)
    return n.model(y, [1, 6])


class Stream(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        self.path = self.folder / "model.onnx"

    def write(self, model):
        onnx.save(model, self.path)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        self.x = np.random.default_rng(7).normal(size=shape).astype(np.float32)
        self.whole = ReferenceEvaluator(model).run(None, {"x": self.x})
        write_data(self.folder, {"x": self.x}, {"y": self.whole[0]})

    def backcast(self, *words, fails=False):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1 if fails else 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def verify(self, axis, *options, targets=TARGETS):
        for target in targets:
            for emit in ("lib", "c"):
                with self.subTest(target=target, emit=emit, options=options):
                    self.backcast("verify", self.path, "--target", target, "--emit", emit,
                                  "--stream", f"x={axis}", "--atol", "1e-5", *options)

    def report(self, *options):
        self.backcast("compile", self.path, "--target", "cortex-m4", "-o", self.folder / "out",
                      "--name", "model", *options)
        return json.loads((self.folder / "out/model.report.json").read_text())

    def test_causal(self):
        self.write(causal())
        self.verify(2)
        self.verify(2, "--hop", 4, targets=["native", "cortex-m4"])
        whole, piece = self.report(), self.report("--stream", "x=2")
        macs = sum(step["macs"] for step in piece["entries"][0]["steps"])
        self.assertLess(macs, piece["macs_whole"] / 24)
        self.assertLess(piece["arena_bytes"] + piece["state_bytes"], whole["arena_bytes"] / 2)

    def test_looks_ahead(self):
        self.write(looks_ahead())
        self.verify(2)
        self.verify(2, "--hop", 8, targets=["native", "cortex-m4"])
        report = self.report("--stream", "x=2")
        # Loops count as often as they run.
        macs = sum(step["macs"] for step in report["entries"][0]["steps"])
        self.assertEqual(report["macs_whole"], 16 * macs)
        stream = "\n".join(report["stream"])
        self.assertIn('a call takes 2 positions of "x"', stream)
        self.assertIn("the first 1 for nothing", stream)

    def test_keyword(self):
        self.write(keyword())
        self.verify(2)
        self.verify(2, "--hop", 6, targets=["native", "cortex-m4"])
        stream = "\n".join(self.report("--stream", "x=2")["stream"])
        self.assertIn('"y" of the latest 25 positions, from call 13 on', stream)
        self.assertIn("GlobalAveragePool", stream)
        header = (self.folder / "out/model.h").read_text()
        self.assertIn("#define MODEL_FIRST_CALL 13 ", header)
        self.assertNotIn("PARAMETER", header)

    def test_decoder(self):
        self.write(decoder())
        self.verify(2)

    def test_attention(self):
        self.write(attention())
        self.verify(2)

    def test_quantised(self):
        self.write(keyword())
        data, quantised = self.folder / "data.npy", self.folder / "quantised.onnx"
        np.save(data, np.random.default_rng(3).normal(size=(20, 1, 25, 8)).astype(np.float32))
        self.backcast("quantize", self.path, "--data", data, "-o", quantised)
        self.path = quantised
        self.write(onnx.load(quantised))
        self.verify(2)
        states = self.report("--stream", "x=2")["state"]
        self.assertTrue(all(s["type"].startswith(("i8", "u8", "i16", "i32")) for s in states), states)

    def test_length_that_nobody_knows(self):
        model = looks_ahead()
        self.write(model)
        for tensor in (model.graph.input[0], model.graph.output[0]):
            for dim in tensor.type.tensor_type.shape.dim:
                if dim.dim_value in (32, 16):
                    dim.dim_param = "T" if dim.dim_value == 32 else "S"
        onnx.save(model, self.path)
        self.verify(2, targets=["native", "cortex-m4"])
        report = self.report("--stream", "x=2")
        self.assertGreater(report["state_bytes"], 0)
        self.assertNotIn("macs_whole", report)
        self.assertIn("a sequence of one position", self.backcast(
            "compile", self.path, "-o", self.folder / "no", "--stream", "x=2", "--dim", "T=1",
            fails=True))

    def test_stretch_of_a_length_that_nobody_knows(self):
        model = keyword()
        model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "T"
        onnx.save(model, self.path)
        message = self.backcast("compile", self.path, "-o", self.folder / "no", "--stream", "x=2",
                                fails=True)
        self.assertIn("say with --dim how long a stretch", message)
        self.backcast("compile", self.path, "-o", self.folder / "out", "--stream", "x=2", "--dim",
                      "T=25")

    def test_run_joins_the_pieces(self):
        self.write(looks_ahead())
        np.save(self.folder / "x.npy", self.x)
        self.backcast("run", self.path, "--input", self.folder / "x.npy", "-o",
                      self.folder / "out", "--stream", "x=2")
        joined = np.load(self.folder / "out/y.npy")
        np.testing.assert_allclose(joined, self.whole[0][:15], rtol=1e-4, atol=1e-6)

    def test_says_what_is_wrong(self):
        self.write(keyword())
        compile_with = lambda *words: self.backcast("compile", self.path, "-o", self.folder / "no",
                                                    *words, fails=True)
        for words, said in (
                (["--stream", "x"], "NAME=AXIS"), (["--stream", "z=2"], "the model's inputs are x"),
                (["--stream", "x=4"], "axes count from 0"),
                (["--stream", "x=2", "--hop", "3"], "choose a multiple of 2"),
                (["--stream", "x=2", "--stream-edges", "no"], "choose one of exact, open"),
                (["--stream", "x=3"], "--stream-edges open")):
            message = compile_with(*words)
            self.assertIn(said, message)
            self.assertIn("model.onnx" if "NAME" not in said and "one of" not in said else "--stream",
                          message)
        self.assertFalse((self.folder / "no").exists())
        self.assertIn("--evaluator excludes --stream", self.backcast(
            "verify", self.path, "--evaluator", "--stream", "x=2", fails=True))

    def test_edges_left_open(self):
        self.write(keyword())
        self.backcast("compile", self.path, "-o", self.folder / "out", "--stream", "x=3",
                      "--stream-edges", "open")


if __name__ == "__main__":
    unittest.main()
