#!/usr/bin/env python3
"""Kernels of dense convolutions alone, cold: a Markdown table of {1x1, 3x3, 5x5} x stride {1, 2} x
channels {16 .. 256}, to as many, of each direction in f32 and bf16, each with `--math fast`, too: the
fastest of our own kernels and the fastest of oneDNN's in GFLOP/s, and their ratio. A run of everything takes a
quarter of an hour."""
import argparse
import pathlib

import grid
from programs import ROOT, Tool, say

SIZES = {16: 32, 32: 32, 64: 16, 128: 16, 256: 8}
TYPES = {
    "f32": ("f32", "exact"),
    "f32 fast": ("f32", "fast"),
    "bf16": ("bf16", "exact"),
    "bf16 fast": ("bf16", "fast"),
}


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--type", action="append", choices=list(TYPES), help="only this one; may be repeated")
    p.add_argument("--kernel", action="append", type=int, choices=(1, 3, 5), help="the same")
    p.add_argument("--channels", action="append", type=int, choices=list(SIZES), help="the same")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--seconds", type=float, default=0.05, help="of each candidate")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "adjoint")
    return p.parse_args()


def row(c, direction, cells):
    rates = {b: grid.gflop(c) / (1e-3 * cells[b]["ms"]) for b in ("direct", "onednn") if b in cells}
    ratio = f"{rates['direct'] / rates['onednn']:.2f}" if len(rates) == 2 else ""
    name = f"{c['k']}x{c['k']} s{c['stride']} {c['channels']} {direction}"
    numbers = [f"{rates[b]:.0f}" if b in rates else "-" for b in ("direct", "onednn")]
    return f"| {name} | {numbers[0]} | {numbers[1]} | {ratio} | {cells.get('direct', {}).get('impl', '')} |"


def main():
    o = parse()
    tool = Tool(o.tool)
    print(f"Batch {o.batch}, {o.threads} threads.")
    for kind in o.type or TYPES:
        dtype, math = TYPES[kind]
        print(f"\n{kind}\n\n| kernel | ours | oneDNN | ratio | our implementation |\n|---|---|---|---|---|")
        for k in o.kernel or (1, 3, 5):
            for stride in (1, 2):
                for channels in o.channels or SIZES:
                    c = grid.cell("dense", k, stride, 1, 1, channels, SIZES[channels], dtype, o.batch)
                    say(grid.name(c))
                    answer = tool.bench(*grid.arguments(c), "--math", math, "--all", "--backend", "onednn,direct",
                                        "--threads", str(o.threads), "--seconds", str(o.seconds))
                    for direction, cells in grid.summary(answer).items():
                        print(row(c, direction, cells), flush=True)


if __name__ == "__main__":
    main()
