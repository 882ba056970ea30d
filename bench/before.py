#!/usr/bin/env python3
"""Is anything slower than before? Steps and inference of the four nets by the tool of an earlier build and by
this one's, in turns: a Markdown table of the medians and minima, and this one's over the earlier one's. What
is slower by more than 3 % in both is timed again, twice as often; the exit status is 1 if it still is. Where
two figures disagree the machine was busy: the minimum is nearer to the truth.

    git worktree add build/earlier COMMIT && ninja -C build/earlier build/adjoint
    bench/before.py build/earlier/build/adjoint

--isa holds both to what a lesser CPU has, and may be repeated. A run takes four minutes for each."""
import argparse
import os
import pathlib
import sys

import nets
from programs import ROOT, Tool, say

LIMIT = 1.03
ISAS = {
    "all": {},
    "avx512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "ADJOINT_MAX_ISA": "avx512"},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ADJOINT_MAX_ISA": "avx2"},
    "sse41": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ADJOINT_MAX_ISA": "base"},
}
PARTS = ("train", "infer", "infer32", "infer1")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("earlier", type=pathlib.Path, help="the tool of the earlier build")
    p.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "adjoint")
    p.add_argument("--isa", action="append", choices=list(ISAS), help="default: all")
    p.add_argument("--net", action="append", choices=list(nets.BATCH), help="only this one")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
    p.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    return p.parse_args()


def cells(o):
    """(net, type, part, options of the tool)"""
    for net in o.net or nets.BATCH:
        for dtype in ("f32", "bf16"):
            for part in PARTS:
                if part != "infer32" or nets.BATCH[net] != 32:
                    yield net, dtype, part, []
            yield net, dtype, "train", ["--math", "fast"]


def in_turns(o, c, turns):
    """What both take: [earlier, now], each with median_ms and min_ms."""
    net, dtype, part, more = c
    both = [[], []]
    for _ in range(turns):
        for of, tool in zip(both, (o.earlier, o.tool)):
            of.append(nets.ours(Tool(tool.resolve()), net, dtype, part, o, *more))
    return [nets.combine(of) for of in both]


def is_slower(earlier, now):
    return all(now[k] > LIMIT * earlier[k] for k in ("median_ms", "min_ms"))


def row(c, earlier, now):
    name = " ".join([c[0], c[1], c[2], *c[3][1:]])
    figures = [f"{earlier[k]:.3f} | {now[k]:.3f} | {now[k] / earlier[k]:.2f}" for k in ("median_ms", "min_ms")]
    return f"| {name} | {figures[0]} | {figures[1]} |"


def compare(o):
    """Prints the table; how many cells are slower."""
    print("| ms | median before | now | ratio | minimum before | now | ratio |\n|---|---|---|---|---|---|---|")
    slower = 0
    for c in cells(o):
        earlier, now = in_turns(o, c, o.turns)
        for figures in (earlier, now):
            if "error" in figures:
                sys.exit(f"before.py: {c[0]} {c[1]} {c[2]}: {figures['error']}")
        if is_slower(earlier, now):
            say(f"{row(c, earlier, now)} once more")
            earlier, now = in_turns(o, c, 2 * o.turns)
        slower += is_slower(earlier, now)
        print(row(c, earlier, now), flush=True)
    return slower


def main():
    o = parse()
    slower = 0
    for isa in o.isa or ["all"]:
        os.environ.update(ISAS[isa])
        print(f"\n{isa}:\n")
        slower += compare(o)
        for name in ISAS[isa]:
            del os.environ[name]
    print(f"\n{slower} slower by more than {100 * LIMIT - 100:.0f} %")
    sys.exit(slower > 0)


if __name__ == "__main__":
    main()
