"""Convolutional networks of many kinds for bench/models/survey_networks.py."""

import torch
from torch import nn
from torch.nn import functional

CLASSES = 10


def normalised(inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class Mean(nn.Module):
    def __init__(self, *axes):
        super().__init__()
        self.axes = axes

    def forward(self, x):
        return x.mean(self.axes)


def classifier(channels):
    return nn.Sequential(Mean(2, 3), nn.Linear(channels, CLASSES))


class Residual(nn.Module):
    def __init__(self, branch, shortcut=None):
        super().__init__()
        self.branch, self.shortcut = branch, shortcut or nn.Identity()

    def forward(self, x):
        return self.shortcut(x) + self.branch(x)


def lenet():
    layers = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5),
              nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
              nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES)]
    return nn.Sequential(*layers)


def vgg():
    layers = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(),
                   nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 128), nn.ReLU(),
                         nn.Linear(128, CLASSES))


def cuda_convnet():
    """Overlapping maxima and means of 5×5 layers."""
    layers = [nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2), nn.ReLU(),
              nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2),
              nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(576, CLASSES))


def resnet():
    """ResNet-18 for images of 32×32, from 32 channels on."""
    layers, inputs = [normalised(3, 32)], 32
    for outputs, stride in ((32, 1), (64, 2), (128, 2), (256, 2)):
        for first in (True, False):
            step = stride if first else 1
            branch = nn.Sequential(normalised(inputs, outputs, 3, step),
                                   normalised(outputs, outputs, activation=None))
            change = step > 1 or inputs != outputs
            layers += [Residual(branch, normalised(inputs, outputs, 1, step, activation=None)
                                if change else None), nn.ReLU()]
            inputs = outputs
    return nn.Sequential(*layers, classifier(256))


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        inner = max(8, channels // 4)
        self.squeeze, self.excite = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x):
        means = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.excite(torch.relu(self.squeeze(means))))


def inverted(inputs, outputs, stride, widen, kernel=3, activation=nn.ReLU6, excite=False):
    """MobileNet's block: widen, depthwise, project."""
    hidden = inputs * widen
    layers = [normalised(inputs, hidden, 1, activation=activation)] if widen > 1 else []
    layers += [normalised(hidden, hidden, kernel, stride, hidden, activation)]
    layers += [SqueezeExcite(hidden)] if excite else []
    block = nn.Sequential(*layers, normalised(hidden, outputs, 1, activation=None))
    return Residual(block) if stride == 1 and inputs == outputs else block


def mobilenet_v2():
    blocks = [(16, 8, 1, 1), (8, 16, 2, 6), (16, 16, 1, 6), (16, 24, 2, 6), (24, 24, 1, 6),
              (24, 32, 2, 6), (32, 32, 1, 6)]
    return nn.Sequential(normalised(3, 16, 3, 2, activation=nn.ReLU6),
                         *(inverted(*block) for block in blocks),
                         normalised(32, 128, 1, activation=nn.ReLU6), classifier(128))


def mobilenet_v3():
    swish = nn.Hardswish
    blocks = [(16, 16, 2, 1, 3, nn.ReLU, True), (16, 24, 2, 4, 3, nn.ReLU),
              (24, 24, 1, 4, 3, nn.ReLU), (24, 40, 2, 4, 5, swish, True),
              (40, 40, 1, 6, 5, swish, True)]
    return nn.Sequential(normalised(3, 16, 3, 2, activation=swish),
                         *(inverted(*block) for block in blocks),
                         normalised(40, 240, 1, activation=swish), classifier(240))


def efficientnet():
    blocks = [(16, 16, 1, 1, 3), (16, 24, 2, 6, 3), (24, 24, 1, 6, 3), (24, 40, 2, 6, 5)]
    return nn.Sequential(normalised(3, 16, 3, 2, activation=nn.SiLU),
                         *(inverted(*block, nn.SiLU, True) for block in blocks),
                         normalised(40, 160, 1, activation=nn.SiLU), classifier(160))


class ConvNextBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide = nn.Linear(channels, 4 * channels)
        self.narrow = nn.Linear(4 * channels, channels)

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.narrow(functional.gelu(self.wide(y))).permute(0, 3, 1, 2)


def convnext():
    return nn.Sequential(nn.Conv2d(3, 32, 4, 4), ConvNextBlock(32), ConvNextBlock(32),
                         nn.Conv2d(32, 64, 2, 2), ConvNextBlock(64), ConvNextBlock(64),
                         classifier(64))


def group_norm_resnet():
    def layer(inputs, outputs, stride=1):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                             nn.GroupNorm(8, outputs), nn.ReLU())
    return nn.Sequential(layer(3, 32), Residual(nn.Sequential(layer(32, 32), layer(32, 32))),
                         layer(32, 64, 2), Residual(nn.Sequential(layer(64, 64), layer(64, 64))),
                         classifier(64))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()

        def pair(inputs, outputs):
            return nn.Sequential(normalised(inputs, outputs), normalised(outputs, outputs))
        self.down = nn.ModuleList((pair(1, 16), pair(16, 32), pair(32, 64)))
        self.up = nn.ModuleList((nn.ConvTranspose2d(64, 32, 2, 2),
                                 nn.ConvTranspose2d(32, 16, 2, 2)))
        self.join = nn.ModuleList((pair(64, 32), pair(32, 16)))
        self.last = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(functional.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for up, join, skipped in zip(self.up, self.join, kept[1::-1]):
            x = join(torch.cat([up(x), skipped], 1))
        return self.last(x)


def convolutional_autoencoder():
    return nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(),
                         nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                         nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(),
                         nn.ConvTranspose2d(16, 1, 4, 2, 1))


def resizing_autoencoder():
    """Nearest neighbours and a convolution in place of a transposed one."""
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                         nn.Upsample(scale_factor=2), nn.Conv2d(32, 16, 3, padding=1), nn.ReLU(),
                         nn.Upsample(scale_factor=2), nn.Conv2d(16, 3, 3, padding=1))


class ReflectedResidual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(*(
            layer for last in (nn.ReLU(), nn.Identity())
            for layer in (nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3),
                          nn.InstanceNorm2d(width, affine=True), last)))

    def forward(self, x):
        return x + self.body(x)


def style_transfer():
    """Reflected borders throughout, nearest neighbours on the way up."""
    layers = []
    for inputs, outputs, size, stride, scale in (
            (3, 16, 9, 1, 1), (16, 32, 3, 2, 1), (32, 64, 3, 2, 1), (64, 64, 0, 1, 1),
            (64, 32, 3, 1, 2), (32, 16, 3, 1, 2)):
        if size == 0:
            layers += [ReflectedResidual(inputs), ReflectedResidual(inputs)]
            continue
        layers += [*([nn.Upsample(scale_factor=scale)] if scale > 1 else []),
                   nn.ReflectionPad2d(size // 2), nn.Conv2d(inputs, outputs, size, stride),
                   nn.InstanceNorm2d(outputs, affine=True), nn.ReLU()]
    return nn.Sequential(*layers, nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9))


class ShuffleUnit(nn.Module):
    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(normalised(half, half, 1),
                                    normalised(half, half, 3, 1, half, None),
                                    normalised(half, half, 1))

    def forward(self, x):
        kept, taken = x.chunk(2, 1)
        y = torch.cat([kept, self.branch(taken)], 1)
        channels, height, width = y.shape[1:]
        y = y.reshape(-1, 2, channels // 2, height, width).transpose(1, 2)
        return y.reshape(-1, channels, height, width)


def shufflenet():
    return nn.Sequential(normalised(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1), normalised(24, 48, 1),
                         ShuffleUnit(48), ShuffleUnit(48), normalised(48, 96, 3, 2),
                         ShuffleUnit(96), classifier(96))


class Fire(nn.Module):
    def __init__(self, inputs, squeezed, expanded):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.points = nn.Conv2d(squeezed, expanded, 1)
        self.windows = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x):
        x = torch.relu(self.squeeze(x))
        return torch.relu(torch.cat([self.points(x), self.windows(x)], 1))


def squeezenet():
    return nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2), Fire(32, 16, 32),
                         Fire(64, 16, 32), nn.MaxPool2d(2), Fire(64, 24, 48), Fire(96, 24, 48),
                         classifier(96))


class Dense(nn.Module):
    def __init__(self, inputs, growth=12):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.conv(torch.relu(self.norm(x)))], 1)


def densenet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Dense(16), Dense(28), Dense(40),
                         normalised(52, 26, 1), nn.AvgPool2d(2), Dense(26), Dense(38), Dense(50),
                         classifier(62))


def volumes():
    layers = [nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2),
              nn.Conv3d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(16 * 64, CLASSES))


def superresolution():
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.Tanh(), nn.Conv2d(32, 16, 3, padding=1),
                         nn.Tanh(), nn.Conv2d(16, 4, 3, padding=1), nn.PixelShuffle(2))
