"""The rows of the inference tables and where their ONNX files are.

The reference networks (MLPerf Tiny) and the networks of other benchmarks come from the folder that
BACKCAST_MODELS names; what is not there is written or exported by bench/models.
"""

import sys

import common
import environments

REFERENCE = {"ad": "ad01_fp32", "kws": "kws_fp32", "ic": "resnet8_fp32", "vww": "vww_fp32"}
EXPORTED = ("mobilenetv2", "resnet18", "enc", "lstm")
SURVEY = "survey_"  # what the names of files of the area `survey` begin with
ROWS = ["perceptron", *REFERENCE, *EXPORTED]
# Rows of the inference table that ask the compiler for more: "network:variant" -> its options.
VARIANTS = {"ic:winograd": ["--winograd", "auto"],
            "vww:range": ["--input-range", "-1e6,1e6"],
            "resnet18:winograd": ["--winograd", "auto"]}


def rows_with_variants():
    """The networks' rows, each followed by its variants."""
    return [row for name in ROWS
            for row in (name, *(v for v in VARIANTS if v.partition(":")[0] == name))]


def options_of(row):
    """What `backcast compile` is told beside the model."""
    return VARIANTS.get(row, [])


def written(name):
    """A model of bench/models, made when it is missing."""
    path = common.OUT / "models" / f"{name}.onnx"
    if path.exists():
        return path
    models = common.BENCH / "models"
    if name in EXPORTED:
        common.run_tool([environments.python_of("torch"), models / "export_peers.py", path.parent,
                         name])
    elif name.startswith(SURVEY):
        common.run_tool([environments.python_of("torch"), models / "survey_networks.py",
                         path.parent, name.removeprefix(SURVEY)])
    else:
        common.run_tool([sys.executable, models / "make_models.py", path.parent, name])
    return path


def path_of(row):
    """The file of a row; RuntimeError when there is none."""
    name = row.partition(":")[0]
    folder = common.models_folder()
    if name not in REFERENCE:
        return written(name)
    if folder is None:
        raise RuntimeError("BACKCAST_MODELS is not set, and the reference networks are not part "
                           "of this repository")
    path = folder / REFERENCE[name] / "model.onnx"
    if not path.exists():
        raise RuntimeError(f"{path} is absent")
    return path
