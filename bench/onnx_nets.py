#!/usr/bin/env python3
"""The networks of tests/onnx/networks.py: a training step of the imported file beside PyTorch's, and inference of one
image beside ONNX Runtime's and PyTorch's, in f32. Prints a Markdown table of medians in ms.

    PYTHON bench/onnx_nets.py [--nets resnet18,tcn] [--rounds 3] [--seconds 0.5] [--json FILE]

PYTHON has torch, onnx and onnxruntime. Everything of a network is timed in turns. A step is forward, backward and SGD
with momentum 0.9; the loss is the cross-entropy of [batch, classes], else the mean of squares. Of PyTorch's memory
formats the fastest counts."""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import onnxruntime
import torch
from torch.nn import functional

from programs import ROOT, Tool, machine, say

sys.path[:0] = [str(ROOT / "bench" / "peers"), str(ROOT / "tests" / "onnx")]
import networks
import timing
from torch_step import COMPILED, LAYOUTS

COLUMNS = ["adjoint", "PyTorch", "compiled", "adjoint, 1 image", "ONNX Runtime", "PyTorch, 1 image"]


def loss_of(y):
    if y.dim() == 2:
        return functional.cross_entropy(y, torch.arange(len(y)) * 7 % y.shape[1])
    return y.square().mean()


def torch_net(make, fmt, batch):
    """The network, a batch of images, in a memory format, which rank 3 does not have."""
    torch.manual_seed(1)
    net, shape = make()
    x = torch.randn(batch, *shape)
    memory = LAYOUTS[fmt.removeprefix(COMPILED)]
    if x.dim() == 4:
        net, x = net.to(memory_format=memory), x.contiguous(memory_format=memory)
    return net, x


def torch_train(make, fmt, o):
    net, x = torch_net(make, fmt, o.batch)
    net.train()
    run = torch.compile(net, dynamic=False) if fmt.startswith(COMPILED) else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = loss_of(run(x))
        loss.backward()
        optimizer.step()
        return float(loss)

    return lambda: timing.measure(step, o.seconds)["median_ms"]


def torch_infer(make, fmt, o):
    net, x = torch_net(make, fmt, 1)
    net.eval()

    def infer():
        with torch.no_grad():
            return net(x)

    return lambda: timing.measure(infer, o.seconds)["median_ms"]


def ort_infer(path, make, o):
    _, x = torch_net(make, "contiguous", 1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = o.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    entry = {session.get_inputs()[0].name: x.numpy()}
    return lambda: timing.measure(lambda: session.run(None, entry), o.seconds)["median_ms"]


def ours(tool, path, batch, o, *more):
    def measure():
        answer = tool.bench("--model", path, "--batch", batch, "--seconds", o.seconds, "--threads", o.threads, *more)
        if "error" in answer:
            sys.exit(f"{path.stem}: {answer['error']}")
        return answer["median_ms"]

    return measure


def contenders(tool, make, folder, o):
    """(column, function that measures once) of everything to be timed in turns."""
    for name, batch in (("train", o.batch), ("one", 1)):
        net, x = torch_net(make, "contiguous", batch)
        networks.export(net, x, folder / f"{name}.onnx", "script")
    formats = o.formats if len(make()[1]) == 3 else [f for f in o.formats if "channels_last" not in f]
    found = [("adjoint", ours(tool, folder / "train.onnx", o.batch, o))]
    found += [("compiled" if f.startswith(COMPILED) else "PyTorch", torch_train(make, f, o)) for f in formats]
    found += [("adjoint, 1 image", ours(tool, folder / "one.onnx", 1, o, "--infer")),
              ("ONNX Runtime", ort_infer(folder / "one.onnx", make, o))]
    return found + [("PyTorch, 1 image", torch_infer(make, f, o)) for f in formats if not f.startswith(COMPILED)]


def measure(tool, make, o):
    """{column: ms}: the median of the turns, of the fastest format."""
    with tempfile.TemporaryDirectory() as folder:
        found = contenders(tool, make, pathlib.Path(folder), o)
        turns = [[] for _ in found]
        for turn in range(o.rounds):
            say(f"{make.__name__}, turn {turn + 1} of {o.rounds}")
            for times, (_, call) in zip(turns, found):
                times.append(call())
    row = {}
    for (column, _), times in zip(found, turns):
        row[column] = min(row.get(column, float("inf")), statistics.median(times))
    torch._dynamo.reset()
    return row


def cell(row, column, others):
    """The time; ours in bold where no other is faster."""
    if column not in row:
        return "-"
    text = f"{row[column]:.3g}"
    return f"**{text}**" if others and all(row[column] <= row[c] for c in others if c in row) else text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tool", default=ROOT / "build" / "adjoint", type=pathlib.Path)
    p.add_argument("--nets", type=lambda s: s.split(","), default=[n.__name__ for n in networks.NETWORKS])
    p.add_argument("--formats", type=lambda s: s.split(","),
                   default=["contiguous", "channels_last", COMPILED + "contiguous"])
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--json", type=pathlib.Path)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    tool = Tool(o.tool)
    rows = {make.__name__: measure(tool, make, o) for make in networks.NETWORKS if make.__name__ in o.nets}
    print("| network | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (len(COLUMNS) + 1))
    for name, row in rows.items():
        cells = [cell(row, c, {0: COLUMNS[1:3], 3: COLUMNS[4:]}.get(i)) for i, c in enumerate(COLUMNS)]
        print(f"| {name} | " + " | ".join(cells) + " |")
    if o.json:
        o.json.write_text(json.dumps({"machine": machine(tool), "batch": o.batch, "ms": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
