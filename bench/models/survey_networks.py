"""Networks of many kinds that people train, small enough for a device.

    python3 survey_networks.py DIR [NAME]...

Exports them to DIR/survey_NAME.onnx in training mode, batch `N`, opset 17, input `x`, output `y`,
with seeded weights. `bench/run survey` trains them beside PyTorch. Needs torch and onnx.
"""

import argparse
import dataclasses
import pathlib
import warnings
from collections.abc import Callable

import survey_images as images
import torch
from survey_images import CLASSES, Mean, normalised
from torch import nn
from torch.nn import functional


class CausalBlock(nn.Module):
    """Two dilated convolutions of a temporal convolutional network."""

    def __init__(self, inputs, outputs, dilation):
        super().__init__()
        self.first = nn.Conv1d(inputs, outputs, 3, dilation=dilation)
        self.second = nn.Conv1d(outputs, outputs, 3, dilation=dilation)
        self.shortcut = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        self.before = 2 * dilation

    def forward(self, x):
        y = torch.relu(self.first(functional.pad(x, (self.before, 0))))
        y = torch.relu(self.second(functional.pad(y, (self.before, 0))))
        return torch.relu(y + self.shortcut(x))


def temporal():
    return nn.Sequential(CausalBlock(9, 32, 1), CausalBlock(32, 32, 2), CausalBlock(32, 32, 4),
                         CausalBlock(32, 32, 8), Mean(2), nn.Linear(32, 6))


def activity():
    """Human activity from nine channels of motion."""
    layers = [nn.Conv1d(9, 64, 5), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(64, 64, 5), nn.ReLU(),
              nn.MaxPool1d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(64 * 29, 100), nn.ReLU(), nn.Linear(100, 6))


class SeparationBlock(nn.Module):
    """Of Conv-TasNet."""

    def __init__(self, channels, hidden, dilation):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(channels, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden),
            nn.Conv1d(hidden, hidden, 3, padding=dilation, dilation=dilation, groups=hidden),
            nn.Conv1d(hidden, channels, 1))

    def forward(self, x):
        return x + self.layers(x)


def separation():
    return nn.Sequential(nn.Conv1d(1, 64, 16, 8), SeparationBlock(64, 128, 1),
                         SeparationBlock(64, 128, 2), SeparationBlock(64, 128, 4), Mean(2),
                         nn.Linear(64, CLASSES))


class Recurrent(nn.Module):
    def __init__(self, cell, inputs, hidden, layers=1, bidirectional=False):
        super().__init__()
        self.cell = cell(inputs, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.last = nn.Linear(hidden * (2 if bidirectional else 1), CLASSES)

    def forward(self, x):
        return self.last(self.cell(x)[0][:, -1])


class ConvolutionalRecurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(normalised(1, 16), nn.MaxPool2d(2), normalised(16, 32),
                                    nn.MaxPool2d(2))
        self.cell = nn.GRU(320, 64, batch_first=True)
        self.last = nn.Linear(64, CLASSES)

    def forward(self, x):
        y = self.layers(x).permute(0, 3, 1, 2).reshape(-1, 16, 320)
        return self.last(self.cell(y)[0].mean(1))


class Attention(nn.Module):
    """A pre-norm transformer block over `tokens`."""

    def __init__(self, tokens, width, heads, inner):
        super().__init__()
        self.shape = (-1, tokens, heads, width // heads)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        q, k, v = (part.reshape(self.shape).transpose(1, 2)
                   for part in self.project(self.before(x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + self.join(y.reshape(-1, self.shape[1], self.shape[2] * self.shape[3]))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 96, 8, 8)
        self.positions = nn.Parameter(torch.randn(1, 64, 96) * 0.02)
        self.blocks = nn.Sequential(*(Attention(64, 96, 3, 192) for _ in range(3)))
        self.norm, self.last = nn.LayerNorm(96), nn.Linear(96, CLASSES)

    def forward(self, x):
        y = self.patches(x).reshape(-1, 96, 64).transpose(1, 2) + self.positions
        return self.last(self.norm(self.blocks(y)).mean(1))


class Text(nn.Module):
    WORDS = 2000

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.WORDS, 64)
        self.block, self.last = Attention(32, 64, 4, 128), nn.Linear(64, CLASSES)

    def forward(self, x):
        return self.last(self.block(self.words(x)).mean(1))


class MixerBlock(nn.Module):
    def __init__(self, tokens, channels):
        super().__init__()
        self.before, self.between = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(),
                                    nn.Linear(2 * tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(channels, 4 * channels), nn.GELU(),
                                      nn.Linear(4 * channels, channels))

    def forward(self, x):
        x = x + self.tokens(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.between(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, 8)
        self.blocks = nn.Sequential(MixerBlock(64, 64), MixerBlock(64, 64))
        self.last = nn.Linear(64, CLASSES)

    def forward(self, x):
        return self.last(self.blocks(self.patches(x).reshape(-1, 64, 64).transpose(1, 2)).mean(1))


def gelu_perceptron():
    layers = []
    for inputs in (128, 256):
        layers += [nn.Linear(inputs, 256), nn.GELU(), nn.LayerNorm(256)]
    return nn.Sequential(*layers, nn.Linear(256, CLASSES))


def tanh_perceptron():
    return nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                         nn.Linear(64, CLASSES))


def dense_autoencoder():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 16), nn.Linear(16, 256),
                         nn.ReLU(), nn.Linear(256, 784), nn.Sigmoid())


@dataclasses.dataclass(frozen=True)
class Network:
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]  # of one input
    words: int = 0  # the input is numbers below it

    def make(self):
        """The module in training mode, with seeded weights."""
        torch.manual_seed(0)
        return self.build().train()

    def batch(self, examples):
        if self.words:
            return torch.randint(0, self.words, (examples, *self.shape))
        return torch.rand(examples, *self.shape) * 2 - 1


NETWORKS = {
    "lenet": Network(images.lenet, (1, 28, 28)),
    "vgg": Network(images.vgg, (3, 32, 32)),
    "cuda_convnet": Network(images.cuda_convnet, (3, 32, 32)),
    "resnet": Network(images.resnet, (3, 32, 32)),
    "mobilenet_v2": Network(images.mobilenet_v2, (3, 96, 96)),
    "mobilenet_v3": Network(images.mobilenet_v3, (3, 96, 96)),
    "efficientnet": Network(images.efficientnet, (3, 64, 64)),
    "convnext": Network(images.convnext, (3, 64, 64)),
    "group_norm_resnet": Network(images.group_norm_resnet, (3, 32, 32)),
    "unet": Network(images.UNet, (1, 64, 64)),
    "convolutional_autoencoder": Network(images.convolutional_autoencoder, (1, 32, 32)),
    "resizing_autoencoder": Network(images.resizing_autoencoder, (3, 32, 32)),
    "style_transfer": Network(images.style_transfer, (3, 64, 64)),
    "shufflenet": Network(images.shufflenet, (3, 64, 64)),
    "squeezenet": Network(images.squeezenet, (3, 96, 96)),
    "densenet": Network(images.densenet, (3, 32, 32)),
    "volumes": Network(images.volumes, (1, 16, 16, 16)),
    "superresolution": Network(images.superresolution, (1, 32, 32)),
    "temporal": Network(temporal, (9, 128)),
    "activity": Network(activity, (9, 128)),
    "separation": Network(separation, (1, 1024)),
    "lstm": Network(lambda: Recurrent(nn.LSTM, 64, 128), (32, 64)),
    "gru": Network(lambda: Recurrent(nn.GRU, 40, 64, 2), (50, 40)),
    "bidirectional_lstm": Network(lambda: Recurrent(nn.LSTM, 40, 64, 1, True), (50, 40)),
    "convolutional_recurrent": Network(ConvolutionalRecurrent, (1, 40, 64)),
    "vision_transformer": Network(VisionTransformer, (3, 64, 64)),
    "text": Network(Text, (32,), words=Text.WORDS),
    "mixer": Network(Mixer, (3, 64, 64)),
    "gelu_perceptron": Network(gelu_perceptron, (128,)),
    "tanh_perceptron": Network(tanh_perceptron, (32,)),
    "dense_autoencoder": Network(dense_autoencoder, (784,)),
}


def set_statistics(model):
    """Running statistics as after training; those of a fresh model scale nothing."""
    for module in model.modules():
        if getattr(module, "running_mean", None) is not None:
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)


def export(name, path, inference=False):
    network = NETWORKS[name]
    model, examples = network.make(), 8
    options = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False,
               "dynamic_axes": {"x": {0: "N"}, "y": {0: "N"}}}
    if inference:
        set_statistics(model)
        model.eval()
        examples, options = 1, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (network.batch(examples),), path, dynamo=False, opset_version=17,
                          input_names=["x"], output_names=["y"], **options)


def main():
    parser = argparse.ArgumentParser(description="Exports networks that people train.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--inference", action="store_true",
                        help="one example, constant statistics; default: for training")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.names or NETWORKS:
        file = f"{name}.onnx" if given.inference else f"survey_{name}.onnx"
        export(name, given.folder / file, given.inference)


if __name__ == "__main__":
    main()
