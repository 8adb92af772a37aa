"""Exports networks of JAX to ONNX (jax2onnx), of one example and of any number (up to three), holds
what Backcast computes of each, and of what ONNX Runtime's optimiser makes of it, against ONNX
Runtime, and compiles those that have weights for training. Prints a line per file; exit status 1
when one fails, whose files stay in the folder.

    sweep.py BACKCAST FOLDER [NAME...]"""

import pathlib
import sys

import numpy as np
from jax2onnx import to_onnx

from networks import NETWORKS

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from network_sweep import inputs_of, sweep, write_reference
from onnx_reference import silence

BATCHES = {"": 1, "_any": "N"}
WITHOUT_WEIGHTS = ("repeated", "chosen", "sorted_rows", "similarities")


def export(network, form, path):
    make, shape = network
    try:
        with silence():
            to_onnx(make(), [(BATCHES[form], *shape)], return_mode="file", output_path=str(path))
    except Exception as error:  # converters raise all kinds
        return f"not exported: {type(error).__name__}"
    x = np.random.default_rng(9).standard_normal([1, *shape]).astype(np.float32)
    return write_reference(path, {inputs_of(path)[0].name: x})


if __name__ == "__main__":
    trains = [NETWORKS[name] for name in NETWORKS if name not in WITHOUT_WEIGHTS]
    sys.exit(sweep(NETWORKS, BATCHES, export, lambda network, form: network in trains,
                   lambda network, form: ["--dim", "N=1..3"] if form else []))
