"""Trains a net on MNIST's files in PyTorch with settings as adjoint train logs them: the accuracy
on the test images after each epoch."""
import argparse
import gzip
import json
import math
import pathlib
import struct
import sys

import timing

try:
    import numpy as np
    import torch
except ImportError as e:
    timing.skip(f"PyTorch: {e}")

from torch import nn
from torch.nn import functional

import torch_nets


# ---- data, as io makes batches of them ----


def read_idx(folder, name):
    for path, opener in ((folder / name, open), (folder / (name + ".gz"), gzip.open)):
        if path.exists():
            with opener(path, "rb") as f:
                data = f.read()
            sizes = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
            return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(sizes)
    raise SystemExit(f"{folder}: has no {name}")


def weights_of(have, want):
    """Returns [want, have]: the weight of each of an axis' have pixels in each of the want new ones. Where
    the axis shrinks, a new pixel is the mean of the area under it; where it grows, it is bilinear between
    half-pixel centers."""
    w = np.zeros((want, have), np.float32)
    scale = have / want
    for i in range(want):
        if want < have:
            for k in range(i * have // want, -(-(i + 1) * have // want)):
                w[i, k] = (min(k + 1, (i + 1) * scale) - max(k, i * scale)) / scale
        else:
            at = min(max((i + 0.5) * scale - 0.5, 0), have - 1)
            first = int(at)
            w[i, first] = 1 - (at - first)
            if at > first:
                w[i, first + 1] = at - first
    return torch.from_numpy(w)


class Data:
    """A part; like: the training part, whose mean and deviation it takes."""

    def __init__(self, folder, part, shape, like=None):
        images = read_idx(folder, f"{part}-images-idx3-ubyte")
        labels = read_idx(folder, f"{part}-labels-idx1-ubyte")
        self.images, self.labels = torch.tensor(images), torch.tensor(labels, dtype=torch.int64)
        self.channels = shape[0]
        self.rows = weights_of(images.shape[1], shape[1])
        self.columns = weights_of(images.shape[2], shape[2])
        pixels = None if like else self.resize(self.images)
        self.mean = like.mean if like else float(pixels.mean())
        self.deviation = like.deviation if like else float(pixels.std(correction=0))

    def resize(self, images):
        return torch.cat([self.rows @ x.float() @ self.columns.T for x in images.split(1000)])

    def batch(self, indices, shift=0):
        x = (self.resize(self.images[indices]) - self.mean) / self.deviation
        if shift > 0:
            h, w = x.shape[1:]
            padded = functional.pad(x, [shift] * 4, value=-self.mean / self.deviation)
            at = torch.randint(0, 2 * shift + 1, (len(x), 2)).tolist()
            x = torch.stack([p[i:i + h, j:j + w] for p, (i, j) in zip(padded, at)])
        return x.unsqueeze(1).expand(-1, self.channels, -1, -1), self.labels[indices]


# ---- training ----


def he_normal(module):
    """The initial values of ours."""
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def make_optimizer(net, s):
    name, decay = s["optimizer"], s["weight_decay"]
    if name.startswith("adam"):
        kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
        return kind(net.parameters(), lr=s["lr"], weight_decay=decay)
    return torch.optim.SGD(net.parameters(), lr=s["lr"], weight_decay=decay,
                           momentum=0 if name == "sgd" else 0.9, nesterov=name == "nesterov")


def rate(s, step, total, warmup):
    if step < warmup:
        return s["lr"] * (step + 1) / warmup
    if s["schedule"] == "constant":
        return s["lr"]
    assert s["schedule"] == "cosine", s["schedule"]
    return s["lr"] * (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2


def accuracy(net, data):
    net.eval()
    right = 0
    with torch.no_grad():
        for indices in torch.arange(len(data.labels)).split(100):
            x, y = data.batch(indices)
            right += int((net(x).argmax(1) == y).sum())
    net.train()
    return 100 * right / len(data.labels)


def train(o, s):
    make, shape, _ = torch_nets.NETS[s["model"]]
    folder = pathlib.Path(o.data)
    training = Data(folder, "train", shape)
    test = Data(folder, "t10k", shape, training)
    net = make(classes=int(training.labels.max()) + 1)
    net.apply(he_normal)
    optimizer = make_optimizer(net, s)
    loss_of = nn.CrossEntropyLoss(label_smoothing=s["smoothing"])
    steps = -(-len(training.labels) // s["batch"])
    step, reached = 0, []
    for _ in range(s["epochs"]):
        for indices in torch.randperm(len(training.labels)).split(s["batch"]):
            for group in optimizer.param_groups:
                group["lr"] = rate(s, step, s["epochs"] * steps, int(s["warmup"] * steps))
            x, y = training.batch(indices, s["shift"])
            optimizer.zero_grad()
            loss_of(net(x), y).backward()
            if s["clip"] > 0:
                nn.utils.clip_grad_norm_(net.parameters(), s["clip"])
            optimizer.step()
            step += 1
        reached.append(accuracy(net, test))
        print(f"epoch {len(reached)}: {reached[-1]:.2f} %", file=sys.stderr, flush=True)
    return reached


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--version", action="store_true")
    p.add_argument("--data", help="folder of the four files")
    p.add_argument("--settings", help="the start event of adjoint train --log, as JSON")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    o = p.parse_args()
    if o.version:
        timing.say({"peer": "PyTorch", "version": torch.__version__, "formats": ["contiguous"]})
        return
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    timing.say({"accuracy": train(o, json.loads(o.settings))})


if __name__ == "__main__":
    main()
