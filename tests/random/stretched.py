"""Random networks of maps as long as run time tells: images of any height, sounds of any length."""

from networks import Network


class Stretched(Network):
    """The first spatial axis has any extent up to the one it grows with. Windows along it keep it or
    halve it, so that equal extents are equal whatever it is."""

    sides = {1: (5, 70), 2: (5, 24), 3: (5, 10)}

    def __init__(self, seed):
        super().__init__(seed)
        if self.rng.random() < 0.3:
            self.inputs["z"] = self.inputs["x"]
            self.node("Add", ["x", "z"], self.shape)

    # --- the axis ---------------------------------------------------------------------------------

    def sizes(self, shape):
        """For a Reshape, which finds out the extent of the axis."""
        if -1 in shape:
            return super().sizes(shape)
        axis = 3 if len(shape) == self.dims + 3 else 2  # behind groups of channels
        return super().sizes([-1 if i == axis else extent for i, extent in enumerate(shape)])

    def window(self, most=5):
        kernel, strides, dilations, pads, output = super().window(most)
        extent = self.spatial()[0]
        k = self.rng.choice([1, 3, 3, 5, 9] if most > 4 else [1, 3])
        s = self.rng.choice([1, 1, 2]) if extent > 4 else 1
        d = self.rng.choice([1, 1, 2]) if s == 1 and most > 4 else 1
        before = (k - 1) * d // 2
        if s == 1 and most > 4 and self.rng.random() < 0.2:
            before = (k - 1) * d  # causal
        kernel[0], strides[0], dilations[0], output[0] = k, s, d, (extent - 1) // s + 1
        pads[0], pads[self.dims] = before, (k - 1) * d - before
        return kernel, strides, dilations, pads, output

    def resize(self):
        super().resize()
        self.earlier.clear()  # some extents may be equal for this length only

    # --- parts ------------------------------------------------------------------------------------

    def other_normalization(self):
        if self.dims > 1:
            super().other_normalization()

    # --- the whole --------------------------------------------------------------------------------

    def parts(self):
        return {self.convolution: 8, self.activation: 5, self.join: 4, self.batch_normalization: 1,
                self.branches: 2, self.residual: 3, self.pooling: 2, self.prelu: 1,
                self.other_normalization: 1, self.squeeze_excite: 1, self.softmax: 2,
                self.resize: 1, self.shuffle: 1, self.reduce: 1, self.sequence: 4}

    def head(self):
        if self.rng.random() < 0.5:
            self.node("GlobalAveragePool", [self.value], [*self.shape[:2], *[1] * self.dims])
        else:
            self.node("Identity", [self.value], self.shape)

    def declared(self, shape):
        known = shape == self.inputs["x"][1]
        return [*shape[:2], "N" if known else None, *shape[3:]]

    def feed(self, name, numbers, examples=None):
        _, shape = self.inputs[name]
        lengths = [*shape[:2], examples or shape[2], *shape[3:]]
        return numbers.standard_normal(lengths).astype("float32")

    def dims_of(self, feeds):
        return ["--dim", f"N={feeds['x'].shape[2]}"]
