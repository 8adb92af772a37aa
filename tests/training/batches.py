"""Numbers that every language can repeat: inputs, targets, weights and orders from a counter.

The same rules as batches.h; README.md states them in words. Nothing here needs PyTorch.
"""

import pathlib

import numpy as np

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits"
RECORD = 65  # bytes of one image in examples/digits: 64 pixels, 0 to 16, and the label
CYCLE = 5  # distinct batches of the generated data: step s uses batch s mod CYCLE


def stream(name):
    """The seed of a named stream: FNV-1a, 64 bits."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    return seed


def bits(name, first, count):
    """uint64[count]: the outputs first, first + 1, … of splitmix64 seeded with stream(name)."""
    index = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(stream(name)) + index * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(name, first, count):
    """float64[count] in [-1, 1): multiples of 2^-23, so single precision holds them exactly."""
    return (bits(name, first, count) >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0


def classes(name, first, count, number):
    """int64[count] in [0, number)."""
    return ((bits(name, first, count) >> np.uint64(32)) % np.uint64(number)).astype(np.int64)


def signs(name, k, count):
    """float64[count], +1 or -1: the k-th projection of the tensor called name."""
    odd = bits(f"{name}#{k}", 0, count) >> np.uint64(63)
    return np.where(odd == 0, 1.0, -1.0)


def project(name, array, number=16):
    """float64[number]: sums of array's elements, row by row, under number lists of signs."""
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    return np.array([np.dot(signs(name, k, flat.size), flat) for k in range(number)])


def order(name, count):
    """A permutation of 0 to count - 1: Fisher and Yates from the end, one output each."""
    result = np.arange(count)
    random = bits(name, 0, max(count - 1, 0))
    for step, i in enumerate(range(count - 1, 0, -1)):
        j = int(random[step] % np.uint64(i + 1))
        result[i], result[j] = result[j], result[i]
    return result


def digits(split):
    """(images float64[n,1,8,8] in 0..1, labels int64[n]) of the split "train" or "test"."""
    records = np.fromfile(EXAMPLES / f"digits_{split}.bin", dtype=np.uint8).reshape(-1, RECORD)
    images = records[:, :-1].astype(np.float64).reshape(-1, 1, 8, 8) / 16.0
    return images, records[:, -1].astype(np.int64)


def batch(model, shape, number, step, size=8):
    """Batch of a step: (inputs float64[size, *shape], target).

    number is the count of classes, or None when the target is the input itself.
    """
    if model.startswith("digits_"):
        images, labels = digits("train")
        chosen = slice(step * size, (step + 1) * size)
        return images[chosen].reshape(size, *shape), labels[chosen]
    elements = int(np.prod(shape)) * size
    index = step % CYCLE
    inputs = uniform(f"{model}/input", index * elements, elements).reshape(size, *shape)
    if number is None:
        return inputs, inputs
    return inputs, classes(f"{model}/target", index * size, size, number)
