"""Compares two folders of references: same files, same structure, numbers close.

Double-precision values may differ by what another processor's order of summation does; values in
single precision by what rounding does to the network in question, which its file tells.
"""

import json
import math

import numpy as np
import onnx
from onnx import numpy_helper

RELATIVE = 1e-6  # of double-precision values, to the largest of their list
RELATIVE_F32 = 1e-3
DIGITS_APART = 2  # test images


def kind_of(path):
    return path.parts[0] if len(path.parts) > 1 else path.name


def close(old, new, relative):
    """Whether two number arrays agree to `relative` of their largest magnitude."""
    old, new = np.asarray(old, np.float64), np.asarray(new, np.float64)
    if old.shape != new.shape:
        return False
    scale = max(1e-9, float(np.max(np.abs(old), initial=0.0)))
    return bool(np.all(np.abs(old - new) <= relative * scale))


def is_numbers(value):
    if isinstance(value, list):
        return bool(value) and all(is_numbers(item) for item in value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def flattened(value):
    return [x for item in value for x in flattened(item)] if isinstance(value, list) else [value]


def tolerance(key, slack):
    """Relative tolerance of a JSON value; None when it is only a measure of rounding."""
    if "distance" in key:
        return None
    return max(RELATIVE_F32, slack) if "f32" in key else RELATIVE


def trees(old, new, where, slack, problems):
    """Walks two JSON values together."""
    if is_numbers(old) and is_numbers(new):
        key = where.rsplit("/", 1)[-1]
        allowed = tolerance(key, slack)
        if key in ("right", "right_f64"):
            if any(abs(a - b) > DIGITS_APART for a, b in zip(old, new, strict=True)):
                problems.append(f"{where}: {old} and {new}")
        elif key.startswith("last_loss"):  # of 2,000 steps: only the order of magnitude holds
            if not close(old, new, 0.5):
                problems.append(f"{where}: {old} and {new}")
        elif allowed is not None and not close(flattened(old), flattened(new), allowed):
            problems.append(f"{where}: beyond {allowed:.1e}")
    elif isinstance(old, dict) and isinstance(new, dict):
        if list(old) != list(new):
            problems.append(f"{where}: fields {list(old)} and {list(new)}")
            return
        if "parameter_distance_f32" in old:
            slack = 3 * max(old["parameter_distance_f32"] + old["loss_distance_f32"])
        for key in old:
            trees(old[key], new[key], f"{where}/{key}", slack, problems)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new)):
            trees(a, b, f"{where}/{index}", slack, problems)
    elif old != new:
        problems.append(f"{where}: {old} and {new}")


def tensors(old, new, where, problems):
    a, b = (numpy_helper.to_array(onnx.load_tensor(path)) for path in (old, new))
    if a.dtype != b.dtype or a.shape != b.shape or not close(a, b, RELATIVE):
        problems.append(f"{where}: beyond {RELATIVE:.1e}")


def models(old, new, where, problems):
    a, b = (onnx.load(path, load_external_data=False).graph for path in (old, new))
    if list(a.initializer) != list(b.initializer):
        problems.append(f"{where}: other initializers")
    if [(n.op_type, n.attribute, len(n.input)) for n in a.node] != [
            (n.op_type, n.attribute, len(n.input)) for n in b.node]:
        problems.append(f"{where}: other nodes")


def compare(old, new, written):
    """The differences, as lines, between the files `written` (relative paths) of two folders."""
    problems = []
    for path in sorted(written):
        where = str(path)
        if not (old / path).exists():
            problems.append(f"{where}: missing")
        elif path.suffix == ".json":
            a, b = (json.loads((folder / path).read_text()) for folder in (old, new))
            trees(a, b, where, 0.0, problems)
        elif path.suffix == ".pb":
            tensors(old / path, new / path, where, problems)
        elif path.suffix == ".onnx":
            models(old / path, new / path, where, problems)
        elif (old / path).read_bytes() != (new / path).read_bytes():
            problems.append(f"{where}: other bytes")
    for folder in ("models", "gradients", "trajectories"):
        for path in (old / folder).rglob("*"):
            if path.is_file() and path.relative_to(old) not in written:
                problems.append(f"{path.relative_to(old)}: no longer written")
    return problems
