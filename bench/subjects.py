"""What `profile` and `compare` run: an inference of a model, or a function of a training library."""

import argparse
import os
import pathlib
import re
from array import array

import common
import workers
from areas import training


def add_options(parser):
    parser.add_argument("--emit", choices=("lib", "c"), default="lib")
    parser.add_argument("--compiler", default="gcc", help="for --emit c, with -O3")
    parser.add_argument("--function", default="train_step", help="of a training library")
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    common.add_program_option(parser)


def worker_of(what: str, program: pathlib.Path, folder: pathlib.Path, options: argparse.Namespace):
    """The worker's command for MODEL.onnx or NETWORK:BATCH[:VARIANT], compiled by `program` into
    `folder`, and the entry of the report that it runs. `options`: those above, and `compile`."""
    if re.fullmatch(r"\w+:\d+(:\w+)?", what):
        return training_step(what, program, folder, options)
    return inference(pathlib.Path(what), program, folder, options)


def inference(model, program, folder, options):
    folder = folder / f"{model.resolve().parent.name}-{model.stem}"
    library = common.compile_model(program, model, folder, "m", options.emit,
                                   options=options.compile)
    worker = workers.build_worker(
        library, common.compiler(options.compiler) if options.emit == "c" else None)
    write_inputs(folder / "inputs", library)
    return [worker, folder / "inputs", folder / "outputs"], library.entry


def training_step(what, program, folder, options):
    network, batch, words = training.parts_of(what)
    folder = folder / what.replace(":", "-")
    report = training.compile_library(program, network, batch, options.optimizer, folder,
                                      [*words, *options.compile])
    side = training.side_of(what, folder, options.function)
    return side.command, next(e for e in report["entries"] if e["name"] == options.function)


def write_inputs(path, library):
    """Small positive values: zeros would hide what arithmetic costs, denormals would exaggerate."""
    with open(path, "wb") as stream:
        for tensor in library.inputs:
            if tensor.c_type == "float":
                values = ((i * 2654435761 % 1021) / 1021 for i in range(tensor.bytes // 4))
                stream.write(array("f", values).tobytes())
            else:
                stream.write(bytes(tensor.bytes))
