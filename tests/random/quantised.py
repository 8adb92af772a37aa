"""Random quantised networks. Scales are powers of two and sums stay below 2^24 units, so that every
way of computing them is exact, in single precision as in integers: results are the same bits."""

import math

import numpy as np
from onnx import numpy_helper

import networks

# May stay without a scale of their own.
FREELY = ["Transpose", "Reshape", "Flatten", "Slice", "Pad", "Concat", "Gather", "Resize",
          "MaxPool", "GlobalMaxPool", "DepthToSpace", "SpaceToDepth"]
MOST_FACTORS = 400  # of a sum: 400 · 255 · 127 < 2^24


class Quantised(networks.Network):
    """`origin` has what a dequantised tensor was made of: (integers, scale, zero point)."""

    def __init__(self, seed):
        super().__init__(seed)
        self.origin = {}
        self.value = self.quantised("x")

    # --- numbers ----------------------------------------------------------------------------------

    def dequantised(self, integers, scale, zero, **attributes):
        name = super().node("DequantizeLinear", [integers, scale, zero], **attributes)
        self.origin[name] = (integers, scale, zero)
        return name

    def scale_and_zero(self):
        scale = self.constant(2.0 ** -self.rng.choice([4, 5, 5, 6]))
        if self.rng.random() < 0.5:
            return scale, self.constant(np.uint8(self.rng.choice([0, 100, 128, 131])))
        return scale, self.constant(np.int8(self.rng.choice([0, 0, -128, 5])))

    def quantised(self, value):
        scale, zero = self.scale_and_zero()
        return self.dequantised(super().node("QuantizeLinear", [value, scale, zero]), scale, zero)

    def weights(self, *shape, fan_in=None):
        fan_in = fan_in or math.prod(shape[1:])
        integers = np.clip(np.rint(40 * self.numpy.standard_normal(shape)), -127, 127)
        exponent = math.floor(math.log2(1.2 / 40 / math.sqrt(max(1, fan_in))))
        if len(shape) == 4 and self.rng.random() < 0.4:  # a scale per result
            exponents = exponent + self.numpy.integers(-1, 2, shape[0])
            zero = self.constant(np.zeros(shape[0], np.int8))
            return self.dequantised(self.constant(integers.astype(np.int8)),
                                    self.constant(2.0 ** exponents), zero, axis=0)
        kind, middle = self.rng.choice([(np.int8, 0), (np.int8, 0), (np.uint8, 128)])
        return self.dequantised(self.constant((integers + middle).astype(kind)),
                                self.constant(2.0 ** exponent), self.constant(kind(middle)))

    def around(self, center, count):
        integers = np.rint(2.0 ** 14 * (center + 0.3 * self.numpy.standard_normal(count)))
        return self.dequantised(self.constant(integers.astype(np.int32)),
                                self.constant(2.0 ** -14), self.constant(np.int32(0)))

    # --- nodes ------------------------------------------------------------------------------------

    def node(self, operator, inputs, shape=None, **attributes):
        """Operators that round give place to like ones that do not, and results are quantised."""
        operator, attributes = exact(operator, attributes)
        if operator in ("Conv", "MatMul") and self.rng.random() < 0.3:
            output = self.whole_operator(operator, inputs, attributes)
        else:
            output = super().node(operator, inputs, **attributes)
            if operator not in FREELY and self.rng.random() < 0.4:
                output = super().node(self.rng.choice(["Relu", "Relu", "Abs", "Neg"]), [output])
            if operator not in FREELY or self.rng.random() < 0.5:
                output = self.quantised(output)
        if shape is not None:
            self.earlier.append((self.value, self.shape))
            self.value, self.shape = output, list(shape)
        return output

    def whole_operator(self, operator, inputs, attributes):
        """QLinearConv or QLinearMatMul, of operands that ONNX Runtime has them for."""
        operands = [self.origin.get(name) or self.origin[self.quantised(name)]
                    for name in inputs[:2]]
        x, y = (self.kind(zero) for _, _, zero in operands)
        if y == np.uint8 and x == np.int8:
            return self.quantised(super().node(operator, inputs, **attributes))
        scale, zero = self.scale_and_zero()
        while self.kind(zero) != x:
            scale, zero = self.scale_and_zero()
        result = super().node(f"QLinear{operator}", [*operands[0], *operands[1], scale, zero],
                              **attributes)
        return self.dequantised(result, scale, zero)

    def kind(self, constant):
        tensor = next(t for t in self.initializers if t.name == constant)
        return numpy_helper.to_array(tensor).dtype

    # --- parts ------------------------------------------------------------------------------------

    def convolution(self):
        if self.shape[1] * 5 ** self.dims <= MOST_FACTORS:
            super().convolution()

    def residual(self):
        if max(self.shape[1], 12) * 5 ** self.dims <= MOST_FACTORS:
            super().residual()

    def transposed_convolution(self):
        if self.shape[1] * 4 ** self.dims <= MOST_FACTORS:
            super().transposed_convolution()

    def activation(self):
        kind = self.rng.choice(["Relu", "LeakyRelu", "Abs", "Neg", "HardSigmoid", "Clip"])
        bounds = [self.constant(0.0), self.constant(2.5)] if kind == "Clip" else []
        self.node(kind, [self.value, *bounds], self.shape)

    def layers(self):
        return [self.dense, self.products]

    def products(self, rows, c):
        """Attention but for its softmax."""
        turned = self.node("Transpose", [rows], perm=[0, 2, 1])
        return self.node("MatMul", [self.node("MatMul", [rows, turned]), rows]), c

    def head(self):
        if math.prod(self.shape[1:]) > MOST_FACTORS:
            self.node("GlobalMaxPool", [self.value], [*self.shape[:2], *[1] * self.dims])
        super().head()

    def parts(self):
        left_out = (self.batch_normalization, self.other_normalization, self.squeeze_excite,
                    self.softmax, self.reduce)
        return {part: often for part, often in super().parts().items() if part not in left_out}


class QuantisedSymbolic(Quantised):
    """Of any number N of examples."""

    def declared(self, shape):
        return ["N", *shape[1:]]


def exact(operator, attributes):
    """An operator whose result has few bits, and its attributes."""
    if operator in ("HardSwish", "Gelu", "Tanh", "LeakyRelu"):
        return "LeakyRelu", {"alpha": 0.25}
    if operator in ("Sigmoid", "HardSigmoid"):
        return "HardSigmoid", {"alpha": 0.25, "beta": 0.5}
    if operator == "GlobalAveragePool":
        return "GlobalMaxPool", {}
    if operator == "AveragePool":
        count = math.prod(attributes["kernel_shape"])
        include = attributes.pop("count_include_pad")
        if count & (count - 1) == 0 and (include or not any(attributes["pads"])):
            return operator, {**attributes, "count_include_pad": include}
        return "MaxPool", attributes
    if operator == "Resize" and attributes["mode"] == "linear":
        return operator, {**attributes, "mode": "nearest", "nearest_mode": "floor"}
    return operator, attributes
