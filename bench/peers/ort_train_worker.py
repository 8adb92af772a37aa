"""ONNX Runtime's on-device training: ort_train_worker.py NETWORK BATCH LOSS OPTIMIZER MODEL FOLDER.

One thread. The artifacts are generated from MODEL with its batch fixed; a step is the training
graph, the optimizer (SGD, without momentum: it has no other) and the reset of the gradients, on
inputs that are bound beforehand.
"""

import pathlib
import sys
import types

import numpy as np
import onnx
import onnxruntime
import protocol

# The package imports PyTorch, which its training on devices does not need: enter beneath it.
package = types.ModuleType("onnxruntime.training")
package.__path__ = [str(pathlib.Path(onnxruntime.__file__).parent / "training")]
sys.modules["onnxruntime.training"] = onnxruntime.training = package

from onnxruntime.training import api, artifacts  # noqa: E402


def fixed(model, batch):
    """The graph for one batch size; initializers without their gradients' names are trainable."""
    graph = model.graph
    for value in (*graph.input, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "N":
                dim.dim_value = batch
    return model


def trainable(graph):
    """Floating-point initializers, without running statistics; and those."""
    statistics = {name for node in graph.node if node.op_type == "BatchNormalization"
                  for name in node.input[3:5]}
    names = [t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    return [n for n in names if n not in statistics], [n for n in names if n in statistics]


def keep_statistics(graph):
    """The gradient of a layer normalisation takes its mean and inverse deviation: optional results
    that an exporter leaves out."""
    for node in graph.node:
        if node.op_type == "LayerNormalization" and len(node.output) == 1:
            node.output.extend(f"{node.output[0]}/{name}" for name in ("mean", "inverse_deviation"))


def main():
    batch, loss, optimizer, file, folder = sys.argv[2:7]
    if optimizer != "sgd":
        sys.exit("error: its optimizers are SGD without momentum and AdamW")
    onnxruntime.set_default_logger_severity(3)
    protocol.imports_done()
    batch, folder = int(batch), pathlib.Path(folder) / "ort-training"
    folder.mkdir(parents=True, exist_ok=True)
    model = fixed(onnx.load(file), batch)
    keep_statistics(model.graph)
    requires, frozen = trainable(model.graph)
    kind = artifacts.LossType.MSELoss if loss == "mse" else artifacts.LossType.CrossEntropyLoss
    artifacts.generate_artifacts(model, requires_grad=requires, frozen_params=frozen, loss=kind,
                                 optimizer=artifacts.OptimType.SGD,
                                 artifact_directory=str(folder))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    state = api.CheckpointState.load_checkpoint(str(folder / "checkpoint"))
    module = api.Module(str(folder / "training_model.onnx"), state, device="cpu",
                        session_options=options)
    update = api.Optimizer(str(folder / "optimizer_model.onnx"), module)
    update.set_learning_rate(0.001)
    module.train()

    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    target = x if loss == "mse" else np.zeros(batch, np.int64)
    inputs = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in (x, target)]

    def step():
        module(*inputs)
        update.step()
        module.lazy_reset_grad()
    for _ in range(3):
        step()
    protocol.serve(step, version=onnxruntime.__version__)


if __name__ == "__main__":
    main()
