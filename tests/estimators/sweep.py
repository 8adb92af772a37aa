"""Converts fitted estimators to ONNX and holds what Backcast computes of each against ONNX Runtime.
Prints a line per file; exit status 1 when one fails.

    sweep.py BACKCAST FOLDER [NAME...]

What an estimator, its converter or ONNX Runtime refuses is named and does not count."""

import pathlib
import sys
import warnings

import lightgbm
import numpy as np
import onnx
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as BoostedType
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType

from estimators import all_cases

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_reference import fault_of_results, session_of, write_data

OPSETS = {"": 17, "ai.onnx.ml": 3}
ROUNDING = 1e-5  # of the largest result
EXAMPLES = 7


def has_classes(fitted):
    return hasattr(fitted, "classes_")


def convert(case, maps):
    fitted = case.estimator
    shape = [None, case.x.shape[1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library, to in ((xgboost, onnxmltools.convert_xgboost),
                            (lightgbm, onnxmltools.convert_lightgbm)):
            if type(fitted).__module__.startswith(library.__name__):
                return to(fitted, initial_types=[("X", BoostedType(shape))],
                          target_opset=15)
        options = {id(fitted): {"zipmap": maps}} if has_classes(fitted) else None
        return to_onnx(fitted, initial_types=[("X", FloatTensorType(shape))], options=options,
                       target_opset=OPSETS)


def as_numbers(result, case):
    """Maps as their columns, and words as their numbers."""
    if isinstance(result, list):
        result = np.array([list(row.values()) for row in result], np.float32)
    if result.dtype.kind in "OU":
        result = np.searchsorted(np.unique(case.y), result.astype(str)).astype(np.int64)
    return result


def noise_of(case, result):
    """How far single precision takes a regression from double."""
    if not hasattr(case.estimator, "predict") or has_classes(case.estimator):
        return 0.0
    exact = case.estimator.predict(case.x[:EXAMPLES].astype(np.float64))
    return float(np.abs(exact.reshape(result.shape) - result).max())


def check(backcast, folder, name, case, maps):
    """What went wrong, or None; raises what the estimator or its converter raises."""
    model = convert(case, maps)
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = EXAMPLES
    folder = folder / (f"{name}_maps" if maps else name)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    onnx.save(model, path)
    feeds = {"X": case.x[:EXAMPLES]}
    results = [as_numbers(result, case)
               for result in session_of(path, "ORT_DISABLE_ALL").run(None, feeds)]
    names = [output.name for output in model.graph.output]
    write_data(folder, feeds, dict(zip(names, results)))
    largest = max(float(np.abs(result).max()) for result in results)
    tolerance = ROUNDING * max(largest, 1) + 4 * noise_of(case, results[0])
    return fault_of_results(backcast, path, folder, tolerance)


def main():
    cases = all_cases()
    backcast, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] or cases
    if unknown := [name for name in names if name not in cases]:
        sys.exit(f"no such estimator: {', '.join(unknown)}; there are {', '.join(cases)}")
    files = failures = 0
    for name in names:
        for maps in (False, True):
            try:
                if not maps:
                    cases[name].fit()
                elif not has_classes(cases[name].estimator):
                    continue
                fault = check(backcast, folder, name, cases[name], maps)
            except Exception as error:  # of many kinds
                print(f"{name}: not converted or run: {type(error).__name__}", flush=True)
                break
            files += 1
            failures += fault is not None
            print(f"{name}{' with maps' if maps else ''}: {fault or 'agrees'}", flush=True)
    print(f"{files} files, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
