#!/usr/bin/env python3
"""tool.py ADJOINT - a network of PyTorch goes through the tool: exported by both exporters, trained with frozen layers
and a new last layer, evaluated, and converted back. PyTorch with the trained weights and ONNX Runtime compute the same."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import torch
from torch import nn

from tensors import distance, read_tensors

SIDE, CLASSES = 16, 3
FROZEN = ("conv1.", "bn1.")


class Net(nn.Module):
    """A residual block between a stem and a Linear."""

    def __init__(self, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        h = torch.relu(self.bn1(self.conv1(x)))
        h = torch.relu(self.bn2(self.conv2(h)) + h)
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(h, 1), 1))


def make_net():
    """A net whose parameters and statistics all differ, or the exporter would share them."""
    torch.manual_seed(7)
    net = Net(10).eval()
    with torch.no_grad():
        for p in net.state_dict().values():
            if p.dtype == torch.float32 and p.dim() == 1:
                p.copy_(0.5 + torch.rand(p.shape))
    return net


def export(net, path, is_new):
    x = torch.randn(2, 3, SIDE, SIDE)
    if is_new:
        torch.onnx.export(net, (x,), path, input_names=["x"], output_names=["y"], dynamo=True, optimize=False,
                          dynamic_shapes=({0: torch.export.Dim("batch")},), external_data=False, verbose=False)
    else:
        torch.onnx.export(net, (x,), path, input_names=["x"], output_names=["y"], dynamo=False,
                          dynamic_axes={"x": {0: "batch"}}, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False)


def make_data(path):
    r = np.random.RandomState(5)
    arrays = {}
    for part, n in (("train", 90), ("test", 60)):
        y = np.arange(n) % CLASSES
        x = np.clip(r.normal(90 + 40 * y, 50, (SIDE, SIDE, 3, n)), 0, 255).astype(np.uint8)
        arrays.update({f"x_{part}": x.transpose(3, 0, 1, 2), f"y_{part}": y.astype(np.int64)})
    np.savez(path, **arrays)
    return arrays


def as_state(weights):
    """adjoint's weights in PyTorch's order of axes, [out, in, kh, kw] for filters."""
    return {k: torch.tensor(v.transpose(3, 2, 0, 1) if v.ndim == 4 else v) for k, v in weights.items()}


def card(path):
    raw = path.read_bytes()
    return json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])["__metadata__"]


def check(folder, tool, is_new):
    """Returns a list of what is wrong."""
    net, wrong = make_net(), []
    file, run, data = str(folder / "net.onnx"), folder / "run", str(folder / "data.npz")
    export(net, file, is_new)
    arrays = make_data(data)
    before = {k: v for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}

    tool("convert", file, folder / "w.safetensors")
    read = as_state(read_tensors(folder / "w.safetensors"))
    if set(read) != set(before) or any(not torch.equal(read[k], v) for k, v in before.items()):
        wrong.append("the file's weights are not PyTorch's")

    tool("train", "--model", file, "--data", data, "--head", "new", "--freeze", ",".join(f + "*" for f in FROZEN),
         "--epochs", "2", "--lr", "0.02", "--threads", "1", "--out", run)
    weights = run / "weights.safetensors"
    state = as_state(read_tensors(weights))
    for k, v in before.items():
        if torch.equal(state[k], v) != k.startswith(FROZEN):
            wrong.append(f"{k} is {'not ' if k.startswith(FROZEN) else ''}as before")
    trained = Net(CLASSES).eval()
    trained.load_state_dict(state, strict=False)

    about = card(weights)
    mean, deviation = (torch.tensor(json.loads(about[k])).view(1, 3, 1, 1) for k in ("mean", "deviation"))
    x = (torch.tensor(arrays["x_test"]).permute(0, 3, 1, 2).float() - mean) / deviation
    with torch.no_grad():
        want = trained(x).numpy()
    right = int((want.argmax(1) == arrays["y_test"]).sum())
    said = tool("eval", "--model", file, "--weights", weights, "--data", data)
    found = re.search(r"\((\d+) of (\d+)\)", said)
    if found is None or int(found[1]) != right:
        wrong.append(f"eval counts {found[0] if found else said}, PyTorch {right}")

    tool("convert", weights, folder / "out.onnx", "--model", file)
    session = onnxruntime.InferenceSession(str(folder / "out.onnx"), providers=["CPUExecutionProvider"])
    d = distance(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0], want)
    if not d < 1e-5:
        wrong.append(f"ONNX Runtime: {d:.1e}")
    print("newer" if is_new else "older", "exporter:", "; ".join(wrong) if wrong else
          f"ok, {right} of {len(want)} right, ONNX Runtime {d:.1e}")
    return wrong


def check_defaults(folder, tool):
    """As check, of a file that the exporter writes when it is given a net, an image and a name alone."""
    file, data = str(folder / "net.onnx"), str(folder / "data.npz")
    torch.onnx.export(make_net(), (torch.randn(1, 3, SIDE, SIDE),), file, verbose=False)
    make_data(data)
    said = tool("train", "--model", file, "--data", data, "--head", "new", "--epochs", "1", "--threads", "1", "--out",
                folder / "run")
    is_good = "2 batch norms are folded" in " ".join(said.split())
    print("newer exporter, defaults:", "ok" if is_good else "no note on folded batch norms")
    return [] if is_good else ["no note"]


def main():
    def tool(*words):
        done = subprocess.run([sys.argv[1], *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"adjoint {words[0]} FAILED: {done.stderr}")
        return done.stdout

    failed = 0
    for is_new in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            failed += len(check(pathlib.Path(folder), tool, is_new))
    with tempfile.TemporaryDirectory() as folder:
        failed += len(check_defaults(pathlib.Path(folder), tool))
    sys.exit(failed > 0)


main()
