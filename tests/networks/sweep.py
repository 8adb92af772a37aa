"""Exports networks by both of PyTorch's exporters, holds what Backcast computes of each, and of
what ONNX Runtime's optimiser makes of it, against ONNX Runtime, and compiles each for training.
Prints a line per file; exit status 1 when one fails.

    sweep.py BACKCAST FOLDER [NAME...]

Files that an exporter or ONNX Runtime refuses are named and do not count."""

import contextlib
import os
import pathlib
import sys
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import onnx
import torch

from networks import NETWORKS

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_reference import fault_of, fault_of_results, optimise, run_in_both_ways, write_data

OPSET = 17
ROUNDING = 1e-5  # of results near 1, beside what ONNX Runtime's own two ways differ by


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


def export(make, path, dynamo):
    """Why not, or None."""
    torch.manual_seed(1)
    module, inputs = make()
    options = {"external_data": False, "verbose": False} if dynamo else {"opset_version": OPSET}
    try:
        with torch.no_grad(), warnings.catch_warnings(), silence():
            warnings.simplefilter("ignore")
            torch.onnx.export(module.eval(), inputs, str(path), dynamo=dynamo, **options)
    except Exception as error:  # exporters raise all kinds
        path.unlink(missing_ok=True)
        return f"not exported: {type(error).__name__}"
    return write_reference(path, inputs)


def write_reference(path, inputs):
    """Inputs and ONNX Runtime's outputs as a data set, and as text how far these are from those of
    its optimised form: untrained networks may amplify rounding. Why not, or None."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {initializer.name for initializer in graph.initializer}
    names = [value.name for value in graph.input if value.name not in constants]
    feeds = {name: x.numpy() for name, x in zip(names, inputs)}
    try:
        runs = run_in_both_ways(path, feeds)
    except Exception as error:
        return f"not run by ONNX Runtime: {type(error).__name__}"
    folder = path.with_suffix("")
    write_data(folder, feeds, dict(zip((value.name for value in graph.output), runs[0])))
    noise = max(float(abs(a - b).max()) for a, b in zip(runs[0], runs[-1]))
    (folder / "noise").write_text(str(noise))
    return None


def check(backcast, path):
    folder = path.with_suffix("")
    tolerance = ROUNDING + 4 * float((folder / "noise").read_text())

    def verified(model):
        return fault_of_results(backcast, model, folder, tolerance)

    faults = {"run": verified(path)}
    fused = folder / "optimised.onnx"
    if optimise(path, fused):
        faults["optimised"] = verified(fused)
    faults["train"] = fault_of([backcast, "compile", path, "--train", "--loss", "mse", "--emit",
                                "c", "--name", "net", "-o", folder / "library"])
    return [f"{what}: {why}" for what, why in faults.items() if why]


def main():
    backcast, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] or NETWORKS
    if unknown := [name for name in names if name not in NETWORKS]:
        sys.exit(f"no such network: {', '.join(unknown)}; there are {', '.join(NETWORKS)}")
    folder.mkdir(parents=True, exist_ok=True)
    files = failures = 0
    for name in names:
        for dynamo in (False, True):
            path = folder / f"{name}{'_dynamo' if dynamo else ''}.onnx"
            if refused := export(NETWORKS[name], path, dynamo):
                print(f"{path.name}: {refused}", flush=True)
                continue
            faults = check(backcast, path)
            files += 1
            failures += bool(faults)
            print(f"{path.name}: {'; '.join(faults) or 'runs and trains'}", flush=True)
            path.unlink()
    print(f"{files} files, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
