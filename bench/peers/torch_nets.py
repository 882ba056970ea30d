"""Models of ops/nn/models.c in PyTorch, layer by layer."""
from torch import nn
from torch.nn import functional


def conv_bn(inputs, outputs, kernel, stride=1, groups=1):
    """A convolution without bias and its batch norm."""
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


def lenet(classes=10):
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, classes))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(
            *conv_bn(inputs, outputs, 3, stride), nn.ReLU(), *conv_bn(outputs, outputs, 3))
        self.shortcut = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(*conv_bn(inputs, outputs, 1, stride))

    def forward(self, x):
        return functional.relu(self.main(x) + self.shortcut(x))


def resnet20(classes=10):
    layers = [*conv_bn(3, 16, 3), nn.ReLU()]
    inputs = 16
    for stage in range(3):
        for block in range(3):
            outputs = 16 << stage
            layers.append(Residual(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def mobilenet_v1(classes=2):
    layers = [*conv_bn(3, 8, 3, 2), nn.ReLU()]
    inputs = 8
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + 5 * [(128, 1)]
    for outputs, stride in blocks + [(256, 2), (256, 1)]:
        layers += [*conv_bn(inputs, inputs, 3, stride, groups=inputs), nn.ReLU()]
        layers += [*conv_bn(inputs, outputs, 1), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def vgg6(classes=10):
    layers = []
    inputs = 3
    for outputs in (64, 128, 256):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
        layers += [nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        inputs = outputs
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(256 * 4 * 4, 256), nn.ReLU(), nn.Linear(256, classes))


def same_conv(inputs, outputs, size, kernel, stride=1, groups=1):
    """SAME: as many pixels as size / stride, the odd one of the padding at the end."""
    pads = []
    for n, k in zip(reversed(size), reversed(kernel)):
        total = max((-(-n // stride) - 1) * stride + k - n, 0)
        pads += [total // 2, total - total // 2]
    return nn.Sequential(
        nn.ZeroPad2d(pads), nn.Conv2d(inputs, outputs, kernel, stride, groups=groups))


class BiasedResidual(nn.Module):
    """MLPerf Tiny's: convolutions have biases, the shortcut has no batch norm."""

    def __init__(self, inputs, outputs, size, stride):
        super().__init__()
        half = -(-size // stride)
        self.main = nn.Sequential(
            same_conv(inputs, outputs, (size, size), (3, 3), stride), nn.BatchNorm2d(outputs),
            nn.ReLU(), same_conv(outputs, outputs, (half, half), (3, 3)), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x):
        return functional.relu(self.main(x) + self.shortcut(x))


def resnet8(classes=10):
    return nn.Sequential(
        same_conv(3, 16, (32, 32), (3, 3)), nn.BatchNorm2d(16), nn.ReLU(),
        BiasedResidual(16, 16, 32, 1), BiasedResidual(16, 32, 32, 2),
        BiasedResidual(32, 64, 16, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def ds_cnn(classes=12):
    layers = [same_conv(1, 64, (49, 10), (10, 4), 2), nn.BatchNorm2d(64), nn.ReLU(),
              nn.Dropout(0.2)]
    for _ in range(4):
        layers += [same_conv(64, 64, (25, 5), (3, 3), groups=64), nn.BatchNorm2d(64), nn.ReLU(),
                   nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.Dropout(0.4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


# name: how it is made, an image's shape, classes
NETS = {
    "lenet": (lenet, (1, 28, 28), 10),
    "resnet20": (resnet20, (3, 32, 32), 10),
    "mobilenet_v1": (mobilenet_v1, (3, 96, 96), 2),
    "vgg6": (vgg6, (3, 32, 32), 10),
    "resnet8": (resnet8, (3, 32, 32), 10),
    "ds_cnn": (ds_cnn, (1, 49, 10), 12),
}
