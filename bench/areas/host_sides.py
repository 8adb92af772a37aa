"""Who takes part in the inference benchmark, and how a side is built and its results compared."""

import sys
import time

import common
import environments
import workers
from areas import generators
from rounds import Side

OURS = {"lib": ("lib", None), "C, gcc": ("c", ("gcc-12", "gcc")),
        "C, clang": ("c", ("clang-19", "clang"))}
# name: environment, worker, further arguments
PEERS = {"ORT": (None, "ort_worker.py", []),
         "PyTorch eager": ("torch", "torch_worker.py", ["eager"]),
         "PyTorch compiled": ("torch", "torch_worker.py", ["compiled"]),
         "IREE": ("iree", "iree_worker.py", []),
         "TVM": ("tvm", "tvm_worker.py", []),
         "tinygrad": ("tinygrad", "tinygrad_worker.py", []),
         generators.EMX: ("emx", None, [])}
WRONG = 1e-3  # of the largest output


def our_sides(program, folder, model, flags, options, notes):
    """(sides, {side: library}), compiled with these flags; what cannot be built is absent with the
    reason."""
    sides, libraries = [], {}
    for name, (emit, names) in OURS.items():
        if not options.wants(name):
            continue
        compiler = common.compiler(*names) if names else None
        if names and compiler is None:
            sides.append(Side(name, absent="no such compiler"))
            continue
        try:
            library = common.compile_model(program, model, folder / name.replace(", ", "-"), "m",
                                           emit, options=flags)
            started = time.monotonic()
            worker = workers.build_worker(library, compiler, options.compile_limit)
        except RuntimeError as error:
            notes.append(f"{name}: {error}")
            sides.append(Side(name, absent=str(error)))
            continue
        libraries[name] = library
        sides.append(Side(name, [worker, folder / "inputs", library.folder / "outputs"],
                          library.folder / "outputs", build_seconds=time.monotonic() - started))
    return sides, libraries


def worker_side(name, python, worker, folder, model, words=(), threads=1):
    outputs = folder / f"{name.replace(' ', '-')}.outputs"
    command = [python, common.BENCH / "peers" / worker, model, folder / "inputs", outputs, *words]
    return Side(name, command, outputs, threads=threads)


def peer_sides(folder, model, library, options):
    sides = []
    for name, (environment, worker, words) in PEERS.items():
        if name != "ORT" and not options.wants(name):
            continue
        try:
            python = environments.python_of(environment) if environment else sys.executable
            if worker is None:
                sides.append(generators.emx_side(python, folder, model, library, options))
                continue
            sides.append(worker_side(name, python, worker, folder, model, words))
        except RuntimeError as error:
            sides.append(Side(name, absent=str(error)))
    return sides


def write_inputs(path, library):
    """Seeded inputs, the same for every side. Integers are 0 or 1: every table has such places."""
    import numpy as np
    rng = np.random.default_rng(1)
    with open(path, "wb") as stream:
        for tensor in library.inputs:
            if tensor.c_type == "float":
                count = tensor.bytes // 4
                stream.write(rng.standard_normal(count, np.float32).tobytes())
            else:
                kind = np.dtype(tensor.c_type.removesuffix("_t").replace("double", "float64"))
                stream.write(rng.integers(0, 2, tensor.bytes // kind.itemsize, kind).tobytes())


def largest_difference(expected_file, actual_file):
    """max |a - e| / max |e| over all outputs, as floats."""
    import numpy as np
    expected = np.fromfile(expected_file, np.float32)
    actual = np.fromfile(actual_file, np.float32)
    if expected.shape != actual.shape or not np.isfinite(actual).all():
        return float("inf")
    return float(np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-30))
