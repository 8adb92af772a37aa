"""Trains the digits CNN and MLP in numpy and writes them as ONNX, before and after training.

    python3 train.py [--seed 0] [--out DIR]

Everything random comes from the seed. The number of epochs is fixed beforehand: the test split is
only looked at once, at the end.
"""

import argparse
import os
import pathlib

# One thread, so that sums are taken in the same order on every run.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import network
from digits_data import HERE, load

BATCH = 25
EPOCHS = {"cnn": 30, "mlp": 60}
LEARNING_RATE = 2e-3
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam (Kingma and Ba, 2015) with the learning rate falling linearly to zero."""

    def __init__(self, layers, steps):
        self.layers = network.trainable(layers)
        self.steps = steps
        self.step_index = 0
        self.moments = [
            [np.zeros((2, *getattr(layer, kind).shape)) for kind in ("weight", "bias")]
            for layer in self.layers
        ]

    def step(self):
        rate = LEARNING_RATE * (1 - self.step_index / self.steps)
        self.step_index += 1
        correction1 = 1 - BETA1**self.step_index
        correction2 = 1 - BETA2**self.step_index
        for layer, layer_moments in zip(self.layers, self.moments):
            for kind, (mean, variance) in zip(("weight", "bias"), layer_moments):
                gradient = getattr(layer, f"{kind}_grad")
                mean += (1 - BETA1) * (gradient - mean)
                variance += (1 - BETA2) * (gradient**2 - variance)
                update = rate * (mean / correction1)
                update /= np.sqrt(variance / correction2) + EPSILON
                setattr(layer, kind, getattr(layer, kind) - update)


def cross_entropy(logits, labels):
    """Mean softmax cross-entropy and its gradient with respect to the logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probability = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    gradient = np.exp(log_probability)
    gradient[rows, labels] -= 1
    return -log_probability[rows, labels].mean(), gradient / len(labels)


def correct(layers, images, labels):
    return int((network.forward(layers, images).argmax(axis=1) == labels).sum())


def train(layers, images, labels, epochs, rng):
    optimizer = Adam(layers, epochs * (len(images) // BATCH))
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        total = 0.0
        for start in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            loss, gradient = cross_entropy(network.forward(layers, images[batch]), labels[batch])
            network.backward(layers, gradient)
            optimizer.step()
            total += loss * len(batch)
        print(f"  epoch {epoch + 1:2d}  loss {total / len(images):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    train_images, train_labels = load("train")
    test_images, test_labels = load("test")
    for index, (name, make) in enumerate((("cnn", network.make_cnn), ("mlp", network.make_mlp))):
        rng = np.random.default_rng([options.seed, index])
        layers = make(rng)
        print(f"{name}: {network.parameter_count(layers)} parameters")
        network.export(layers, f"digits_{name}", options.out / f"digits_{name}_untrained.onnx", "N")
        before = correct(layers, test_images, test_labels)
        train(layers, train_images, train_labels, EPOCHS[name], rng)
        network.export(layers, f"digits_{name}", options.out / f"digits_{name}.onnx")
        print(f"  train {correct(layers, train_images, train_labels)}/{len(train_labels)}, "
              f"test {correct(layers, test_images, test_labels)}/{len(test_labels)} "
              f"(untrained {before}/{len(test_labels)})")


if __name__ == "__main__":
    main()
