#!/usr/bin/env python3
"""networks.py PROGRAM [NAME ...] - networks made with torch.nn, exported by both of PyTorch's exporters and run by
tests/onnx/train_case.c: outputs, gradients of every parameter in training mode, and the weights after five steps
of SGD with momentum, compared with PyTorch's; and what adjoint writes of them, run by ONNX Runtime. An `initial` file
holds the values before training, of which PyTorch stores equal tensors once."""
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import onnx
import onnxruntime
import torch
from torch import nn
import torch.nn.functional as F

from tensors import distance, read_tensors, write_tensors

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def conv_bn(i, o, k=3, s=1, g=1, act=nn.ReLU):
    layers = [nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)


class Residual(nn.Module):
    def __init__(self, i, o, s=1):
        super().__init__()
        self.a, self.b = conv_bn(i, o, 3, s), conv_bn(o, o, act=None)
        self.short = conv_bn(i, o, 1, s, act=None) if s != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(self.a(x)) + self.short(x))


def resnet18():
    w, layers, i = 8, [], 8
    for k in range(4):
        for b in range(2):
            layers.append(Residual(i, w << k, 2 if k and not b else 1))
            i = w << k
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10)), (3, 64, 64)


def resnet20():
    layers, i = [conv_bn(3, 16)], 16
    for k in range(3):
        for b in range(3):
            layers.append(Residual(i, 16 << k, 2 if k and not b else 1))
            i = 16 << k
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10)), (3, 32, 32)


def mobilenet_v1():
    layers, i = [conv_bn(3, 8, 3, 2)], 8
    for o, s in [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1)]:
        layers += [conv_bn(i, i, 3, s, i), conv_bn(i, o, 1)]
        i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10)), (3, 32, 32)


class Inverted(nn.Module):
    def __init__(self, i, o, s, t, k=3, act=nn.ReLU6, squeeze=False):
        super().__init__()
        self.expand, self.depth = conv_bn(i, i * t, 1, act=act), conv_bn(i * t, i * t, k, s, i * t, act=act)
        self.se = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(i * t, 4, 1), nn.ReLU(), nn.Conv2d(4, i * t, 1),
                                nn.Hardsigmoid() if act is nn.Hardswish else nn.Sigmoid()) if squeeze else None
        self.project, self.add = conv_bn(i * t, o, 1, act=None), s == 1 and i == o

    def forward(self, x):
        y = self.depth(self.expand(x))
        if self.se is not None:
            y = y * self.se(y)
        y = self.project(y)
        return x + y if self.add else y


def mobilenet_v2():
    return nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.ReLU6), Inverted(8, 8, 1, 2), Inverted(8, 16, 2, 3),
                         Inverted(16, 16, 1, 3), conv_bn(16, 32, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Dropout(0.0), nn.Linear(32, 10)), (3, 32, 32)


def mobilenet_v3():
    h = nn.Hardswish
    return nn.Sequential(conv_bn(3, 8, 3, 2, act=h), Inverted(8, 8, 1, 2, 3, nn.ReLU, True), Inverted(8, 16, 2, 3, 5, h, True),
                         Inverted(16, 16, 1, 3, 5, h, True), conv_bn(16, 32, 1, act=h), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(32, 32), h(), nn.Linear(32, 10)), (3, 32, 32)


def vgg():
    layers, i = [], 3
    for o in (16, 16, 0, 32, 32, 0):
        layers += [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()] if o else [nn.MaxPool2d(2)]
        i = o or i
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 64, 32), nn.ReLU(), nn.Linear(32, 10)), (3, 32, 32)


class Fire(nn.Module):
    def __init__(self, i, s, e):
        super().__init__()
        self.s, self.a, self.b = nn.Conv2d(i, s, 1), nn.Conv2d(s, e, 1), nn.Conv2d(s, e, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.s(x))
        return torch.cat([F.relu(self.a(x)), F.relu(self.b(x))], 1)


def squeezenet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(16, 4, 16),
                         Fire(32, 4, 16), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(32, 8, 16), nn.Conv2d(32, 10, 1),
                         nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (3, 48, 48)


class Shuffle(nn.Module):
    def __init__(self, c):
        super().__init__()
        h = c // 2
        self.branch = nn.Sequential(conv_bn(h, h, 1), conv_bn(h, h, 3, 1, h, None), conv_bn(h, h, 1))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        x = torch.cat([a, self.branch(b)], 1)
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet():
    return nn.Sequential(conv_bn(3, 16, 3, 2), nn.MaxPool2d(3, 2, 1), Shuffle(16), Shuffle(16), conv_bn(16, 32, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), (3, 32, 32)


class Dense(nn.Module):
    def __init__(self, i, k):
        super().__init__()
        self.f = nn.Sequential(nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, 4 * k, 1, bias=False), nn.BatchNorm2d(4 * k),
                               nn.ReLU(), nn.Conv2d(4 * k, k, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.f(x)], 1)


def densenet():
    return nn.Sequential(conv_bn(3, 8), Dense(8, 4), Dense(12, 4), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 1),
                         nn.AvgPool2d(2), Dense(8, 4), Dense(12, 4), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), (3, 16, 16)


def efficientnet():
    s = nn.SiLU
    return nn.Sequential(conv_bn(3, 8, 3, 2, act=s), Inverted(8, 8, 1, 2, 3, s, True), Inverted(8, 16, 2, 4, 5, s, True),
                         Inverted(16, 16, 1, 4, 3, s, True), conv_bn(16, 32, 1, act=s), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(32, 10)), (3, 32, 32)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = conv_bn(3, 8), conv_bn(8, 16), conv_bn(16, 32)
        self.up1, self.d1 = nn.ConvTranspose2d(32, 16, 2, 2), conv_bn(32, 16)
        self.up2, self.d2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), conv_bn(24, 8)
        self.out = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        d = self.d1(torch.cat([self.up1(c), b], 1))
        return self.out(self.d2(torch.cat([self.up2(d), a], 1)))


def unet():
    return UNet(), (3, 32, 32)


class ConvNeXtBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.d, self.n = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, 1e-6)
        self.a, self.b, self.g = nn.Linear(c, 4 * c), nn.Linear(4 * c, c), nn.Parameter(0.5 * torch.ones(c))

    def forward(self, x):
        y = self.n(self.d(x).permute(0, 2, 3, 1))
        y = self.g * self.b(F.gelu(self.a(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, 16, 4, 4), nn.Sequential(ConvNeXtBlock(16), ConvNeXtBlock(16))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x)).mean([-2, -1])))


def convnext():
    return ConvNeXt(), (3, 32, 32)


def cnn_1d():
    return nn.Sequential(nn.Conv1d(2, 16, 7, 2, 3), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 32, 3, padding=1),
                         nn.BatchNorm1d(32), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 5)), (2, 64)


class Causal(nn.Module):
    def __init__(self, i, o, d):
        super().__init__()
        self.p, self.c = 2 * d, nn.Conv1d(i, o, 3, dilation=d)
        self.short = nn.Conv1d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        return F.leaky_relu(self.c(F.pad(x, (self.p, 0))) + self.short(x))


def tcn():
    return nn.Sequential(Causal(2, 8, 1), Causal(8, 8, 2), Causal(8, 8, 4), nn.Conv1d(8, 3, 1)), (2, 48)


NETWORKS = [resnet18, resnet20, mobilenet_v1, mobilenet_v2, mobilenet_v3, vgg, squeezenet, shufflenet, densenet,
            efficientnet, unet, convnext, cnn_1d, tcn]
TRAINED = {"efficientnet", "cnn_1d"}  # exported in training mode, too
OF_ONE_BATCH = {"coord_conv"}  # what adjoint writes has constants of the batch's size


def export(net, x, path, exporter):
    net.train(exporter == "trained")
    names = {"input_names": ["x"], "output_names": ["y"]}
    if exporter == "dynamo":
        torch.onnx.export(net, (x,), str(path), dynamo=True, optimize=False, external_data=False, verbose=False,
                          dynamic_shapes=({0: torch.export.Dim("batch")},), **names)
    else:
        mode = torch.onnx.TrainingMode.TRAINING if exporter == "trained" else torch.onnx.TrainingMode.PRESERVE
        torch.onnx.export(net, (x,), str(path), dynamo=False, opset_version=17, do_constant_folding=False, training=mode,
                          dynamic_axes={"x": {0: "batch"}}, **names)


def saved(program, folder):
    """The largest error of the network that adjoint writes, run by ONNX Runtime with a batch of 3 and of 1."""
    path = folder / "saved.onnx"
    case = [pathlib.Path(program).with_name("save_case"), folder / "net.onnx", "nchw", path, folder / "values"]
    subprocess.run(case, capture_output=True, check=True)
    onnx.checker.check_model(onnx.load(str(path)), full_check=True)
    values = read_tensors(folder / "values")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return max(distance(session.run(None, {"x": values["x"][:n]})[0], values["y"][:n]) for n in (3, 1))


def file_order(a, want):
    """A filter of adjoint's order of axes in PyTorch's."""
    if a.shape != tuple(want.shape) or a.ndim > 2:
        if a.ndim == 4:
            turned = a.transpose(3, 2, 0, 1)
            return turned if turned.shape == tuple(want.shape) else a.transpose(3, 2, 0, 1).reshape(want.shape)
        if a.ndim == 3 and a.shape[::-1] == tuple(want.shape):
            return a.transpose(2, 1, 0)
    return a


class Hardsigmoid(nn.Module):
    """As nn.Hardsigmoid, whose gradient in f64 has 1 / 6 rounded to f32."""

    def forward(self, x):
        return F.relu6(x + 3) / 6


def in_double(net):
    for m in net.modules():
        if isinstance(m, Inverted) and m.se is not None and isinstance(m.se[-1], nn.Hardsigmoid):
            m.se[-1] = Hardsigmoid()
    return net.double()


def draw_vectors(net):
    """Makes statistics, gains and biases different, as after training."""
    for m in net.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            m.running_mean.uniform_(-0.2, 0.2)
            m.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.uniform_(m.bias, -0.2, 0.2)
        if isinstance(m, (nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm2d)):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.uniform_(m.bias, -0.2, 0.2)
        if isinstance(m, ConvNeXtBlock):
            nn.init.uniform_(m.g, 0.5, 1.5)


def try_network(program, make, exporter, dtype, rate):
    torch.manual_seed(1)
    net, shape = make()
    double = dtype == "f64"
    x = torch.randn(4, *shape)
    folder = pathlib.Path(tempfile.mkdtemp())
    if exporter != "initial":
        draw_vectors(net)
    export(net, x, folder / "net.onnx", exporter)
    if double:
        net, x = in_double(net), x.double()
    net.eval()
    with torch.no_grad():
        y = net(x)
    dy = torch.randn(y.shape, dtype=x.dtype)
    net.train()
    params = list(net.parameters())
    names = [n for n, _ in net.named_parameters()]
    grads = torch.autograd.grad((net(x) * dy).sum(), params)
    buffers = {k: v.clone() for k, v in net.named_buffers()}
    torch.manual_seed(1)
    net2, _ = make()  # a net whose running statistics have not moved
    for m in net2.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            m.running_mean.zero_()
    if double:
        net2 = in_double(net2)
    net2.load_state_dict(net.state_dict())
    net2.train()
    sgd = torch.optim.SGD(net2.parameters(), rate, momentum=0.9)
    for _ in range(5):
        sgd.zero_grad()
        (net2(x) * dy / dy.numel()).sum().backward()
        sgd.step()
    write_tensors(folder / "in", {"x": x.numpy(), "dy": dy.numpy()})
    said = subprocess.run([program, folder / "net.onnx", folder / "in", folder / "out", dtype, str(rate)], capture_output=True,
                          text=True, check=False)
    if said.returncode:
        return "FAILED " + said.stdout.strip()[:300] + said.stderr.strip()[:300]
    got = read_tensors(folder / "out")
    result = [distance(got["eval"], y)]
    written = saved(program, folder) if not double and make.__name__ not in OF_ONE_BATCH else 0
    missing = [n for n in names if "grad/" + n not in got]
    least = 1e-3 * max(float(g.abs().max()) for g in grads)
    worst = max((distance(file_order(got["grad/" + n], g), g, least), n) for n, g in zip(names, grads) if "grad/" + n in got)
    after = dict(net2.named_parameters())
    tiny = 1e-6  # a bias before a norm has no gradient but rounding
    weights = max((distance(file_order(got["after/" + n], p.detach()), p.detach(), tiny), n) for n, p in after.items()
                  if "after/" + n in got)
    stats = max([distance(got["stat/" + k], v, tiny) for k, v in buffers.items() if "stat/" + k in got] or [0])
    limits = (1e-8, 1e-8, 1e-8) if double else (1e-4, 1e-3, 1e-3)  # a step may differ where a ReLU's input is nearly 0
    is_good = not missing and written < 1e-5 and all(e < most for e, most in zip((result[0], worst[0], weights[0]), limits))
    return ("" if is_good else "FAILED ") + (f"outputs {result[0]:.1e}  gradients {worst[0]:.1e} ({worst[1]})  five steps {weights[0]:.1e} ({weights[1]})  "
            f"running statistics {stats:.1e}  written {written:.1e}" + (f"  missing {missing[:3]} of {len(names)}" if missing else ""))


def main(networks, rate):
    program, chosen, failed = sys.argv[1], sys.argv[2:], 0
    for make in networks:
        if chosen and make.__name__ not in chosen:
            continue
        for exporter in ("script", "dynamo", "initial") + (("trained",) if make.__name__ in TRAINED else ()):
            for dtype in ("f32", "f64") if exporter != "initial" else ("f64",):
                try:
                    text = try_network(program, make, exporter, dtype, rate)
                except Exception as e:  # the table says so
                    text = f"FAILED {type(e).__name__}: {str(e)[:300]}"
                print(f"{make.__name__:14} {exporter:7} {dtype} {text}", flush=True)
                failed += text.startswith("FAILED")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(NETWORKS, 0.1)
