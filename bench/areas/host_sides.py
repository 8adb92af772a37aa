"""Who takes part in the inference benchmark, and how a side is built and its results compared."""

import sys
import time

import common
import environments
import workers
from areas import generators
from rounds import Side

WASM = "WebAssembly"
OURS = {"lib": ("lib", None), "C, gcc": ("c", ("gcc-12", "gcc")),
        "C, clang": ("c", ("clang-19", "clang")), WASM: ("lib", None)}
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
        if name == WASM:
            add_wasm_side(sides, libraries, program, folder, model, flags)
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


def add_wasm_side(sides, libraries, program, folder, model, flags):
    """The library for wasm32 in V8, all of it by the optimising compiler."""
    node, linker = common.compiler("node", "nodejs"), common.compiler("wasm-ld-19", "wasm-ld")
    if node is None or linker is None:
        sides.append(Side(WASM, absent="node and wasm-ld, of nodejs and lld-19, are needed"))
        return
    try:
        library = common.compile_model(program, model, folder / WASM, "m", target="wasm32",
                                       options=flags)
        linked = library.folder / "m.wasm"
        common.run_tool([linker, "--no-entry", "--export=m_run", "--export=__heap_base",
                         library.folder / "libm.a", "-o", linked])
    except RuntimeError as error:
        sides.append(Side(WASM, absent=str(error)))
        return
    libraries[WASM] = library
    sizes = [",".join(str(tensor.bytes) for tensor in tensors)
             for tensors in (library.inputs, library.outputs)]
    outputs = library.folder / "outputs"
    sides.append(Side(WASM, [node, "--no-liftoff", common.BENCH / "host/wasm_worker.mjs", linked,
                             "m_run", library.report["arena_bytes"], *sizes, folder / "inputs",
                             outputs], outputs))


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
