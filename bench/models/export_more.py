"""Exports networks of many kinds, to find what the rows of the benchmark do not show.

    python3 export_more.py DIR [NAME]...
    bench/run host DIR/*.onnx --quick --no-peers --side lib

Random weights, batch 1, opset 17. Torchvision's networks come from that package (of the release that
fits torch); the others are small ones of kinds it has none of, defined here.
"""

import argparse
import functools
import pathlib

import torch
from torch import nn
from torch.nn import functional


class UNet(nn.Module):
    """Three levels with skip connections, transposed convolutions upwards."""

    def __init__(self, width=16):
        super().__init__()

        def block(inputs, outputs):
            layers = []
            for channels in (inputs, outputs):
                layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs),
                           nn.ReLU()]
            return nn.Sequential(*layers)

        widths = [width << level for level in range(4)]
        self.down = nn.ModuleList(block(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[2::-1])
        self.join = nn.ModuleList(block(2 * w, w) for w in widths[2::-1])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = [self.down[0](x)]
        for block in self.down[1:]:
            kept.append(block(functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.last(x)


def unit(inputs, outputs, kernel=1, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
                         nn.BatchNorm2d(outputs), nn.SiLU())


class CrossStage(nn.Module):
    """Half of the channels goes through bottlenecks; all that they give is joined."""

    def __init__(self, channels, count=1):
        super().__init__()
        half = channels // 2
        self.first = unit(channels, channels)
        self.inner = nn.ModuleList(nn.Sequential(unit(half, half, 3), unit(half, half, 3))
                                   for _ in range(count))
        self.last = unit(half * (2 + count), channels)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for inner in self.inner:
            parts.append(parts[-1] + inner(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """Cross-stage stages, a pyramid with nearest neighbours upwards, a head per scale."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(unit(3, 16, 3, 2), unit(16, 32, 3, 2), CrossStage(32))
        self.stages = nn.ModuleList(nn.Sequential(unit(c, 2 * c, 3, 2), CrossStage(2 * c, 2))
                                    for c in (32, 64, 128))
        self.join = nn.ModuleList(nn.Sequential(unit(3 * c, c), CrossStage(c)) for c in (128, 64))
        self.heads = nn.ModuleList(nn.Conv2d(c, 144, 1) for c in (256, 128, 64))

    def forward(self, x):
        scales = [self.stem(x)]
        for stage in self.stages:
            scales.append(stage(scales[-1]))
        found = [scales.pop()]
        for join in self.join:
            wide = functional.interpolate(found[-1], scale_factor=2.0)
            found.append(join(torch.cat([wide, scales.pop()], 1)))
        return torch.cat([head(x).flatten(2) for head, x in zip(self.heads, found)], 2)


class Language(nn.Module):
    """A decoder of four blocks over 64 tokens of 1,000."""

    def __init__(self, width=128, heads=4):
        super().__init__()
        self.tokens, self.heads = nn.Embedding(1000, width), heads
        self.places = nn.Parameter(torch.randn(64, width))
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(width), "three": nn.Linear(width, 3 * width),
            "out": nn.Linear(width, width), "norm2": nn.LayerNorm(width),
            "wide": nn.Linear(width, 4 * width), "narrow": nn.Linear(4 * width, width)})
            for _ in range(4))
        self.last = nn.Linear(width, 1000)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places
        count, length, width = x.shape
        later = torch.triu(torch.full((length, length), float("-inf")), 1)
        for b in self.blocks:
            parts = b["three"](b["norm"](x)).view(count, length, 3, self.heads, -1)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + later
            seen = torch.softmax(scores, -1) @ value
            x = x + b["out"](seen.transpose(1, 2).reshape(count, length, width))
            x = x + b["narrow"](functional.gelu(b["wide"](b["norm2"](x))))
        return self.last(x)


class Recurrent(nn.Module):
    def __init__(self, kind, inputs, hidden, **options):
        super().__init__()
        self.layer = kind(inputs, hidden, 2, batch_first=True, **options)

    def forward(self, x):
        return self.layer(x)[0][:, -1]


def images_out():
    """Nine channels become one of three times the resolution."""
    return nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(),
                         nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))


def temporal():
    layers = [nn.Conv1d(1, 64, 7, padding=3), nn.ReLU()]
    for dilation in (1, 2, 4, 8, 16):
        layers += [nn.Conv1d(64, 64, 3, padding=dilation, dilation=dilation), nn.BatchNorm1d(64),
                   nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 5))


def volumes():
    return nn.Sequential(nn.Conv3d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2),
                         nn.Conv3d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2),
                         nn.Conv3d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1),
                         nn.Flatten(), nn.Linear(64, 10))


OWN = {"unet": (UNet, (1, 3, 128, 128)), "detector": (Detector, (1, 3, 256, 256)),
       "language": (Language, (1, 64)), "superresolution": (images_out, (1, 1, 128, 128)),
       "gru": (functools.partial(Recurrent, nn.GRU, 64, 128, bidirectional=True), (1, 50, 64)),
       "lstm2": (functools.partial(Recurrent, nn.LSTM, 40, 96), (1, 98, 40)),
       "temporal": (temporal, (1, 1, 512)), "volumes": (volumes, (1, 3, 16, 32, 32))}
TORCHVISION = {"squeezenet1_1": 224, "shufflenet_v2_x1_0": 224, "mobilenet_v3_small": 224,
               "mnasnet0_5": 224, "efficientnet_b0": 224, "regnet_y_400mf": 224, "googlenet": 224,
               "densenet121": 224, "resnet50": 224, "resnext50_32x4d": 160, "convnext_tiny": 128,
               "inception_v3": 299}


def network(name):
    if name in OWN:
        make, shape = OWN[name]
        return make(), torch.zeros(shape, dtype=torch.int64) if name == "language" \
            else torch.randn(shape)
    from torchvision import models
    options = {"aux_logits": False, "init_weights": False} \
        if name in ("googlenet", "inception_v3") else {}
    size = TORCHVISION[name]
    return models.get_model(name, weights=None, **options), torch.randn(1, 3, size, size)


def main():
    names = [*OWN, *TORCHVISION]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or names:
        torch.manual_seed(1)
        module, x = network(name)
        torch.onnx.export(module.eval(), (x,), arguments.folder / f"{name}.onnx", input_names=["x"],
                          output_names=["y"], opset_version=17, dynamo=False)
        print(arguments.folder / f"{name}.onnx")


if __name__ == "__main__":
    main()
