"""Writes digits.json (digits learnt from scratch) and freeze.json (only the last layer learns)."""

import numpy as np
import torch

import batches
import losses
import networks
import trajectories

BATCH = 8
RATE = trajectories.rate(2e-3)
EPOCHS = 12
TARGET = {"digits_cnn": 286, "digits_mlp": 280}  # of 297: at least 96 % and 94 %
FREEZE_STEPS = 50


def correct(module, images, labels):
    with torch.no_grad():
        result = module(torch.from_numpy(images).to(next(module.parameters()).dtype))
    return int((result.argmax(1).numpy() == labels).sum())


def learn(name, dtype):
    """The test images right after each epoch of Adam, and the loss of each epoch's last step."""
    images, labels = batches.digits("train")
    test = batches.digits("test")
    module = networks.make(name, dtype)
    optimizer = torch.optim.Adam(module.parameters(), lr=RATE)
    right, last = [], []
    for epoch in range(EPOCHS):
        order = batches.order(f"digits/epoch/{epoch}", len(labels))
        for start in range(0, len(labels) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            optimizer.zero_grad()
            loss = networks.loss_of(name, module, images[chosen], labels[chosen])
            loss.backward()
            optimizer.step()
        right.append(correct(module, *test))
        last.append(loss.item())
    return right, last


def scratch(name):
    right, last = learn(name, torch.float32)
    right64, last64 = learn(name, torch.float64)
    print(f"digits.json: {name}: right of 297 after each epoch {right}, in double {right64}")
    missed = [epoch + 1 for epoch, count in enumerate(right) if count < TARGET[name]]
    return {"target_right": TARGET[name], "epochs_needed": max(missed, default=0) + 1,
            "right": right, "last_loss": last, "right_f64": right64, "last_loss_f64": last64}


FREEZE = {"digits_mlp": "fc2", "digits_cnn": "fc", "kws": "fc", "enc": "fc"}


def frozen(name, optimizer_name, dtype):
    """The last layer after 50 steps in which nothing else learns."""
    layer = FREEZE[name]
    module = networks.make(name, dtype)
    for key, parameter in module.named_parameters():
        parameter.requires_grad = key.startswith(f"{layer}.")
    trained = [p for p in module.parameters() if p.requires_grad]
    optimizer = trajectories.make_optimizer(optimizer_name, trained)
    steps = []
    for step in range(FREEZE_STEPS):
        optimizer.zero_grad()
        loss = networks.loss_of(name, module, *networks.batch(name, step))
        loss.backward()
        optimizer.step()
        steps.append(loss.item())
    state = {key: value.detach().double().reshape(-1).tolist()
             for key, value in module.named_parameters() if value.requires_grad}
    return steps, state


def freeze_cases():
    cases = []
    for name in FREEZE:
        for optimizer in ("sgd", "adam"):
            steps, state = frozen(name, optimizer, torch.float64)
            steps32, state32 = frozen(name, optimizer, torch.float32)
            distance = {key: float(np.linalg.norm(np.subtract(state[key], state32[key])))
                        for key in state}
            cases.append({"model": name, "optimizer": optimizer, "trainable": f"^{FREEZE[name]}\\.",
                          "loss": steps, "loss_f32": steps32, "parameters": state,
                          "f32_distance": distance})
            print(f"freeze.json: {name}/{optimizer}: loss {steps[0]:.4f} to {steps[-1]:.4f}, "
                  f"f32 apart {max(distance.values()):.1e}")
    return cases


def write(out):
    first = {str(epoch): batches.order(f"digits/epoch/{epoch}", 1500)[:8].tolist()
             for epoch in range(3)}
    losses.dump(out / "digits.json", {
        "optimizer": "adam", "rate": RATE, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
        "batch": BATCH, "images": 297, "first_batch_of_epoch": first,
        **{name: scratch(name) for name in TARGET}})
    losses.dump(out / "freeze.json", freeze_cases())
