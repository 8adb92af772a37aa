"""Writes the training references with PyTorch, or compares a fresh run with the repository's.

    python3 make_references.py           # rewrites the files beside this script
    python3 make_references.py --check   # compares a fresh run with them; exit 1 if they differ

scripts/sweep-torch makes the Python environment and calls this. Takes about four minutes on one free core.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import compare
import digits
import export_models
import gradients
import losses
import networks
import trajectories

HERE = pathlib.Path(__file__).resolve().parent


def onnx_loss(name, folder):
    """The loss of gradients/NAME's batch as ONNX's reference evaluator computes it."""
    data = folder / "gradients" / name / "test_data_set_0"
    inputs, target = (numpy_helper.to_array(onnx.load_tensor(data / f"{part}.pb"))
                      for part in ("input_0", "target"))
    model = ReferenceEvaluator(onnx.load(folder / "models" / f"{name}.onnx"))
    result = model.run(None, {networks.NETWORKS[name].input: inputs})[0].astype(np.float64)
    if networks.NETWORKS[name].classes is None:
        return ((result - target) ** 2).mean()
    shifted = result - result.max(axis=1, keepdims=True)
    chosen = shifted[np.arange(len(target)), target]
    return (np.log(np.exp(shifted).sum(axis=1)) - chosen).mean()


def check_models(folder):
    """The exported files compute what PyTorch computed: equal losses to single precision."""
    for name in networks.NETWORKS:
        expected = numpy_helper.to_array(
            onnx.load_tensor(folder / "gradients" / name / "test_data_set_0" / "loss.pb"))
        actual = onnx_loss(name, folder)
        if not abs(actual - expected) <= 1e-5 * max(1, abs(expected)):
            raise RuntimeError(f"{name}.onnx: loss {actual}, PyTorch {expected}")


def write(out):
    export_models.write(out)
    gradients.write(out)
    check_models(out)
    losses.write(out)
    trajectories.write(out)
    digits.write(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    # One thread: sums are then taken in one order.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if not options.check:
        write(HERE)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        fresh = pathlib.Path(folder)
        write(fresh)
        written = {path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file()}
        problems = compare.compare(HERE, fresh, written)
    print("\n".join(problems) or f"{len(written)} files agree with PyTorch {torch.__version__}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
