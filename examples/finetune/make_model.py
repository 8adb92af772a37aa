"""Makes dscnn.onnx: a DS-CNN that knows ten synthetic words, ready for the device.

  make_model.py [PROGRAM]     PROGRAM: backcast, build/release/bin/backcast unless told

Backcast compiles the network of tests/training to a library that trains, pretrain.c trains with it
on this machine (seconds), and batch normalisation is folded into the convolutions, as exporters do
for inference. Needs gcc, numpy and onnx (requirements of the tests: scripts/python-env).
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NETWORK = ROOT / "tests/training/models/kws.onnx"
STEPS = 300


def pretrained(program, folder):
    """{name: array} of NETWORK's parameters and statistics after training."""
    subprocess.run([program, "compile", NETWORK, "--name", "net", "--train", "--batch", "16",
                    "--optimizer", "adam", "--rate", "0.002", "-o", folder],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["gcc", "-O2", f"-I{folder}", HERE / "words.c", HERE / "pretrain.c",
                    folder / "libnet.a", "-o", folder / "pretrain"], check=True)
    subprocess.run([folder / "pretrain", str(STEPS), folder / "flat.bin"], check=True)
    flat = np.fromfile(folder / "flat.bin", dtype=np.float32)
    result, at = {}, 0
    for initializer in onnx.load(NETWORK).graph.initializer:
        count = int(np.prod(initializer.dims))
        result[initializer.name] = flat[at : at + count].reshape(initializer.dims)
        at += count
    if at != flat.size:
        sys.exit(f"{flat.size} values for {at} elements")
    return result


def folded(graph, values):
    """(nodes, initializers) with every BatchNormalization inside the convolution before it."""
    nodes, weights, renamed = [], {}, {}
    for node in graph.node:
        inputs = [renamed.get(name, name) for name in node.input]
        if node.op_type == "BatchNormalization":
            epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
            gamma, beta, mean, variance = (values[name].astype(np.float64) for name in inputs[1:])
            weight, bias = nodes[-1].input[1:]
            scale = gamma / np.sqrt(variance + epsilon)
            weights[weight] = weights[weight] * scale[:, None, None, None]
            weights[bias] = (weights[bias] - mean) * scale + beta
            renamed[node.output[0]] = nodes[-1].output[0]
            continue
        kept = helper.make_node(node.op_type, inputs, node.output, name=node.name)
        kept.attribute.extend(node.attribute)
        nodes.append(kept)
        for name in inputs:
            if name in values:
                weights[name] = values[name].astype(np.float64)
    return nodes, [numpy_helper.from_array(array.astype(np.float32), name)
                   for name, array in weights.items()]


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/bin/backcast"
    with tempfile.TemporaryDirectory() as folder:
        values = pretrained(program, pathlib.Path(folder))
    source = onnx.load(NETWORK).graph
    nodes, initializers = folded(source, values)
    graph = helper.make_graph(nodes, "dscnn", source.input, source.output, initializers)
    model = helper.make_model(graph, producer_name="finetune/make_model.py",
                              opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, HERE / "dscnn.onnx")
    count = sum(int(np.prod(initializer.dims)) for initializer in initializers)
    print(f"dscnn.onnx: {count} parameters")


if __name__ == "__main__":
    main()
