"""Writes losses.json and optimizers.json: values of PyTorch's losses and optimizers in double.

Inputs are seeded and small, so that unit tests can hold them as literals.
"""

import json
import warnings

import torch
from torch.nn import functional

import batches


def values(name, *shape):
    count = int(torch.Size(shape).numel())
    return torch.from_numpy(2 * batches.uniform(f"losses/{name}", 0, count)).reshape(shape)


def cross_entropy_cases():
    """(name, arguments) of cross-entropy on logits [4, 5] and, last, [2, 3, 2, 2]."""
    labels = torch.tensor([1, 4, 0, 3])
    ignoring = torch.tensor([1, -100, 0, 3])
    weight = torch.tensor([0.5, 2.0, 1.0, 0.25, 1.5], dtype=torch.float64)
    probabilities = torch.softmax(values("probabilities", 4, 5), 1)
    yield "plain", {"target": labels}
    yield "sum", {"target": labels, "reduction": "sum"}
    yield "weight", {"target": labels, "weight": weight}
    yield "weight_sum", {"target": labels, "weight": weight, "reduction": "sum"}
    yield "ignore", {"target": ignoring, "ignore_index": -100}
    yield "ignore_own_index", {"target": labels, "ignore_index": 3}
    yield "smoothing", {"target": labels, "label_smoothing": 0.1}
    yield "smoothing_weight_ignore", {
        "target": ignoring, "weight": weight, "label_smoothing": 0.1, "ignore_index": -100}
    yield "probabilities", {"target": probabilities}
    yield "probabilities_weight", {"target": probabilities, "weight": weight}
    yield "probabilities_smoothing", {"target": probabilities, "label_smoothing": 0.1}
    yield "all_ignored_sum", {
        "target": torch.full((4,), -100), "ignore_index": -100, "reduction": "sum"}
    yield "image", {"target": torch.tensor([[[0, 2], [1, 1]], [[2, 2], [0, 1]]])}


def regression_cases():
    """(name, function of (input [3, 4], target), target)."""
    target = values("target", 3, 4)
    zero_one = (values("binary", 3, 4) > 0).double()
    soft = torch.sigmoid(values("soft", 3, 4))
    distribution = torch.softmax(values("distribution", 3, 4), 1)
    yield "bce_with_logits", functional.binary_cross_entropy_with_logits, zero_one, {}
    yield "bce_with_logits", functional.binary_cross_entropy_with_logits, soft, {}
    for reduction in ("mean", "sum"):
        yield "mse", functional.mse_loss, target, {"reduction": reduction}
        yield "l1", functional.l1_loss, target, {"reduction": reduction}
    for delta in (1.0, 0.5, 2.5):
        yield "huber", functional.huber_loss, target, {"delta": delta}
    for reduction in ("batchmean", "mean", "sum"):
        yield "kl_of_log_softmax", kl_of_logits, distribution, {"reduction": reduction}


def kl_of_logits(logits, target, reduction):
    """sum of target * (log target - log_softmax(logits)); batchmean divides by the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about "mean", which divides by all elements
        return functional.kl_div(torch.log_softmax(logits, 1), target, reduction=reduction)


def evaluated(function, inputs, **arguments):
    inputs = inputs.clone().requires_grad_()
    loss = function(inputs, **arguments)
    loss.backward()
    return {"loss": loss.item(), "gradient": inputs.grad.tolist()}


def plain(arguments):
    return {key: value.tolist() if isinstance(value, torch.Tensor) else value
            for key, value in arguments.items()}


def loss_cases():
    cases = []
    for name, arguments in cross_entropy_cases():
        inputs = values("image", 2, 3, 2, 2) if name == "image" else values("logits", 4, 5)
        cases.append({"loss_function": "cross_entropy", "case": name, "input": inputs.tolist(),
                      **plain(arguments),
                      **evaluated(functional.cross_entropy, inputs, **arguments)})
    for name, function, target, arguments in regression_cases():
        inputs = values("input", 3, 4)
        cases.append({"loss_function": name, "input": inputs.tolist(), "target": target.tolist(),
                      **arguments, **evaluated(function, inputs, target=target, **arguments)})
    return cases


# Rates are exact in single precision, in which a library takes them.
OPTIMIZERS = [
    ("sgd", torch.optim.SGD, {"lr": 0.125}),
    ("sgd", torch.optim.SGD, {"lr": 0.125, "weight_decay": 0.05}),
    ("momentum", torch.optim.SGD, {"lr": 0.125, "momentum": 0.9}),
    ("momentum", torch.optim.SGD, {"lr": 0.125, "momentum": 0.9, "weight_decay": 0.05}),
    ("nesterov", torch.optim.SGD, {"lr": 0.125, "momentum": 0.9, "nesterov": True}),
    ("nesterov", torch.optim.SGD,
     {"lr": 0.125, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05}),
    ("adam", torch.optim.Adam, {"lr": 0.125}),
    ("adam", torch.optim.Adam,
     {"lr": 0.125, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.05}),
    ("adamw", torch.optim.AdamW, {"lr": 0.125}),
    ("adamw", torch.optim.AdamW, {"lr": 0.125, "weight_decay": 0.2}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 0.125}),
    ("rmsprop", torch.optim.RMSprop,
     {"lr": 0.125, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.05}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 0.125, "momentum": 0.9}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 0.125, "centered": True}),
    ("adagrad", torch.optim.Adagrad, {"lr": 0.125}),
    ("adagrad", torch.optim.Adagrad,
     {"lr": 0.125, "lr_decay": 0.1, "eps": 1e-3, "initial_accumulator_value": 0.5,
      "weight_decay": 0.05}),
]
CLIPPINGS = [("sgd", torch.optim.SGD, {"lr": 0.125, "clip_value": 0.5}),
             ("sgd", torch.optim.SGD, {"lr": 0.125, "clip_norm": 1.0}),
             ("adam", torch.optim.Adam, {"lr": 0.125, "clip_norm": 1.0})]
STEPS = 5


def quadratic():
    """Two parameters and f(x, y) = sum(a * (x - b)^2) / 2 + sum(c * y^4) / 4 + x_0 * y_0."""
    x = values("x", 2, 3).requires_grad_()
    y = values("y", 4).requires_grad_()
    a = values("a", 2, 3).abs() + 0.5
    b = values("b", 2, 3)
    c = values("c", 4).abs()

    def loss():
        return (a * (x - b) ** 2).sum() / 2 + (c * y**4).sum() / 4 + x[0, 0] * y[0]

    return x, y, {"a": a, "b": b, "c": c}, loss


def optimizer_case(name, kind, settings):
    x, y, constants, loss = quadratic()
    own = {key: value for key, value in settings.items() if not key.startswith("clip_")}
    optimizer = kind([x, y], **own)
    steps = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        result = loss()
        result.backward()
        gradient = {"x": x.grad.tolist(), "y": y.grad.tolist()}
        if "clip_value" in settings:
            torch.nn.utils.clip_grad_value_([x, y], settings["clip_value"])
        if "clip_norm" in settings:
            # 1e-6 is PyTorch's addition to the norm: the factor is min(1, bound / (norm + 1e-6)).
            torch.nn.utils.clip_grad_norm_([x, y], settings["clip_norm"])
        optimizer.step()
        steps.append({"loss": result.item(), "gradient": gradient, "x": x.tolist(),
                      "y": y.tolist()})
    return {"optimizer": name, "settings": settings, "steps": steps}


SCHEDULE_STEPS = 12


def schedule_cases():
    """The learning rate of updates 0, 1, … where 0.125 is the rate set."""
    scheduler = torch.optim.lr_scheduler
    cases = [("constant", {}, lambda o: scheduler.ConstantLR(o, factor=1)),
             ("step", {"every": 3, "factor": 0.5}, lambda o: scheduler.StepLR(o, 3, gamma=0.5)),
             ("cosine", {"total": 11, "least": 0.25},
              lambda o: scheduler.CosineAnnealingLR(o, 11, eta_min=0.03125)),
             # The factor grows by 1 / warmup with every update, from 1 / warmup to 1.
             ("constant", {"warmup": 4},
              lambda o: scheduler.LinearLR(o, start_factor=0.25, total_iters=3))]
    result = []
    for name, settings, make in cases:
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.125)
        schedule, rates = make(optimizer), []
        for _ in range(SCHEDULE_STEPS):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        result.append({"schedule": name, **settings, "rates": rates})
    return result


def dump(path, value):
    """One case per line."""
    if isinstance(value, list):
        text = "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]\n"
    else:
        rows = [f"{json.dumps(key)}: " + (dump_rows(item) if isinstance(item, list)
                                          else json.dumps(item)) for key, item in value.items()]
        text = "{\n" + ",\n".join(rows) + "\n}\n"
    path.write_text(text)


def dump_rows(items):
    if not items or not isinstance(items[0], dict):
        return json.dumps(items)
    return "[\n" + ",\n".join(json.dumps(item) for item in items) + "\n]"


def write(out):
    dump(out / "losses.json", loss_cases())
    x, y, constants, _ = quadratic()
    start = {key: value.tolist() for key, value in {"x": x, "y": y, **constants}.items()}
    cases = [optimizer_case(*case) for case in OPTIMIZERS + CLIPPINGS]
    dump(out / "optimizers.json", {
        "start": start, "cases": cases, "schedules": schedule_cases()})
    print(f"losses.json and optimizers.json: {len(loss_cases())} and {len(cases)} cases")
