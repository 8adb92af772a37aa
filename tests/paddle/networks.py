"""Networks of PaddlePaddle: name → a function of nothing that gives a layer, the shape of its
argument without the batch, and, where that is of integers, how many values they have."""

import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.vision import models


class Step(nn.Layer):
    """A function among layers."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Recurrent(nn.Layer):
    def __init__(self, cell, directions=1, **options):
        super().__init__()
        direction = "bidirect" if directions == 2 else "forward"
        self.recurrence = cell(8, 16, direction=direction, **options)
        self.head = nn.Linear(16 * directions, 3)

    def forward(self, x):
        states, _ = self.recurrence(x)
        return self.head(states[:, -1])


def convolutions():
    return nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.Hardswish(),
                         nn.AvgPool2D(2), nn.Conv2D(8, 16, 3, stride=2, groups=8), nn.ReLU6(),
                         nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * 7 * 7, 10), nn.Softmax())


def upwards():
    return nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.Silu(),
                         nn.Conv2DTranspose(8, 4, 4, stride=2, padding=1), nn.PReLU(4),
                         nn.GroupNorm(2, 4), nn.Upsample(size=[64, 64], mode="bilinear"),
                         nn.PixelShuffle(2), nn.Sigmoid())


def transformer():
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", dropout=0.0)
    return nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2),
                         Step(lambda x: x.mean(1)), nn.Linear(32, 2))


def attended():
    similar = Step(lambda x: F.softmax(x @ x.transpose([0, 2, 1])) @ x)
    return nn.Sequential(nn.Linear(8, 32), similar, nn.LayerNorm(32),
                         Step(lambda x: paddle.max(x, axis=1)), nn.Linear(32, 4))


NETWORKS = {
    "convolutions": (convolutions, [3, 32, 32]),
    "upwards": (upwards, [3, 16, 16]),
    "transformer": (transformer, [12], 50),
    "attended": (attended, [6, 8]),
    "lstm": (lambda: Recurrent(nn.LSTM, num_layers=2), [10, 8]),
    "bidirectional": (lambda: Recurrent(nn.LSTM, directions=2), [10, 8]),
    "gru": (lambda: Recurrent(nn.GRU), [10, 8]),
    "mobilenet_v3": (models.mobilenet_v3_small, [3, 64, 64]),
    "shufflenet_v2": (models.shufflenet_v2_x0_25, [3, 64, 64]),
    "squeezenet": (models.squeezenet1_1, [3, 64, 64]),
    "resnet18": (models.resnet18, [3, 64, 64]),
}
