"""The four networks of the benchmark in PyTorch, layer by layer those of ops/nn/models*.c."""
from torch import nn
from torch.nn import functional


def conv_bn(inputs, outputs, kernel, stride=1, groups=1):
    """A convolution without bias and its batch norm."""
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


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


def resnet20():
    layers = [*conv_bn(3, 16, 3), nn.ReLU()]
    inputs = 16
    for stage in range(3):
        for block in range(3):
            outputs = 16 << stage
            layers.append(Residual(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def mobilenet_v1():
    layers = [*conv_bn(3, 8, 3, 2), nn.ReLU()]
    inputs = 8
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + 5 * [(128, 1)]
    for outputs, stride in blocks + [(256, 2), (256, 1)]:
        layers += [*conv_bn(inputs, inputs, 3, stride, groups=inputs), nn.ReLU()]
        layers += [*conv_bn(inputs, outputs, 1), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 2))


def vgg6():
    layers = []
    inputs = 3
    for outputs in (64, 128, 256):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
        layers += [nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        inputs = outputs
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(256 * 4 * 4, 256), nn.ReLU(), nn.Linear(256, 10))


# name: how it is made, an image's shape, classes
NETS = {
    "lenet": (lenet, (1, 28, 28), 10),
    "resnet20": (resnet20, (3, 32, 32), 10),
    "mobilenet_v1": (mobilenet_v1, (3, 96, 96), 2),
    "vgg6": (vgg6, (3, 32, 32), 10),
}
