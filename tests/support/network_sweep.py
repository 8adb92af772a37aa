"""Sweeps over networks that another program exports: a reference beside each file, what Backcast
computes of it and of what ONNX Runtime's optimiser makes of it, and whether it compiles for
training."""

import pathlib
import shutil
import sys

import numpy as np
import onnx

from onnx_reference import fault_of, fault_of_results, optimise, run_in_both_ways, write_data

ROUNDING = 1e-5  # of results near 1, beside what is measured
MOST_STEPS = 8   # of bytes
FLAT = 1e-3      # results that lie this close together tell nothing


def as_trained(name, value, generator):
    """A bias or statistic as training leaves it: without, signals of deep networks fade and a
    result tells nothing."""
    moved = value + 0.2 * generator.standard_normal(value.shape)
    return abs(moved) if "variance" in name else moved


def inputs_of(path):
    """What a caller has to give: constants may be listed among the inputs."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {initializer.name for initializer in graph.initializer}
    return [value for value in graph.input if value.name not in constants]


def moved_by_steps(array):
    """Few integers changed by one."""
    if array.dtype != np.int8:
        return array
    moved = array.copy()
    moved.reshape(-1)[::1009] ^= 1
    return moved


def largest_difference(runs):
    first, *others = [[np.asarray(result, float) for result in run] for run in runs]
    return max(abs(a - b).max() for run in others for a, b in zip(first, run))


def write_reference(path, feeds):
    """Inputs and ONNX Runtime's outputs as a data set, its optimised form, and as text how far
    results are from those of this form, or of bytes that are one step away: untrained networks may
    amplify rounding. Why not, or None."""
    try:
        runs = run_in_both_ways(path, feeds)
        if any(x.dtype == np.int8 for x in feeds.values()):
            runs += run_in_both_ways(path, {k: moved_by_steps(x) for k, x in feeds.items()})
    except Exception as error:  # of several kinds
        return f"not run by ONNX Runtime: {type(error).__name__}"
    if all(result.size > 1 and np.ptp(result.astype(float)) < FLAT for result in runs[0]):
        return "all results are the same"
    folder = path.with_suffix("")
    outputs = [value.name for value in onnx.load(path, load_external_data=False).graph.output]
    write_data(folder, feeds, dict(zip(outputs, runs[0])))
    (folder / "noise").write_text(str(largest_difference(runs)))
    optimise(path, folder / "optimised.onnx")
    return None


def faults_of(backcast, path, trains, options):
    folder = path.with_suffix("")
    noise = float((folder / "noise").read_text())

    def verified(model):
        steps = min(1 + round(noise), MOST_STEPS)
        return fault_of_results(backcast, model, folder, ROUNDING + 4 * noise, steps, options)

    faults = {"run": verified(path)}
    optimised = folder / "optimised.onnx"
    if optimised.exists():
        faults["optimised"] = verified(optimised)
    if trains:
        faults["train"] = fault_of([backcast, "compile", path, "--train", "--loss", "mse", "--emit",
                                    "c", "--name", "net", "-o", folder / "library", *options])
    return [f"{what}: {why}" for what, why in faults.items() if why]


def sweep(networks, forms, export, trains=lambda network, form: True,
          options=lambda network, form: []):
    """Of the command's arguments BACKCAST FOLDER [NAME...]: a line per file. `export(network, form,
    path)` writes file and reference, or says why not; `options` are Backcast's. The exit status."""
    backcast, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] or networks
    if unknown := [name for name in names if name not in networks]:
        sys.exit(f"no such network: {', '.join(unknown)}; there are {', '.join(networks)}")
    folder.mkdir(parents=True, exist_ok=True)
    files = failures = 0
    for name in names:
        for form in forms:
            path = folder / f"{name}{form}.onnx"
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)
            if refused := export(networks[name], form, path):
                print(f"{path.name}: {refused}", flush=True)
                path.unlink(missing_ok=True)
                continue
            learns = trains(networks[name], form)
            faults = faults_of(backcast, path, learns, options(networks[name], form))
            files += 1
            failures += bool(faults)
            does = "runs and trains" if learns else "runs"
            print(f"{path.name}: {'; '.join(faults) or does}", flush=True)
            if not faults:
                path.unlink()
                shutil.rmtree(path.with_suffix(""))
    print(f"{files} files, {failures} failures")
    return 1 if failures else 0
