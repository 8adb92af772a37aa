"""Exports networks by both of PyTorch's exporters, holds what Backcast computes of each, and of
what ONNX Runtime's optimiser makes of it, against ONNX Runtime, and compiles each for training.
Prints a line per file; exit status 1 when one fails, whose files stay in the folder.

    sweep.py BACKCAST FOLDER [NAME...]

Files that an exporter or ONNX Runtime refuses are named and do not count."""

import os
import pathlib
import sys
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch

from networks import DETECTORS, NETWORKS

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from network_sweep import inputs_of, sweep, write_reference
from onnx_reference import silence

OPSET = 17
FORMS = {"": {"opset_version": OPSET, "dynamo": False},
         "_dynamo": {"external_data": False, "verbose": False, "dynamo": True}}


def enliven(module):
    """Biases and statistics as training leaves them: without, signals of deep networks fade and a
    result tells nothing."""
    for name, tensor in module.state_dict().items():
        if tensor.dim() == 1 and tensor.is_floating_point():
            tensor += 0.2 * torch.randn(tensor.shape)
            if "var" in name:
                tensor.abs_()


def export(make, form, path):
    torch.manual_seed(1)
    module, inputs = make()
    enliven(module)
    try:
        with torch.no_grad(), warnings.catch_warnings(), silence():
            warnings.simplefilter("ignore")
            torch.onnx.export(module.eval(), inputs, str(path), **FORMS[form])
    except Exception as error:  # exporters raise all kinds
        return f"not exported: {type(error).__name__}"
    names = [value.name for value in inputs_of(path)]
    return write_reference(path, {name: x.numpy() for name, x in zip(names, inputs)})


if __name__ == "__main__":
    # A target for what a detector chooses would be as large as the data has it.
    chosen = list(DETECTORS.values())
    sys.exit(sweep(NETWORKS, FORMS, export, lambda network, form: network not in chosen))
