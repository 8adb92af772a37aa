"""Writes gradients/NAME/test_data_set_0: one batch, its loss and the gradient of every parameter.

All in double. A gradient of at most FULL elements is stored whole; of a larger one its norm and 16
projections (README.md says how the two are compared).
"""

import shutil

import numpy as np
import torch
from onnx import numpy_helper

import batches
import networks

FULL = 4096


def write_tensor(path, name, array):
    tensor = numpy_helper.from_array(np.array(array, order="C"), name)
    path.write_bytes(tensor.SerializeToString(deterministic=True))


def digest(name, array):
    """float64[17]: the norm and the 16 projections of the tensor called name."""
    array = np.asarray(array, np.float64)
    return np.concatenate([[np.linalg.norm(array.reshape(-1))], batches.project(name, array)])


def write(out):
    for name in networks.NETWORKS:
        folder = out / "gradients" / name / "test_data_set_0"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        inputs, target = networks.batch(name, 0)
        module = networks.make(name, torch.float64)
        loss = networks.loss_of(name, module, inputs, target)
        loss.backward()
        network = networks.NETWORKS[name]
        write_tensor(folder / "input_0.pb", network.input, inputs.astype(np.float32))
        target = target if network.classes else target.astype(np.float32)
        write_tensor(folder / "target.pb", "target", target)
        write_tensor(folder / "loss.pb", "loss", np.float64(loss.item()))
        total = 0.0
        for key, parameter in module.named_parameters():
            gradient = parameter.grad.numpy()
            total += float((gradient**2).sum())
            if gradient.size <= FULL:
                write_tensor(folder / f"gradient_{key}.pb", key, gradient)
            else:
                write_tensor(folder / f"digest_{key}.pb", key, digest(key, gradient))
        print(f"gradients/{name}: loss {loss.item():.6f}, norm {total**0.5:.6g}")
