#!/usr/bin/env python3
"""Trains models with their recipes, ours and PyTorch's programs with the same settings, and prints
the test accuracy of the last epoch: each seed's and the mean.

    bench/recipes.py --data DIR [--models lenet,resnet8] [--seeds 1,2,3] [--epochs 10]

DIR has MNIST's four files. It takes minutes to hours. PyTorch is skipped where no Python has it."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from programs import ROOT, find_peers, say

MODELS = "lenet,resnet8,resnet20,mobilenet_v1,ds_cnn,vgg6"


def ours(o, model, seed):
    """The start event of the run's log, the accuracy of each epoch."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as log:
        subprocess.run(
            [o.tool, "train", "--model", model, "--data", o.data, "--epochs", str(o.epochs),
             "--seed", str(seed), "--threads", str(o.threads), "--log", log.name],
            check=True, stdout=subprocess.DEVNULL)
        events = [json.loads(line) for line in log]
    return events[0], [e["held_out_accuracy"] for e in events if e["event"] == "epoch"]


def torchs(o, peer, settings, seed):
    done = subprocess.run(
        [peer.python, peer.script, "--data", o.data, "--settings", json.dumps(settings), "--seed",
         str(seed), "--threads", str(o.threads)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["accuracy"]


def tell(model, name, reached, seconds):
    last = [a[-1] for a in reached]
    print(f"{model:14} {name:14} {'  '.join(f'{a:6.2f}' for a in last)}  mean "
          f"{sum(last) / len(last):6.2f} %  {seconds / len(last):6.0f} s a run", flush=True)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tool", default=ROOT / "build" / "adjoint", type=pathlib.Path)
    p.add_argument("--data", required=True)
    p.add_argument("--models", default=MODELS, type=lambda s: s.split(","))
    p.add_argument("--seeds", default=[1, 2, 3], type=lambda s: [int(n) for n in s.split(",")])
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--threads", type=int, default=2)
    o = p.parse_args()
    peers = find_peers("train")
    for model in o.models:
        began = time.monotonic()
        runs = [ours(o, model, seed) for seed in o.seeds]
        tell(model, "adjoint", [reached for _, reached in runs], time.monotonic() - began)
        for peer in peers:
            say(f"{model}: {peer.name}")
            began = time.monotonic()
            reached = [torchs(o, peer, runs[0][0], seed) for seed in o.seeds]
            tell(model, peer.name, reached, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
