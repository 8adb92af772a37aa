"""Exports Keras networks to ONNX, as Keras does and by way of TensorFlow Lite in float and int8,
holds what Backcast computes of each, and of what ONNX Runtime's optimiser makes of it, against ONNX
Runtime, and compiles those in float for training. Prints a line per file; exit status 1 when one
fails, whose files stay in the folder.

    sweep.py BACKCAST FOLDER [NAME...]

Files that Keras, a converter or ONNX Runtime refuses are named and do not count."""

import multiprocessing
import os
import pathlib
import sys

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0",
               "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"}

import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx

from networks import NETWORKS

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from network_sweep import as_trained, inputs_of, sweep, write_reference
from onnx_reference import silence

OPSET = 17
STEP = 1 / 32  # of inputs that are int8


def example(model, seed):
    x, = model.inputs
    shape = [1, *x.shape[1:]]
    generator = np.random.default_rng(seed)
    if x.dtype == "int32":
        words = generator.integers(1, 10, shape)
        words[:, shape[1] * 2 // 3:] = 0
        return words.astype(np.int32)
    return generator.standard_normal(shape).astype(np.float32)


def enliven(model):
    generator = np.random.default_rng(5)
    for variable in model.weights:
        if len(variable.shape) == 1 and str(variable.dtype) == "float32":
            variable.assign(as_trained(variable.path, variable.numpy(), generator))


def lite(model, quantised):
    x = example(model, 0)
    one = keras.Input(batch_shape=x.shape, dtype=x.dtype)  # of any batch, loops are not converted
    converter = tf.lite.TFLiteConverter.from_keras_model(keras.Model(one, model(one)))
    if quantised:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([example(model, seed)] for seed in range(8))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_output_type = tf.int8
        if x.dtype == np.float32:
            converter.inference_input_type = tf.int8
    return converter.convert()


def by_way_of_lite(quantised):
    def convert(model, path):
        file = path.with_suffix(".tflite")
        file.write_bytes(lite(model, quantised))
        tf2onnx.convert.from_tflite(str(file), opset=OPSET, output_path=str(path))
        file.unlink()
    return convert


FORMS = {
    "": lambda model, path: model.export(str(path), format="onnx", verbose=False),
    "_lite": by_way_of_lite(False),
    "_int8": by_way_of_lite(True),
}


def feeds_of(path, x):
    """The first input is x; a converter may leave others, of constants that it folded."""
    first, *unused = inputs_of(path)
    if first.type.tensor_type.elem_type == onnx.TensorProto.INT8:
        x = (x / STEP).round().clip(-128, 127).astype(np.int8)
    shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
              for value in unused}
    return {first.name: x} | {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


def write_model(make, form, path):
    keras.utils.set_random_seed(1)
    try:
        with silence():
            model = make()
            x = example(model, 99)
            model(x)
            enliven(model)
            FORMS[form](model, path)
    except Exception as error:  # converters raise all kinds
        return f"not exported: {type(error).__name__}"
    return write_reference(path, feeds_of(path, x))


def export(*arguments):
    """In a process of its own: some conversions end in a segmentation fault."""
    context = multiprocessing.get_context("fork")  # TensorFlow takes seconds to load
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(write_model(*arguments)))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return "not exported: the process ended"
    finally:
        process.join()


if __name__ == "__main__":
    sys.exit(sweep(NETWORKS, FORMS, export, trains=lambda network, form: form != "_int8"))
