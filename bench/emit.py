#!/usr/bin/env python3
"""Inference of one image on one thread by C from one ONNX file: of adjoint emit, of emx-onnx-cgen and of onnx2c, all
compiled with the same flags; beside the library's. Prints a Markdown table of minima in microseconds.

    PYTHON bench/emit.py [--nets lenet5,ds_cnn] [--rounds 5] [--seconds 0.2] [--train] [--json FILE]

PYTHON has numpy and onnx. emx-onnx-cgen is looked for beside it and in PATH, onnx2c in PATH; a peer that is not there is left
out. The outputs must agree. --train: a training step of lenet5 with one image beside PyTorch's, if PYTHON has torch."""
import argparse
import ctypes
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy
import onnx

from programs import ROOT, Tool, machine, say

NETS = ["lenet5", "resnet8", "ds_cnn", "mobilenet_v1"]
FLAGS = ["-O3", "-march=native"]
PATH = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])

# Each peer's C becomes a shared library with one function, which runs until the time is over.
BENCH = """
#include <time.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
double bench(void *x, void *y, double microseconds)
{
    double least = 1e30, end = now() + microseconds, before, after;
    do {
        before = now();
        CALL;
        after = now();
        if (after - before < least)
            least = after - before;
    } while (after < end);
    return least;
}
"""


def run(*arguments, **options):
    return subprocess.run([str(a) for a in arguments], check=True, capture_output=True, **options)


def write_adjoint(o, model, to):
    run(o.tool, "emit", "--model", model, "--out", to)


def write_emx(_, model, to):
    run(shutil.which("emx-onnx-cgen", path=PATH), "compile", "--input-dim", "batch=1", "--large-weight-threshold", 0,
        "--large-temp-threshold", 0, model, to)


def write_onnx2c(_, model, to):
    to.write_bytes(run(shutil.which("onnx2c", path=PATH), "-d", "batch:1", model).stdout)


WRITERS = {
    "adjoint emit": (write_adjoint, "net_predict(x, y)"),
    "emx-onnx-cgen": (write_emx, "model(x, y)"),
    "onnx2c": (write_onnx2c, "entry(x, y)"),
}


def library(o, c_file, call):
    """Compiles the file, and the loop around the call, to a shared library."""
    text = c_file.read_text() + BENCH.replace("CALL", call)
    source, so = c_file.with_suffix(".bench.c"), c_file.with_suffix(".so")
    source.write_text("#define _POSIX_C_SOURCE 200809L\n" + text)
    run(o.cc, "-shared", "-fPIC", "-w", *FLAGS, source, "-o", so, "-lm")
    bench = ctypes.CDLL(str(so)).bench
    bench.restype = ctypes.c_double
    return bench


def pointer(a):
    return a.ctypes.data_as(ctypes.c_void_p)


def with_pools(path):
    """Writes means over height and width as GlobalAveragePool and Flatten: onnx2c's ReduceMean without kept axes does
    not compile."""
    model = onnx.load(path)
    nodes = []
    for n in model.graph.node:
        if n.op_type == "ReduceMean":
            nodes.append(onnx.helper.make_node("GlobalAveragePool", n.input, [n.output[0] + "/pool"]))
            n = onnx.helper.make_node("Flatten", nodes[-1].output, n.output)
        nodes.append(n)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, path)


def contenders(o, folder, name):
    """{who: function that runs for some seconds, and returns microseconds and outputs}."""
    weights, model = folder / "net.safetensors", folder / "net.onnx"
    run(o.tool, "train", "--model", name, "--data", "digits", "--epochs", 1, "--limit", 256, "--out", weights)
    run(o.tool, "convert", weights, model)
    with_pools(model)
    found = {}
    for who, (write, call) in WRITERS.items():
        c_file = folder / (who.replace(" ", "_") + ".c")
        if who != "adjoint emit" and shutil.which(who, path=PATH) is None:
            say(f"skipped: {who} is not in PATH")
            continue
        write(o, model, c_file)
        found[who] = library(o, c_file, call)
    return model, found


def input_size(o, model):
    text = run(o.tool, "emit", "--model", model).stdout.decode()
    sizes = [int(line.split("=")[1].strip(" ,")) for line in text.splitlines() if "PUT_SIZE =" in line]
    return sizes


def measure(o, tool, name):
    """{who: least microseconds}."""
    with tempfile.TemporaryDirectory() as folder:
        model, found = contenders(o, pathlib.Path(folder), name)
        n_in, n_out = input_size(o, model)
        x = numpy.random.default_rng(1).standard_normal(n_in, dtype=numpy.float32)
        row, outputs = {}, {}
        for turn in range(o.rounds):
            say(f"{name}, turn {turn + 1} of {o.rounds}")
            for who, bench in sorted(found.items(), reverse=turn % 2 == 1):
                y = outputs.setdefault(who, numpy.zeros(n_out, numpy.float32))
                us = bench(pointer(x), pointer(y), ctypes.c_double(o.seconds * 1e6))
                row[who] = min(row.get(who, math.inf), us)
            answer = tool.bench("--model", model, "--batch", 1, "--infer", "--threads", 1, "--seconds", o.seconds)
            row["library"] = min(row.get("library", math.inf), 1e3 * answer["min_ms"])
        ours = outputs["adjoint emit"]
        for who, y in outputs.items():
            if not numpy.allclose(y, ours, rtol=1e-4, atol=1e-4 * max(1, abs(ours).max())):
                sys.exit(f"{name}: {who} gives {y}, adjoint {ours}")
    return row


# ---- a training step ----


def train_step(o, folder):
    """The emitted step of lenet5 with one image: a function that returns its least microseconds."""
    c_file = folder / "train.c"
    run(o.tool, "emit", "--model", "lenet5", "--train", "--out", c_file)
    bench = library(o, c_file, "net_train_step(x, &(int32_t){3}, 0.01f, y)")
    x, y = numpy.ones(1024, numpy.float32), numpy.zeros(1, numpy.float32)
    return lambda: bench(pointer(x), pointer(y), ctypes.c_double(o.seconds * 1e6))


def torch_step(o):
    """The same in PyTorch, eager, one thread."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, label = torch.ones(1, 1, 32, 32), torch.tensor([3])

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        return float(loss)

    def measure_step():
        least, end = math.inf, time.perf_counter() + o.seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            step()
            least = min(least, time.perf_counter() - start)
        return 1e6 * least

    return measure_step


def measure_training(o):
    with tempfile.TemporaryDirectory() as folder:
        steps = {"adjoint emit": train_step(o, pathlib.Path(folder)), "PyTorch": torch_step(o)}
        row = {}
        for turn in range(o.rounds):
            for who, call in sorted(steps.items(), reverse=turn % 2 == 1):
                row[who] = min(row.get(who, math.inf), call())
    return row


# ---- report ----


def mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def report(rows):
    peers = [who for who in [*WRITERS][1:] if all(who in row for row in rows.values())]
    columns = ["adjoint emit", *peers, "library"]
    print("| network | " + " | ".join(columns) + " | fastest peer / ours | library / ours |")
    print("|---" * (len(columns) + 3) + "|")
    ratios = []
    for name, row in rows.items():
        ours = row["adjoint emit"]
        fastest = min((row[p] for p in peers), default=math.nan) / ours
        ratios.append((fastest, row["library"] / ours))
        cells = [f"{row[c]:.3g}" for c in columns] + [f"{r:.2f}" for r in ratios[-1]]
        print(f"| {name} | " + " | ".join(cells) + " |")
    means = [f"{mean(r):.2f}" for r in zip(*ratios)]
    print("| geometric mean |" + " |" * len(columns) + " " + " | ".join(means) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tool", default=ROOT / "build" / "adjoint", type=pathlib.Path)
    p.add_argument("--nets", type=lambda s: s.split(","), default=NETS)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.2)
    p.add_argument("--cc", default="gcc")
    p.add_argument("--train", action="store_true")
    p.add_argument("--json", type=pathlib.Path)
    o = p.parse_args()
    tool = Tool(o.tool)
    rows = {name: measure(o, tool, name) for name in o.nets}
    report(rows)
    if o.train:
        rows["lenet5 training step"] = step = measure_training(o)
        print(f"\nTraining step of lenet5, one image: {step['adjoint emit']:.4g}, PyTorch {step['PyTorch']:.4g}")
    if o.json:
        o.json.write_text(json.dumps({"machine": machine(tool), "microseconds": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
