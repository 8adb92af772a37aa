#!/usr/bin/env python3
"""Whole models against the outputs they came with: reference_test.py PROGRAM TARGET EMIT
[OPTION…], where EMIT is lib, c or evaluator and options are those of verify.

Verifies every model of tests/models and the f32 models of the folder that BACKCAST_MODELS names
(NAME_fp32/model.onnx, NAME_fp32/test_data_set_K), these at a relative tolerance of 1e-3 and an
absolute one of 1e-5, since their outputs come from another runtime. Exit status 77 when the target
cannot be run here.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = ROOT / "tests/models"

# Models with a symbol: the range that their data sets lie in. The evaluator takes it from these.
DIMENSIONS = {"perceptron_dynN": "N=1..8", "shape_arithmetic": "N=1..8", "any_batch": "N=1..8",
              "any_length": "N=1..64", "fused_decoder": "N=1..8",
              "packed_weights": "N=1..8"}


def models(folder):
    return sorted(path.parent for path in folder.glob("*/model.onnx"))


def verify(program, model, target, emit, options):
    """(passed, what was printed)"""
    command = [program, "verify", model / "model.onnx"]
    command += ["--evaluator"] if emit == "evaluator" else ["--target", target, "--emit", emit]
    if model.parent != OWN:
        command += ["--rtol", "1e-3", "--atol", "1e-5"]
    if model.name in DIMENSIONS and emit != "evaluator":
        command += ["--dim", DIMENSIONS[model.name]]
    command += options
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         stdin=subprocess.DEVNULL, timeout=500)
    return run.returncode == 0, run.stdout.strip()


def main():
    program, target, emit, *options = sys.argv[1:]
    chosen = models(OWN)
    extra = os.environ.get("BACKCAST_MODELS")
    if extra and pathlib.Path(extra).is_dir():
        chosen += [m for m in models(pathlib.Path(extra)) if m.name.endswith("_fp32")]
    else:
        print("BACKCAST_MODELS names no folder: the repository's own models only")
    failures = 0
    for model in chosen:
        passed, text = verify(program, model, target, emit, options)
        if not passed and "is needed to run target" in text:
            print(text)
            return 77
        failures += not passed
        print(f"{model.name}: {text}")
    print(f"{len(chosen)} models, {failures} failed")
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
