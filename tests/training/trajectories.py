"""Writes trajectories/NAME/OPTIMIZER.json: 50 training steps in double and in single precision."""

import json

import numpy as np
import torch
from torch import nn

import networks
from gradients import digest

STEPS = 50
RUNS = 6  # in single precision, of networks with batch normalisation


def rate(value):
    """The nearest float: a library takes its learning rate as one."""
    return float(np.float32(value))


SETTINGS = {
    "sgd": {"rate": rate(0.05)},
    "momentum": {"rate": rate(0.01), "momentum": 0.9},
    "nesterov": {"rate": rate(0.01), "momentum": 0.9},
    "adam": {"rate": rate(1e-3), "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    "adamw": {"rate": rate(1e-3), "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
              "weight_decay": 0.01},
}


MOMENTUM = float(np.float32(0.9))  # of running statistics


def make_optimizer(name, parameters):
    settings = SETTINGS[name]
    lr = settings["rate"]
    if name in ("adam", "adamw"):
        kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
        return kind(parameters, lr=lr, betas=(settings["beta1"], settings["beta2"]),
                    eps=settings["epsilon"], weight_decay=settings.get("weight_decay", 0))
    return torch.optim.SGD(parameters, lr=lr, momentum=settings.get("momentum", 0),
                           nesterov=name == "nesterov")


class RunningStatistics:
    """What ONNX's BatchNormalization keeps: old * 0.9 + new * 0.1 with the population's variance,
    0.9 being the nearest float.

    PyTorch's own running variance takes n / (n - 1) of it, so the two differ; gradients do not.
    """

    def __init__(self, module):
        self.values = {}
        for name, layer in module.named_modules():
            if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
                self.values[f"{name}.running_mean"] = np.zeros(layer.num_features)
                self.values[f"{name}.running_var"] = np.ones(layer.num_features)
                layer.register_forward_pre_hook(lambda _, args, name=name: self.update(name, *args))

    def update(self, name, x):
        x = x.detach().double()
        axes = [axis for axis in range(x.ndim) if axis != 1]
        news = {"running_mean": x.mean(axes), "running_var": x.var(axes, correction=0)}
        for kind, new in news.items():
            old = self.values[f"{name}.{kind}"]
            self.values[f"{name}.{kind}"] = MOMENTUM * old + (1 - MOMENTUM) * new.numpy()


def flat_parameters(module):
    return np.concatenate([p.detach().double().numpy().reshape(-1) for p in module.parameters()])


def final_parameters(module):
    return {key: p.detach().double().numpy() for key, p in module.named_parameters()}


def run(name, optimizer_name, dtype, turn=0):
    """(losses, all parameters as one array after every step, module, its running statistics).

    The examples of a batch come in the order turn, turn + 1, …, which changes no sum but its
    rounding.
    """
    module = networks.make(name, dtype)
    statistics = RunningStatistics(module)
    optimizer = make_optimizer(optimizer_name, module.parameters())
    losses, parameters = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs, target = (np.roll(part, -turn, axis=0) for part in networks.batch(name, step))
        loss = networks.loss_of(name, module, inputs, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        parameters.append(flat_parameters(module))
    return losses, parameters, module, statistics


def f32_apart(name, optimizer, exact):
    """The first run in single precision, and the largest distances of RUNS such runs from `exact`:
    of the loss and of all parameters after every step, and of each parameter at the end.

    Rounding is chaotic under batch normalisation: one run may come close by luck.
    """
    losses, parameters, module, _ = exact
    norm = np.linalg.norm
    final = final_parameters(module)
    runs, loss_apart, apart, tensors = [], [], [], []
    batch_norm = any(isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)) for m in module.modules())
    for turn in range(RUNS if batch_norm else 1):
        losses32, parameters32, module32, _ = run(name, optimizer, torch.float32, turn)
        runs.append((losses32, [norm(p) for p in parameters32]))
        loss_apart.append([abs(a - b) for a, b in zip(losses32, losses)])
        apart.append([norm(a - b) / norm(b) for a, b in zip(parameters32, parameters)])
        final32 = final_parameters(module32)
        tensors.append([norm(final32[key] - final[key]) for key in final])
    largest = [np.max(values, axis=0).tolist() for values in (loss_apart, apart, tensors)]
    return runs[0], len(runs), largest[0], largest[1], dict(zip(final, largest[2]))


def with_projections(name, value):
    values = digest(name, value)
    return {"norm": values[0], "projections": values[1:].tolist()}


def trajectory(name, optimizer):
    exact = run(name, optimizer, torch.float64)
    losses, parameters, module, statistics = exact
    (losses32, norms32), runs, loss_apart, apart, tensors_apart = f32_apart(name, optimizer, exact)
    return {
        "model": name, "optimizer": optimizer, **SETTINGS[optimizer],
        "loss": losses,
        "loss_f32": losses32,
        "parameter_norm": [np.linalg.norm(p) for p in parameters],
        "parameter_norm_f32": norms32,
        "runs_f32": runs,
        "loss_distance_f32": loss_apart,
        # |parameters in f32 - parameters in f64| / |parameters in f64| after each step
        "parameter_distance_f32": apart,
        "parameters": {key: {**with_projections(key, value), "f32_distance": tensors_apart[key]}
                       for key, value in final_parameters(module).items()},
        "running": {key: with_projections(key, value) for key, value in statistics.values.items()},
    }


def write(out):
    for name, network in networks.NETWORKS.items():
        if not network.trajectory:
            continue
        folder = out / "trajectories" / name
        folder.mkdir(parents=True, exist_ok=True)
        for optimizer in SETTINGS:
            result = trajectory(name, optimizer)
            text = json.dumps(result, indent=0, default=float)
            (folder / f"{optimizer}.json").write_text(text.replace(",\n", ", ").replace(
                ", \"", ",\n\"") + "\n")
            print(f"trajectories/{name}/{optimizer}: loss {result['loss'][0]:.4f} to "
                  f"{result['loss'][-1]:.4f}, f32 apart {max(result['loss_distance_f32']):.1e} in "
                  f"loss, {max(result['parameter_distance_f32']):.1e} in parameters", flush=True)
