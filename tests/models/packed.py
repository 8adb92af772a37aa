"""Weights of 2, 4 and 8 bits in blocks with a scale each, as language models are shrunk to."""

import numpy as np
from onnx import TensorProto, helper

from fused import WORDS
from graph_builder import GraphBuilder

STEPS, WIDTH, WIDER = 3, 80, 112  # 80 is two blocks of 32 and a rest


def packed(values, bits):
    """u8: [..., n] values below 2^bits -> [..., ceil(n bits / 8)], the first in the lowest bits."""
    per_byte = 8 // bits
    rest = -values.shape[-1] % per_byte
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, rest)])
    parts = padded.reshape(*values.shape[:-1], -1, per_byte)
    return (parts << (bits * np.arange(per_byte))).sum(-1).astype(np.uint8)


def weights():
    """A network of every form of such weights: a table, products with zero points that are packed,
    floats or none, a rest of a block, ONNX's own int4, scales that two share."""
    g = GraphBuilder("packed_weights", seed=47, opset=21)

    def integers(shape, bits):
        return g.rng.integers(0, 2**bits, shape)

    def scales(name, *shape):
        return g.constant(name, g.rng.uniform(0.5, 1.5, shape).astype(np.float32) / 64)

    def product(name, x, inputs, outputs, bits=4, block=32, zeros="none", bias=False):
        blocks = -(-inputs // block)
        points = ""
        if zeros == "packed":
            points = g.constant(f"{name}.zeros", packed(integers((outputs, blocks), bits), bits))
        elif zeros == "floats":
            middle = g.rng.uniform(6, 9, (outputs, blocks)).astype(np.float32)
            points = g.constant(f"{name}.zeros", middle)
        values = packed(integers((outputs, blocks, block), bits), bits)
        operands = [x, g.constant(f"{name}.weight", values),
                    scales(f"{name}.scales", outputs, blocks), points, "",
                    g.vector(f"{name}.bias", outputs) if bias else ""]
        while not operands[-1]:
            operands.pop()
        return g.fused("MatMulNBits", name, operands, K=inputs, N=outputs, bits=bits,
                       block_size=block)

    def dequantised(name, inputs, outputs, block):
        """int4[inputs, outputs] in blocks along the first axis."""
        values = packed(integers(inputs * outputs, 4), 4)
        g.initializers.append(helper.make_tensor(name, TensorProto.INT4, [inputs, outputs],
                                                 values.tobytes(), raw=True))
        return g.node("DequantizeLinear", f"{name}.float",
                      [name, scales(f"{name}.scales", inputs // block, outputs)], axis=0,
                      block_size=block)

    def normalised(name, x):
        return g.node("LayerNormalization", name, [x, g.vector(f"{name}.scale", WIDTH, 0.5, 1.5)])

    words = [g.constant("words", packed(integers((WORDS, WIDTH), 4), 4)),
             scales("words.scales", WORDS, WIDTH // 16)]
    zeros = g.constant("words.zeros", packed(integers((WORDS, WIDTH // 16), 4), 4))
    ids = g.input("ids", ["N", STEPS], TensorProto.INT32)
    x = g.fused("GatherBlockQuantized", "embedded", [words[0], ids, words[1], zeros], bits=4,
                block_size=16, gather_axis=0, quantize_axis=1)
    x = normalised("first", x)
    gate = product("gate", x, WIDTH, WIDER, zeros="packed")
    gate = g.fused("QuickGelu", "swish", [gate], alpha=1.0)
    up = product("up", x, WIDTH, WIDER, bias=True)
    y = g.node("Mul", "gated", [gate, up])
    y = product("down", y, WIDER, WIDTH, block=16, zeros="floats")
    x = normalised("second", g.node("Add", "added", [x, y]))
    y = g.node("MatMul", "onnx", [x, dequantised("onnx.weight", WIDTH, 64, 16)])
    y = product("two", g.node("Relu", "relu", [y]), 64, WIDTH, bits=2, zeros="packed")
    y = product("eight", g.node("Tanh", "tanh", [y]), WIDTH, WIDTH, bits=8, block=16)
    x = normalised("third", g.node("Add", "added_again", [x, y]))
    scores = g.fused("MatMulNBits", "scores_of_words", [x, g.constant(
        "scores.weight", packed(integers((WORDS, WIDTH // 16, 16), 4), 4)), words[1]],
        "scores", K=WIDTH, N=WORDS, bits=4, block_size=16)
    g.output(scores, ["N", STEPS, WORDS])
    return g.model()
