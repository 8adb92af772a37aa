"""Draws the loss of every training step: draw_losses.py PICTURE.svg NAME=LOSSES…

LOSSES are files of float32, one per step, as learn_device.c writes them.
"""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "losses"  # the same losses give the same file
matplotlib.rcParams["svg.fonttype"] = "none"
import matplotlib.pyplot as plt
import numpy as np

STEPS_PER_EPOCH = 1500 // 8
WINDOW = 20  # steps of the running mean


def main():
    picture, curves = pathlib.Path(sys.argv[1]), sys.argv[2:]
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    for index, curve in enumerate(curves):
        name, path = curve.split("=", 1)
        losses = np.fromfile(path, dtype="<f4").astype(np.float64)
        steps = np.arange(1, len(losses) + 1)
        total = np.concatenate([[0], np.cumsum(losses)])
        first = np.maximum(steps - WINDOW, 0)
        axes.plot(steps, losses, color=f"C{index}", alpha=0.25, linewidth=0.8)
        axes.plot(steps, (total[steps] - total[first]) / (steps - first), color=f"C{index}",
                  linewidth=2, label=name)
        for end in steps[STEPS_PER_EPOCH - 1::STEPS_PER_EPOCH]:
            axes.axvline(end, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel=f"step of 8 images (lines: epochs of {STEPS_PER_EPOCH} steps)",
             ylabel="cross-entropy", yscale="log",
             title="Digits learnt on a Cortex-M4 from untrained weights")
    axes.legend(title=f"mean of {WINDOW} steps")
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
