#!/usr/bin/env python3
"""Whole models against the outputs they came with: reference_test.py PROGRAM TARGET EMIT.

Verifies every model of tests/models and, on this machine, of the folder that BACKCAST_MODELS names
(NAME/model.onnx, NAME/test_data_set_K). Where a data set holds ort_noopt_output_J.pb, an exact answer
of ONNX Runtime without optimisations, that is expected instead of output_J.pb. Prints what was left out and why. Exit status 77 when the
target cannot be run here.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = ROOT / "tests/models"

# Models with a symbolic batch: the range that their data sets lie in.
DIMENSIONS = {"perceptron_dynN": "N=1..8", "shape_arithmetic": "N=1..8"}


def models(folder):
    return sorted(path.parent for path in folder.glob("*/model.onnx"))


def exact_data(model, folder):
    """The folder with the model's data: a copy with the exact answers in place, if there are any."""
    if not any(model.glob("test_data_set_*/ort_noopt_output_*.pb")):
        return model
    for data in model.glob("test_data_set_*"):
        shutil.copytree(data, folder / data.name)
        for exact in (folder / data.name).glob("ort_noopt_output_*.pb"):
            exact.replace(exact.with_name(exact.name.removeprefix("ort_noopt_")))
    return folder


def verify(program, model, data, target, emit):
    """(passed, what was printed)"""
    command = [program, "verify", model / "model.onnx", "--data", data, "--target", target,
               "--emit", emit]
    if model.name in DIMENSIONS:
        command += ["--dim", DIMENSIONS[model.name]]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         stdin=subprocess.DEVNULL, timeout=500)
    return run.returncode == 0, run.stdout.strip()


def main():
    program, target, emit = sys.argv[1:]
    chosen = models(OWN)
    if target == "native":
        extra = os.environ.get("BACKCAST_MODELS")
        if extra and pathlib.Path(extra).is_dir():
            chosen += models(pathlib.Path(extra))
        else:
            print("BACKCAST_MODELS names no folder: the repository's own models only")
    failures = 0
    for model in chosen:
        with tempfile.TemporaryDirectory() as folder:
            data = exact_data(model, pathlib.Path(folder))
            passed, text = verify(program, model, data, target, emit)
        if not passed and "is needed to run target" in text:
            print(text)
            return 77
        failures += not passed
        print(f"{model.name}: {text}")
    print(f"{len(chosen)} models, {failures} failed")
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
