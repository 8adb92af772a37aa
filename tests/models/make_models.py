"""Writes the test models and their data: NAME/model.onnx, NAME/test_data_set_K/{input,output}_J.pb.

    python3 make_models.py [--out DIR]

Weights and inputs come from fixed seeds; the expected outputs are ONNX Runtime's, unoptimised and
on one thread. Needs the packages of examples/digits/requirements.txt.
"""

import argparse
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import fused
import networks

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples" / "digits"
BATCHES = (1, 3, 8, 2)  # what a symbolic batch is in data sets 0 to 3
LENGTHS = {"any_length": (1, 37, 64, 14)}  # what N is instead

# Models that onnx 1.22.0's evaluator cannot judge: it gets SAME_LOWER's width wrong in quirks, and
# refuses negative pads and a grouped ConvTranspose with output_padding; it has no fused operators,
# and no GRU of two directions.
BEYOND_REFERENCE = {"quirks", "fused_cnn", "fused_transformer", "fused_decoder",
                    "classical", "any_length", "packed_weights"}


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def random_inputs(name, model):
    """One list of inputs per data set, standard normal or tokens, seeded by the model's name."""
    rng = np.random.default_rng(list(name.encode()))

    def random(tensor, batch):
        shape = [d.dim_value if d.HasField("dim_value") else batch for d in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.INT32:
            return rng.integers(0, fused.WORDS, shape).astype(np.int32)
        return rng.standard_normal(shape).astype(np.float32)

    for batch in LENGTHS.get(name, BATCHES):
        yield [random(value.type.tensor_type, batch) for value in model.graph.input]


def digit_inputs(count):
    """The first images of the digits test split, f32[1,1,8,8] in 0..1."""
    records = np.fromfile(DIGITS / "digits_test.bin", dtype=np.uint8).reshape(-1, 65)[:count]
    for record in records:
        yield [(record[:64].astype(np.float32) / np.float32(16)).reshape(1, 1, 8, 8)]


def write_tensor(path, name, array):
    path.write_bytes(numpy_helper.from_array(np.ascontiguousarray(array), name).SerializeToString())


def write_model(out, name, model, input_sets):
    """Writes one folder; returns the largest difference from ONNX's reference evaluator."""
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    session = session_of(model)
    input_names = [value.name for value in model.graph.input]
    output_names = [value.name for value in model.graph.output]
    worst = 0.0
    for index, inputs in enumerate(input_sets):
        feeds = dict(zip(input_names, inputs))
        outputs = session.run(output_names, feeds)
        data = folder / f"test_data_set_{index}"
        data.mkdir()
        for position, (key, array) in enumerate(zip(input_names, inputs)):
            write_tensor(data / f"input_{position}.pb", key, array)
        for position, (key, array) in enumerate(zip(output_names, outputs)):
            assert np.all(np.isfinite(array)) and array.std() > 1e-3, f"{name}: dull output {key}"
            write_tensor(data / f"output_{position}.pb", key, array)
        if name not in BEYOND_REFERENCE:
            for ours, theirs in zip(outputs, ReferenceEvaluator(model).run(None, feeds)):
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
                worst = max(worst, float(np.abs(ours - theirs).max()))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    options = parser.parse_args()
    models = {name: make() for name, make in networks.ALL.items()}
    models["digits_cnn"] = onnx.load(DIGITS / "digits_cnn.onnx")
    for name, model in sorted(models.items()):
        inputs = digit_inputs(4) if name == "digits_cnn" else random_inputs(name, model)
        worst = write_model(options.out, name, model, inputs)
        judged = "not judged by" if name in BEYOND_REFERENCE else f"within {worst:.1e} of"
        print(f"{name:18s} {len(model.graph.node):3d} nodes, "
              f"{len(model.SerializeToString()):6d} bytes, {judged} the reference evaluator")


if __name__ == "__main__":
    main()
