"""Writes models/NAME.onnx in training mode, the large initial weights as weights.bin,
models/merged.onnx in evaluation mode, and models/digits_cnn_f16.onnx."""

import io
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, numpy_helper

import networks

OPSET = 17


def exported(name):
    """The ONNX form with a symbolic batch N, as PyTorch's exporter leaves it in training mode."""
    network = networks.NETWORKS[name]
    module = networks.make(name, torch.float32)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, (torch.zeros(8, *network.shape),), buffer, dynamo=False, opset_version=OPSET,
            training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
            keep_initializers_as_inputs=False, input_names=[network.input],
            output_names=[network.output],
            dynamic_axes={network.input: {0: "N"}, network.output: {0: "N"}},
        )
    return onnx.load_from_string(buffer.getvalue())


def tidied(name, model):
    """Initial weights put back (tracing moves running statistics), large ones made external."""
    weights = networks.initial_weights(name)
    order = list(weights)
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            array, offset = weights[tensor.name]
        else:
            array = np.zeros if tensor.name.endswith("running_mean") else np.ones
            array, offset = array(tuple(tensor.dims), np.float32), None
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        if offset is not None:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "weights.bin"), ("offset", offset),
                               ("length", array.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
    # Parameters in the order of PyTorch's modules, then the running statistics.
    tensors = sorted(model.graph.initializer,
                     key=lambda t: order.index(t.name) if t.name in weights else len(order))
    del model.graph.initializer[:]
    model.graph.initializer.extend(tensors)
    missing = set(weights) - {t.name for t in tensors}
    if missing:
        raise RuntimeError(f"{name}: the exporter lost {sorted(missing)}")
    model.producer_version = ""
    return model


class Residual(torch.nn.Module):
    """x + convolution(relu(normalisation(x))), twice: nothing can be folded into a convolution."""

    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(4) for _ in range(2))
        self.convolutions = torch.nn.ModuleList(torch.nn.Conv2d(4, 4, 3, padding=1)
                                                for _ in range(2))
        for k, parameter in enumerate(self.convolutions.parameters()):
            values = torch.linspace(-0.5, 0.4, parameter.numel()) + 0.01 * k
            parameter.data = values.reshape(parameter.shape)

    def forward(self, x):
        for norm, convolution in zip(self.norms, self.convolutions):
            x = x + convolution(torch.relu(norm(x)))
        return x


def merged():
    """In evaluation mode before any training: the exporter merges whatever has equal values."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Residual().eval(), (torch.zeros(8, 4, 6, 6),), buffer, dynamo=False,
                          opset_version=OPSET, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
    model = onnx.load_from_string(buffer.getvalue())
    model.producer_version = ""
    return model


def halved(path):
    """The network of a file with weights, input and output in f16."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def write(out):
    folder = out / "models"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.bin").write_bytes(
        b"".join(networks.band(exponent).tobytes() for exponent in networks.BANDS))
    for name in networks.NETWORKS:
        path = folder / f"{name}.onnx"
        path.write_bytes(tidied(name, exported(name)).SerializeToString(deterministic=True))
        onnx.checker.check_model(str(path), full_check=True)
        graph = onnx.load(path, load_external_data=False).graph
        print(f"models/{name}.onnx: {len(graph.node)} nodes, {path.stat().st_size} bytes")
    path = folder / "merged.onnx"
    path.write_bytes(merged().SerializeToString(deterministic=True))
    onnx.checker.check_model(str(path), full_check=True)
    path = folder / "digits_cnn_f16.onnx"
    path.write_bytes(halved(folder / "digits_cnn.onnx").SerializeToString(deterministic=True))
    onnx.checker.check_model(str(path), full_check=True)
