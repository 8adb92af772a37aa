"""Reads digits_train.bin and digits_test.bin: 65-byte records, 64 pixels (0..16) and a label."""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PIXELS = 64
RECORD = PIXELS + 1


def load(split):
    """Returns (images f32[n,1,8,8] in 0..1, labels int64[n]) of the split "train" or "test"."""
    raw = np.fromfile(HERE / f"digits_{split}.bin", dtype=np.uint8)
    if raw.size == 0 or raw.size % RECORD:
        raise ValueError(f"digits_{split}.bin: {raw.size} bytes are no multiple of {RECORD}")
    records = raw.reshape(-1, RECORD)
    images = records[:, :PIXELS].astype(np.float32).reshape(-1, 1, 8, 8) / np.float32(16)
    return images, records[:, PIXELS].astype(np.int64)
