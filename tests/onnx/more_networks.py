#!/usr/bin/env python3
"""more_networks.py PROGRAM [NAME ...] - narrow networks of other kinds than those of networks.py, checked like them."""
import torch
from torch import nn
import torch.nn.functional as F

from networks import Inverted, Residual, conv_bn, main


class Bottleneck(nn.Module):
    def __init__(self, i, w, o, s=1, g=1, squeeze=False):
        super().__init__()
        self.a, self.b, self.c = conv_bn(i, w, 1), conv_bn(w, w, 3, s, g), conv_bn(w, o, 1, act=None)
        self.se = Squeeze(w) if squeeze else nn.Identity()
        self.short = conv_bn(i, o, 1, s, act=None) if s != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.c(self.se(self.b(self.a(x)))) + self.short(x))


class Squeeze(nn.Module):
    """Squeeze and excitation by dense layers."""

    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(c, c // 4), nn.ReLU(), nn.Linear(c // 4, c), nn.Sigmoid())

    def forward(self, x):
        b, c, _, _ = x.size()
        return x * self.f(x.mean((2, 3))).view(b, c, 1, 1)


def head(i, o=10):
    return [nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Dropout(0.0), nn.Linear(i, o)]


def resnet50():
    layers, i = [conv_bn(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1)], 8
    for k, n in enumerate((2, 2, 2)):
        for b in range(n):
            layers.append(Bottleneck(i, 8 << k, 32 << k, 2 if k and not b else 1))
            i = 32 << k
    return nn.Sequential(*layers, *head(i)), (3, 64, 64)


def regnet():
    return nn.Sequential(conv_bn(3, 16, 3, 2), Bottleneck(16, 16, 16, 2, 4, True), Bottleneck(16, 32, 32, 2, 4, True),
                         Bottleneck(32, 32, 32, 1, 4, True), *head(32)), (3, 32, 32)


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        self.branch = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([b(x) for b in self.branch], 1)


def googlenet():
    def inception(i):
        return Branches(conv_bn(i, 8, 1), nn.Sequential(conv_bn(i, 4, 1), conv_bn(4, 8, 3)),
                        nn.Sequential(conv_bn(i, 4, 1), conv_bn(4, 8, 5)),
                        nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), conv_bn(i, 8, 1)))
    return nn.Sequential(conv_bn(3, 16, 7, 2), nn.MaxPool2d(3, 2, ceil_mode=True), inception(16), inception(32),
                         nn.MaxPool2d(2, 2, ceil_mode=True), inception(32), *head(32)), (3, 48, 48)


def inception_v3():
    def line(i, o, *kernels):
        layers = []
        for kh, kw in kernels:
            layers += [nn.Conv2d(i, o, (kh, kw), padding=(kh // 2, kw // 2), bias=False), nn.BatchNorm2d(o, 1e-3), nn.ReLU()]
            i = o
        return nn.Sequential(*layers)
    mixed = [Branches(line(i, 8, (1, 1)), line(i, 8, (1, 1), (1, 7), (7, 1)), line(i, 8, (7, 1), (1, 7), (7, 1), (1, 7)),
                      nn.Sequential(nn.AvgPool2d(3, 1, 1), line(i, 8, (1, 1)))) for i in (8, 32)]
    reduction = Branches(nn.Conv2d(32, 8, 3, 2), nn.MaxPool2d(3, 2))
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, bias=False), *mixed, reduction, *head(40)), (3, 31, 33)


def mnasnet():
    for_all = [Inverted(8, 8, 1, 3, 3, nn.ReLU), Inverted(8, 16, 2, 3, 5, nn.ReLU), Inverted(16, 16, 1, 6, 5, nn.ReLU)]
    net = nn.Sequential(conv_bn(3, 8, 3, 2), *for_all, conv_bn(16, 32, 1), *head(32))
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 0.0003
    return net, (3, 32, 32)


class ShuffleDown(nn.Module):
    """A unit of ShuffleNet v2 with stride 2."""

    def __init__(self, i, o):
        super().__init__()
        self.a = nn.Sequential(conv_bn(i, i, 3, 2, i, None), conv_bn(i, o // 2, 1))
        self.b = nn.Sequential(conv_bn(i, o // 2, 1), conv_bn(o // 2, o // 2, 3, 2, o // 2, None), conv_bn(o // 2, o // 2, 1))

    def forward(self, x):
        y = torch.cat((self.a(x), self.b(x)), 1)
        n, c, h, w = y.shape
        return y.reshape(n, 2, c // 2, h, w).transpose(1, 2).flatten(1, 2)  # the older exporter has no channel_shuffle


def shufflenet_down():
    return nn.Sequential(conv_bn(3, 8, 3, 2), ShuffleDown(8, 16), ShuffleDown(16, 32), *head(32)), (3, 32, 32)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(16, 16 * 4 * 4)
        self.up = nn.Sequential(nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16),
                                nn.ReLU(True), nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1, bias=False),
                                nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.up(self.dense(z).view(-1, 16, 4, 4))


def generator():
    return Generator(), (16,)


class Segmentation(nn.Module):
    """Atrous pyramid, then a bilinear resize to the image."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 16, 3, 2), Residual(16, 16, 2))
        self.branch = nn.ModuleList([nn.Conv2d(16, 8, 3, padding=d, dilation=d) for d in (1, 2, 3)])
        self.pool, self.out = nn.Conv2d(16, 8, 1), nn.Conv2d(32, 5, 1)

    def forward(self, x):
        y = self.stem(x)
        whole = F.interpolate(self.pool(F.adaptive_avg_pool2d(y, 1)), y.shape[-2:], mode="bilinear", align_corners=False)
        y = self.out(torch.cat([F.relu(b(y)) for b in self.branch] + [whole], 1))
        return F.interpolate(y, x.shape[-2:], mode="bilinear", align_corners=False)


def segmentation():
    return Segmentation(), (3, 32, 32)


class Mixer(nn.Module):
    def __init__(self, n, c):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.tokens = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
        self.channels = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(), nn.Linear(2 * c, c))

    def forward(self, x):
        x = x + self.tokens(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.n2(x))


class MixerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.blocks = nn.Conv2d(3, 16, 8, 8), nn.Sequential(Mixer(16, 16), Mixer(16, 16))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


def mixer():
    return MixerNet(), (3, 32, 32)


def se_resnet():
    return nn.Sequential(conv_bn(3, 16), Bottleneck(16, 8, 32, 2, 1, True), Bottleneck(32, 8, 32, 1, 1, True),
                         *head(32)), (3, 16, 16)


def group_norm_net():
    def part(i, o, s):
        return [nn.Conv2d(i, o, 3, s, 1, bias=False), nn.GroupNorm(4, o), nn.SiLU()]
    return nn.Sequential(*part(3, 16, 1), *part(16, 16, 2), *part(16, 32, 2), *head(32)), (3, 32, 32)


class Style(nn.Module):
    def __init__(self):
        super().__init__()
        def part(i, o, k, s, act):
            layers = [nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o, affine=True)]
            return nn.Sequential(*layers, nn.ReLU()) if act else nn.Sequential(*layers)
        self.down = nn.Sequential(part(3, 8, 9, 1, True), part(8, 16, 3, 2, True))
        self.block = nn.Sequential(part(16, 16, 3, 1, True), part(16, 16, 3, 1, False))
        self.up, self.out = part(16, 8, 3, 1, True), nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(8, 3, 9))

    def forward(self, x):
        y = self.down(x)
        y = y + self.block(y)
        return torch.sigmoid(self.out(self.up(F.interpolate(y, scale_factor=2, mode="nearest"))))


def style():
    return Style(), (3, 24, 24)


def super_resolution():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 16, 3, padding=1), nn.PReLU(16),
                         nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3), nn.Hardtanh(-2, 2)), (1, 16, 16)


class Chomp(nn.Module):
    """A causal block that cuts off what padding appends; the weights are normalized."""

    def __init__(self, i, o, d):
        super().__init__()
        self.cut, norm = 2 * d, nn.utils.parametrizations.weight_norm
        self.a, self.b = norm(nn.Conv1d(i, o, 3, padding=2 * d, dilation=d)), norm(nn.Conv1d(o, o, 3, padding=2 * d, dilation=d))
        self.short = nn.Conv1d(i, o, 1) if i != o else None

    def forward(self, x):
        y = F.relu(self.a(x)[:, :, :-self.cut])
        y = F.relu(self.b(y)[:, :, :-self.cut].contiguous())
        return F.relu(y + (x if self.short is None else self.short(x)))


class ChompNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = nn.Sequential(Chomp(2, 8, 1), Chomp(8, 8, 2), Chomp(8, 8, 4)), nn.Linear(8, 5)

    def forward(self, x):
        return F.log_softmax(self.head(self.net(x)[:, :, -1]), 1)


def weight_norm_tcn():
    return ChompNet(), (2, 40)


class Gated(nn.Module):
    def __init__(self, c, d):
        super().__init__()
        self.f, self.o = nn.Conv1d(c, 2 * c, 2, dilation=d), nn.Conv1d(c, 2 * c, 1)
        self.d = d

    def forward(self, x, skip):
        a, b = self.f(F.pad(x, (self.d, 0))).chunk(2, 1)
        r, s = self.o(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
        return x + r, skip + s


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.layers = nn.Conv1d(1, 8, 1), nn.ModuleList([Gated(8, 1 << k) for k in range(4)])
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(8, 8, 1), nn.ReLU(), nn.Conv1d(8, 4, 1))

    def forward(self, x):
        x = self.stem(x)
        skip = torch.zeros_like(x)
        for layer in self.layers:
            x, skip = layer(x, skip)
        return self.out(skip)


def wavenet():
    return WaveNet(), (1, 32)


class Attention(nn.Module):
    """Channel and spatial attention, then one head of self-attention over the pixels."""

    def __init__(self):
        super().__init__()
        self.stem, self.mlp = conv_bn(3, 16, 3, 2), nn.Sequential(nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 16))
        self.spatial, self.qkv, self.out = nn.Conv2d(2, 1, 7, padding=3), nn.Conv2d(16, 24, 1), nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        w = torch.sigmoid(self.mlp(x.mean((2, 3))) + self.mlp(x.amax((2, 3))))
        x = x * w[:, :, None, None]
        maps = torch.cat([x.max(1, keepdim=True)[0], x.mean(1, keepdim=True)], 1)
        x = x * torch.sigmoid(self.spatial(maps))
        q, k, v = self.qkv(x).flatten(2).split(8, 1)
        a = torch.softmax(q.transpose(1, 2) @ k / 8 ** 0.5, -1)
        return self.out((a @ v.transpose(1, 2)).mean(1))


def attention():
    return Attention(), (3, 16, 16)


class CoordConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(5, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.head = nn.Linear(8 * 16, 4)

    def forward(self, x):
        n, _, h, w = x.shape
        ys = (torch.arange(h, dtype=x.dtype) / 8 - 1).view(1, 1, h, 1).expand(n, 1, h, w)
        xs = (torch.arange(w, dtype=x.dtype) / 8 - 1).view(1, 1, 1, w).expand(n, 1, h, w)
        y = F.elu(self.a(torch.cat([x, ys, xs], 1)))
        y = F.adaptive_avg_pool2d(F.softplus(self.b(y)), 4)
        return self.head(torch.flatten(y, 1))


def coord_conv():
    return CoordConv(), (3, 16, 16)


def activations():
    acts = [nn.ELU(0.7), nn.SELU(), nn.CELU(1.3), nn.Softsign(), nn.Mish(), nn.Hardswish(), nn.Hardsigmoid(), nn.GELU("tanh"),
            nn.LogSigmoid(), nn.Softplus(2.0), nn.ReLU6(), nn.LeakyReLU(0.1), nn.PReLU(), nn.Tanhshrink(), nn.Softshrink(0.1)]
    layers = [nn.Conv2d(3, 8, 3)]
    for act in acts:
        layers += [act, nn.Conv2d(8, 8, 1)]
    return nn.Sequential(*layers, nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.Flatten(), nn.Linear(8 * 49, 4)), (3, 16, 16)


class Pyramid(nn.Module):
    """Features of three scales, added after an upsampling with aligned corners."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = conv_bn(3, 8, 3, 2), conv_bn(8, 16, 3, 2), conv_bn(16, 32, 3, 2)
        self.side = nn.ModuleList([nn.Conv2d(k, 8, 1) for k in (8, 16, 32)])
        self.up, self.out = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        c = self.c(b)
        p = self.up(self.side[2](c)) + self.side[1](b)
        p = F.interpolate(p, scale_factor=2.0) + self.side[0](a)
        return self.out(p).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 2)


def pyramid():
    return Pyramid(), (3, 32, 32)


class Block(nn.Module):
    """A block of a vision transformer, of several heads."""

    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.mlp = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(), nn.Linear(2 * c, c))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.n1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = (q @ k.transpose(-2, -1) * 0.3).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, n, c))
        return x + self.mlp(self.n2(x))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.first = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.place, self.blocks = nn.Parameter(torch.randn(1, 17, 16)), nn.Sequential(Block(16, 2), Block(16, 4))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


def transformer():
    return VisionTransformer(), (3, 16, 16)


def pads():
    return nn.Sequential(nn.ZeroPad2d((1, 2, 0, 1)), nn.Conv2d(3, 8, 4, 2), nn.ReLU(), nn.ConstantPad2d((2, 0, 1, 3), 0.5),
                         nn.Conv2d(8, 8, 2, padding="same"), nn.ReLU(), nn.ReplicationPad2d((1, 0, 0, 2)), nn.Conv2d(8, 8, 3),
                         nn.ZeroPad2d((-1, 0, 1, -1)), nn.Conv2d(8, 8, 3, 2), nn.Tanh(), *head(8)), (3, 16, 18)


def pools():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(3, 2, ceil_mode=True), nn.Conv2d(8, 8, 3, padding=1),
                         nn.AvgPool2d(3, 2, 1, ceil_mode=True), nn.Conv2d(8, 8, 3, padding=1), nn.MaxPool2d(2, 1, 1, dilation=2),
                         nn.Conv2d(8, 8, 1), nn.AvgPool2d(2, 2, ceil_mode=True), nn.Flatten(), nn.Linear(128, 5)), (3, 30, 27)


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        y = F.interpolate(F.relu(self.a(x)), size=(20, 27), mode="bilinear", align_corners=True)
        y = F.interpolate(self.b(y), scale_factor=(1.5, 2.0), mode="bilinear", align_corners=False)
        return F.interpolate(self.c(y), size=x.shape[2:], mode="nearest")


def sizes():
    return Sizes(), (3, 12, 14)


def volumes():
    return nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2),
                         nn.Conv3d(4, 8, (1, 3, 3), (1, 2, 1), (0, 1, 1), groups=2), nn.ELU(), nn.AvgPool3d((1, 2, 2)),
                         nn.Flatten(), nn.Linear(48, 5)), (1, 6, 8, 8)


class Picked(nn.Module):
    """AlexNet's normalization, and channels in another order."""

    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Conv2d(3, 8, 3, 2), nn.LocalResponseNorm(5, 1e-3, 0.75, 2.0)
        self.b, self.head = nn.Conv2d(8, 8, 3, groups=2), nn.Sequential(*head(8))

    def forward(self, x):
        return self.head(F.relu(self.b(self.norm(F.relu(self.a(x)))[:, [0, 2, 4, 6, 1, 3, 5, 7]])))


def picked():
    return Picked(), (3, 16, 16)


NETWORKS = [resnet50, regnet, googlenet, inception_v3, mnasnet, shufflenet_down, generator, segmentation, mixer, se_resnet,
            group_norm_net, style, super_resolution, weight_norm_tcn, wavenet, attention, coord_conv, activations, pyramid, transformer,
            pads, pools, sizes, volumes, picked]

if __name__ == "__main__":
    main(NETWORKS, 1e-3)  # at 0.1 values before a ReLU that are nearly 0 part the float32 steps of ResNet-50
