"""What tests of `backcast quantize` share: small.onnx is what it wrote."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples/digits"), str(ROOT / "tests/support")]

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


class QuantizeCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def backcast(self, *words, expect=0):
        done = subprocess.run([str(PROGRAM), *map(str, words)], cwd=self.folder,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def quantize(self, model, data, *words, name="small.onnx", expect=0):
        """What the program prints; small.onnx is the result."""
        if isinstance(model, onnx.ModelProto):
            onnx.save(model, self.folder / "large.onnx")
            model = "large.onnx"
        np.save(self.folder / "data.npy", data)
        said = self.backcast("quantize", model, "--data", "data.npy", "-o", name, *words,
                             expect=expect)
        if expect == 0:
            onnx.checker.check_model(onnx.load(self.folder / name))
        return said

    def run_model(self, data, name="small.onnx"):
        np.save(self.folder / "x.npy", data)
        self.backcast("run", name, "--input", "x.npy", "-o", "out")
        (result,) = (self.folder / "out").glob("*.npy")
        return np.load(result)

    def decibels(self, said):
        return float(re.search(r"([\d.]+|inf) dB", said)[1])

    def verify_on_cortex(self, data, *targets):
        """small.onnx, against the reference evaluator."""
        if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
            self.skipTest("no Cortex-M")
        evaluator = ReferenceEvaluator(onnx.load(self.folder / "small.onnx"))
        for i, x in enumerate(data):
            folder = self.folder / f"sets/test_data_set_{i}"
            folder.mkdir(parents=True)
            (want,) = evaluator.run(None, {"x": x[None]})
            for name, value in (("input_0", x[None]), ("output_0", want)):
                tensor = numpy_helper.from_array(value)
                (folder / f"{name}.pb").write_bytes(tensor.SerializeToString())
        for target in targets:
            self.backcast("verify", "small.onnx", "--data", "sets", "--target", target)
