"""Exports the networks that the host benchmark adds to the reference models, with seeded weights.

    python3 export_peers.py DIR [NAME]...

Writes mobilenetv2.onnx and resnet18.onnx (224×224), enc.onnx (a transformer encoder), lstm.onnx and
mlp.onnx into a folder of your choice: they are too big for the repository, and speed does not
depend on what weights are. Needs only torch (with onnx, which its exporter calls). Opset 17, input
`x`, output `y`, batch 1, batch normalisation folded as torch does it for inference.
"""

import argparse
import pathlib

import torch
from torch import nn


def convolution(inputs, outputs, kernel, stride=1, groups=1, activation=None):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class InvertedResidual(nn.Module):
    """Expansion to `widen` times the channels, a depthwise 3×3 kernel, projection."""

    def __init__(self, inputs, outputs, stride, widen):
        super().__init__()
        hidden = inputs * widen
        layers = [convolution(inputs, hidden, 1, activation=nn.ReLU6)] if widen > 1 else []
        layers += [convolution(hidden, hidden, 3, stride, hidden, nn.ReLU6),
                   convolution(hidden, outputs, 1)]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.residual else y


def mobilenetv2():
    """Table 2 of arXiv 1801.04381 at width 1.0."""
    layers, channels = [convolution(3, 32, 3, 2, activation=nn.ReLU6)], 32
    for widen, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                          (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                          (6, 320, 1, 1)):
        for i in range(count):
            layers.append(InvertedResidual(channels, outputs, stride if i == 0 else 1, widen))
            channels = outputs
    layers += [convolution(channels, 1280, 1, activation=nn.ReLU6), nn.AdaptiveAvgPool2d(1),
               nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers), (1, 3, 224, 224)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = convolution(inputs, outputs, 3, stride, activation=nn.ReLU)
        self.second = convolution(outputs, outputs, 3)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + self.shortcut(x))


def resnet18():
    """Table 1 of arXiv 1512.03385, 18 layers."""
    layers, channels = [convolution(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [BasicBlock(channels, outputs, stride), BasicBlock(outputs, outputs, 1)]
        channels = outputs
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return nn.Sequential(*layers), (1, 3, 224, 224)


class EncoderLayer(nn.Module):
    """Post-normalised attention and feed-forward layers, written out so that the export is plain."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def split(self, x):
        batch, tokens, _ = x.shape
        return x.reshape(batch, tokens, self.heads, self.size).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.softmax(q @ k.transpose(-1, -2) * self.size ** -0.5, -1)
        x = self.first(x + self.out((scores @ v).transpose(1, 2).reshape(x.shape)))
        return self.second(x + self.down(nn.functional.gelu(self.up(x))))


def enc():
    return nn.Sequential(*(EncoderLayer(128, 4, 512) for _ in range(4))), (1, 64, 128)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 128)

    def forward(self, x):
        return self.lstm(x)[0]


def lstm():
    return Recurrent(), (32, 1, 64)


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (1, 784)


MODELS = {make.__name__: make for make in (mobilenetv2, resnet18, enc, lstm, mlp)}


def settle(model):
    """Statistics other than 0 and 1, so that folding batch normalisation changes something."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.8, 1.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or MODELS:
        if name not in MODELS:
            parser.error(f"no model {name}; there are {', '.join(MODELS)}")
        torch.manual_seed(1)
        model, shape = MODELS[name]()
        settle(model)
        torch.onnx.export(model.eval(), (torch.randn(shape),), options.folder / f"{name}.onnx",
                          input_names=["x"], output_names=["y"], opset_version=17, dynamo=False)


if __name__ == "__main__":
    main()
