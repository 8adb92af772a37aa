"""The networks whose training is compared with PyTorch, and their initial weights.

Sizes are those of the two digits networks of examples/digits, of MLPerf Tiny's four reference
models (anomaly detection, keyword spotting, image classification, visual wake words), of a
transformer encoder and of a small LSTM classifier. Parameters are named by PyTorch's modules.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

import batches

BAND = 96 * 1024  # elements of one band of models/weights.bin
EXTERNAL = 4096  # tensors of at least so many elements lie in weights.bin
EPSILON = float(np.float32(1e-5))  # of normalisations: the float that the ONNX file holds


class DigitsMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, image):
        return self.fc2(torch.relu(self.fc1(torch.flatten(image, 1))))


class DigitsCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(256, 10)

    def forward(self, image):
        x = torch.relu(self.conv2(torch.relu(self.conv1(image))))
        return self.fc(torch.flatten(functional.max_pool2d(x, 2), 1))


class ConvNorm(nn.Module):
    """Convolution, batch normalisation and, unless told otherwise, ReLU."""

    def __init__(self, inputs, outputs, kernel, stride=1, padding=0, groups=1, relu=True,
                 bias=True):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=bias)
        self.norm = nn.BatchNorm2d(outputs, EPSILON)
        self.relu = relu

    def forward(self, x):
        x = self.norm(self.conv(x))
        return torch.relu(x) if self.relu else x


class KeywordSpotting(nn.Module):
    """DS-CNN: 49 frames of 10 coefficients, four depthwise-separable blocks of 64 channels."""

    def __init__(self):
        super().__init__()
        self.stem = ConvNorm(1, 64, (10, 4), (2, 2), (5, 1))
        blocks = []
        for _ in range(4):
            blocks.append(ConvNorm(64, 64, 3, padding=1, groups=64))
            blocks.append(ConvNorm(64, 64, 1))
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(64, 12)

    def forward(self, x):
        x = functional.avg_pool2d(self.blocks(self.stem(x)), (25, 5))
        return self.fc(torch.flatten(x, 1))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = ConvNorm(inputs, outputs, 3, stride, 1)
        self.second = ConvNorm(outputs, outputs, 3, 1, 1, relu=False)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else None

    def forward(self, x):
        skipped = x if self.shortcut is None else self.shortcut(x)
        return torch.relu(self.second(self.first(x)) + skipped)


class ImageClassification(nn.Module):
    """ResNet8 on 32x32 colour images."""

    def __init__(self):
        super().__init__()
        self.stem = ConvNorm(3, 16, 3, 1, 1)
        self.stages = nn.Sequential(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.avg_pool2d(self.stages(self.stem(x)), 8)
        return self.fc(torch.flatten(x, 1))


class VisualWakeWords(nn.Module):
    """MobileNet v1 of a quarter of the width on 96x96 colour images; convolutions without bias."""

    STAGES = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + [(128, 1)] * 5 + [
        (256, 2), (256, 1)]

    def __init__(self):
        super().__init__()
        layers, width = [ConvNorm(3, 8, 3, 2, 1, bias=False)], 8
        for outputs, stride in self.STAGES:
            layers.append(ConvNorm(width, width, 3, stride, 1, groups=width, bias=False))
            layers.append(ConvNorm(width, outputs, 1, bias=False))
            width = outputs
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(width, 2)

    def forward(self, x):
        x = functional.avg_pool2d(self.layers(x), 3)
        return self.fc(torch.flatten(x, 1))


class AnomalyDetection(nn.Module):
    """Autoencoder 640-128-128-128-128-8-128-128-128-128-640."""

    WIDTHS = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]

    def __init__(self):
        super().__init__()
        pairs = list(zip(self.WIDTHS, self.WIDTHS[1:]))
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.norm = nn.ModuleList(nn.BatchNorm1d(b, EPSILON) for _, b in pairs)
        self.out = nn.Linear(128, 640)

    def forward(self, x):
        for dense, norm in zip(self.dense, self.norm):
            x = torch.relu(norm(dense(x)))
        return self.out(x)


class EncoderLayer(nn.Module):
    """Attention of 4 heads, then two dense layers with GELU; layer normalisation after each sum."""

    HEADS = 4

    def __init__(self, tokens, width, inner):
        super().__init__()
        self.tokens, self.width = tokens, width
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, EPSILON)
        self.expand = nn.Linear(width, inner)
        self.shrink = nn.Linear(inner, width)
        self.norm2 = nn.LayerNorm(width, EPSILON)

    def split(self, x):
        """[N, tokens, width] to [N, heads, tokens, width / heads]; leaves N to the exporter."""
        return x.reshape(-1, self.tokens, self.HEADS, self.width // self.HEADS).transpose(1, 2)

    def forward(self, x):
        heads = functional.scaled_dot_product_attention(
            self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x)))
        joined = heads.transpose(1, 2).reshape(-1, self.tokens, self.width)
        x = self.norm1(x + self.out(joined))
        return self.norm2(x + self.shrink(functional.gelu(self.expand(x))))


class Encoder(nn.Module):
    """Four encoder layers on 64 tokens of width 128, their mean, ten classes. No dropout."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[EncoderLayer(64, 128, 512) for _ in range(4)])
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc(self.layers(x).mean(1))


class LstmClassifier(nn.Module):
    """8 steps of 12 features, 16 hidden units; the last step's output gives 5 classes."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 16, batch_first=True)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


@dataclasses.dataclass(frozen=True)
class Network:
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]  # of one input
    classes: int | None  # None: the target is the input, the loss MSE; else cross-entropy
    trajectory: bool
    input: str = "input"
    output: str = "logits"


NETWORKS = {
    "digits_mlp": Network(DigitsMlp, (1, 8, 8), 10, True, "image"),
    "digits_cnn": Network(DigitsCnn, (1, 8, 8), 10, True, "image"),
    "kws": Network(KeywordSpotting, (1, 49, 10), 12, True),
    "ic": Network(ImageClassification, (3, 32, 32), 10, True),
    "ad": Network(AnomalyDetection, (640,), None, True, output="output"),
    "enc": Network(Encoder, (64, 128), 10, True),
    "vww": Network(VisualWakeWords, (3, 96, 96), 2, False),
    "lstm": Network(LstmClassifier, (8, 12), 5, False),
}


def band(exponent):
    """float32[BAND] in [-2^-exponent, 2^-exponent): what large weights are windows of."""
    values = batches.uniform(f"weights/{exponent}", 0, BAND) * 2.0**-exponent
    return values.astype(np.float32)


BANDS = (3, 4)  # exponents of the bands in weights.bin, one after the other


def window(index, elements):
    """First element, in a band, of the index-th large tensor of a network."""
    return 7 * index % ((BAND - elements) // 1024 + 1) * 1024


def fan_in(shape):
    return int(np.prod(shape[1:]))


def exponent_of(fan):
    """2^-exponent is the power of two in [1 / sqrt(fan), 2 / sqrt(fan))."""
    return math.floor(math.log2(fan) / 2)


def initial_weights(name):
    """The network's parameters before training: {parameter: (float32 array, offset or None)}.

    offset is the first byte in weights.bin of a large tensor.
    """
    module = NETWORKS[name].make()
    if name.startswith("digits_"):
        graph = onnx.load(batches.EXAMPLES / f"{name}_untrained.onnx").graph
        stored = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        return {key: (stored[key], None) for key, _ in module.named_parameters()}
    shapes = {key: tuple(value.shape) for key, value in module.named_parameters()}
    result, large = {}, 0
    for key, shape in shapes.items():
        elements = int(np.prod(shape))
        owner, _, kind = key.rpartition(".")
        own_weight = shapes.get(f"{owner}.weight")
        if elements >= EXTERNAL:
            exponent = exponent_of(fan_in(shape))
            start, large = window(large, elements), large + 1
            values = band(exponent)[start : start + elements]
            offset = 4 * (BANDS.index(exponent) * BAND + start)
            result[key] = (values.reshape(shape), offset)
            continue
        values = batches.uniform(f"{name}/{key}", 0, elements).reshape(shape)
        if own_weight is not None and len(own_weight) == 1:  # of a normalisation
            values = values / 4 + (1 if kind == "weight" else 0)
        else:
            fan = fan_in(own_weight) if own_weight else 16  # LSTM: its hidden size
            values = values * 2.0 ** -exponent_of(fan)
        result[key] = (values.astype(np.float32), None)
    return result


def make(name, dtype):
    """The network with its initial weights, in training mode."""
    module = NETWORKS[name].make().to(dtype).train()
    with torch.no_grad():
        weights = initial_weights(name)
        for key, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(weights[key][0].copy()))
    return module


def loss_of(name, module, inputs, target):
    """The training loss of a batch given as numpy arrays, in the module's precision."""
    dtype = next(module.parameters()).dtype
    result = module(torch.from_numpy(inputs).to(dtype))
    if NETWORKS[name].classes is None:
        return functional.mse_loss(result, torch.from_numpy(target).to(dtype))
    return functional.cross_entropy(result, torch.from_numpy(target))


def batch(name, step):
    network = NETWORKS[name]
    return batches.batch(name, network.shape, network.classes, step)
