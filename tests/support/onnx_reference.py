"""What ONNX Runtime computes of a model, data sets for `backcast verify`, and what it says."""

import contextlib
import os
import subprocess
import sys

from onnx import numpy_helper


@contextlib.contextmanager
def silence():
    """Nothing on standard output and error, from C++ neither."""
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    with open(os.devnull, "w") as nowhere:
        for descriptor in (1, 2):
            os.dup2(nowhere.fileno(), descriptor)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for descriptor, old in zip((1, 2), kept):
                os.dup2(old, descriptor)
                os.close(old)


def session_of(path, level, optimised=None):
    """ONNX Runtime's session of a model, which writes what it optimised where a path is given; None
    where its optimizer refuses the model (it may join a padding with a pooling and then find this
    too wide)."""
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    if optimised:
        options.optimized_model_filepath = str(optimised)
    try:
        return onnxruntime.InferenceSession(str(path), options,
                                            providers=["CPUExecutionProvider"])
    except Exception:  # of several kinds
        if level == "ORT_DISABLE_ALL":
            raise
        return None


def run_in_both_ways(path, feeds):
    """Lists of outputs: as the model stands, and optimised, where that can be had."""
    sessions = [session_of(path, level) for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL")]
    return [session.run(None, feeds) for session in sessions if session]


def optimise(path, optimised):
    """Writes the model as ONNX Runtime's optimiser leaves it, short of what is for one machine;
    whether it could."""
    return session_of(path, "ORT_ENABLE_EXTENDED", optimised) is not None


def write_tensor(path, array, name=""):
    path.write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def write_data(folder, inputs, outputs, number=0):
    """Arrays by name as FOLDER/test_data_set_NUMBER."""
    folder = folder / f"test_data_set_{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, (name, array) in enumerate(tensors.items()):
            write_tensor(folder / f"{kind}_{i}.pb", array, name)


def fault_of(command):
    """None, or the end of what a command that failed printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()[-300:]


def fault_of_results(backcast, model, folder, tolerance, steps=0, options=()):
    """What Backcast computes of the data sets in a folder that is not near what they expect; bytes
    may differ by some steps."""
    return fault_of([backcast, "verify", model, "--data", folder, "--rtol", "1e-4", "--atol",
                     str(tolerance), "--steps", str(steps), *options])
