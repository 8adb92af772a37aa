"""Exports networks of PaddlePaddle to ONNX (paddle2onnx), of one example and of any number (up to
three), holds what Backcast computes of each, and of what ONNX Runtime's optimiser makes of it,
against ONNX Runtime, and compiles each for training. Prints a line per file; exit status 1 when one
fails, whose files stay in the folder.

    sweep.py BACKCAST FOLDER [NAME...]"""

import pathlib
import sys

import numpy as np
import paddle

from networks import NETWORKS

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from network_sweep import as_trained, inputs_of, sweep, write_reference
from onnx_reference import silence

BATCHES = {"": 1, "_any": -1}
OPSET = 17


def enliven(layer):
    generator = np.random.default_rng(5)
    for name, tensor in [*layer.named_parameters(), *layer.named_buffers()]:
        if len(tensor.shape) == 1:
            tensor.set_value(as_trained(name, tensor.numpy(), generator).astype(np.float32))


def export(network, form, path):
    make, shape, *words = network
    element = "int64" if words else "float32"
    try:
        with silence():
            paddle.seed(1)
            layer = make()
            layer.eval()
            enliven(layer)
            x = paddle.static.InputSpec([BATCHES[form], *shape], element, "x")
            paddle.onnx.export(layer, str(path.with_suffix("")), input_spec=[x],
                               opset_version=OPSET)
    except (Exception, SystemExit) as error:  # the converter's way to say no
        return f"not exported: {type(error).__name__}"
    generator = np.random.default_rng(9)
    x = (generator.integers(0, words[0], [1, *shape]) if words
         else generator.standard_normal([1, *shape]).astype(np.float32))
    return write_reference(path, {inputs_of(path)[0].name: x})


if __name__ == "__main__":
    sys.exit(sweep(NETWORKS, BATCHES, export, options=lambda network, form: (
        ["--dim", "DynamicDimension_0=1..3"] if form else [])))
