"""Makes dscnn_int8.onnx: dscnn.onnx in 8-bit integers, calibrated with the words it knows.

  quantise.py

Needs gcc, numpy, onnx and onnxruntime, whose quantiser it is.
"""

import ctypes
import pathlib
import subprocess
import tempfile

import numpy as np
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                      quantize_static)

HERE = pathlib.Path(__file__).resolve().parent
UTTERANCES = 200  # of the ten known words, those that pretrain.c begins with
KNOWN_WORDS, SHAPE = 10, (1, 1, 49, 10)


class Words(CalibrationDataReader):
    """Utterances as words.c makes them."""

    def __init__(self, folder):
        library = folder / "words.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", HERE / "words.c", "-o", library],
                       check=True)
        self.make_word = ctypes.CDLL(library).make_word
        self.number = 0

    def get_next(self):
        if self.number == UTTERANCES:
            return None
        image = np.empty(SHAPE, np.float32)
        self.make_word(self.number % KNOWN_WORDS, self.number,
                       image.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
        self.number += 1
        return {"input": image}


def main():
    with tempfile.TemporaryDirectory() as name:
        quantize_static(HERE / "dscnn.onnx", HERE / "dscnn_int8.onnx", Words(pathlib.Path(name)),
                        quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8)


if __name__ == "__main__":
    main()
