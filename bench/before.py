#!/usr/bin/env python3
"""Is anything slower than before? Steps and inference of the four nets by the tool of an earlier build and by
this one's, in turns: a Markdown table of the medians and minima, and this one's over the earlier one's. What
is slower by more than 3 % in both is timed again, twice as often. Where the two disagree the machine was busy.

    git worktree add build/earlier COMMIT && ninja -C build/earlier build/adjoint
    bench/before.py build/earlier/build/adjoint

Exit status: 0, 1 if something is slower still, 2 if there is something that could not be measured. --isa holds
both to what a lesser CPU has; on one that has not even that it changes nothing. It takes four minutes for each."""
import argparse
import os
import pathlib
import sys

import nets
from programs import PARTS, ROOT, Tool, say

LIMIT = 1.03
KINDS = ("median_ms", "min_ms")
ISAS = {
    "all": {},
    "avx512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "ADJOINT_MAX_ISA": "avx512"},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ADJOINT_MAX_ISA": "avx2"},
    "sse41": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ADJOINT_MAX_ISA": "base"},
}


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("earlier", type=pathlib.Path, help="the tool of the earlier build")
    p.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "adjoint")
    p.add_argument("--isa", action="append", choices=list(ISAS), help="default: all; may be repeated")
    p.add_argument("--net", action="append", choices=list(nets.BATCH), help="only this one")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
    p.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    o = p.parse_args()
    for tool in (o.earlier, o.tool):
        if not os.access(tool, os.X_OK):
            p.error(f"{tool} is no program")
    for name in ISAS["avx2"]:
        if name in os.environ:
            p.error(f"{name} is set in the environment (--isa sets it)")
    return o


def cells(o):
    """(net, type, part, options of the tool)"""
    for net in o.net or nets.BATCH:
        for dtype in ("f32", "bf16"):
            for part in PARTS:
                if part != "infer32" or nets.BATCH[net] != 32:
                    yield net, dtype, part, []
            yield net, dtype, "train", ["--math", "fast"]


def in_turns(o, c, turns):
    """The figures of both, the earlier one's first; who begins a turn alternates."""
    net, dtype, part, more = c
    tools = [Tool(o.earlier.resolve()), Tool(o.tool.resolve())]
    both = [[], []]
    for turn in range(turns):
        for i in ((0, 1), (1, 0))[turn % 2]:
            figures = nets.ours(tools[i], net, dtype, part, o, *more)
            if "error" in figures:
                say(f"{' '.join([*c[:3], *more])}: {tools[i].path}: {figures['error']}")
                return None
            both[i].append(figures)
    return [nets.combine(of) for of in both]


def is_slower(figures):
    earlier, now = figures
    return all(now[k] > LIMIT * earlier[k] for k in KINDS)


def row(c, figures):
    """Of the table; figures None: there are none."""
    name = " ".join([*c[:3], *c[3][1:]])
    if figures is None:
        return f"| {name} |" + " - |" * 6
    earlier, now = figures
    numbers = [f"{earlier[k]:.3f} | {now[k]:.3f} | {now[k] / earlier[k]:.2f}" for k in KINDS]
    return f"| {name} | {numbers[0]} | {numbers[1]} |"


def compare(o):
    """Prints the table; how many cells are slower, and how many have no figures."""
    print("| ms | median before | now | ratio | minimum before | now | ratio |\n|---|---|---|---|---|---|---|")
    slower = missing = 0
    for c in cells(o):
        figures = in_turns(o, c, o.turns)
        if figures is not None and is_slower(figures):
            say(f"{row(c, figures)} once more")
            figures = in_turns(o, c, 2 * o.turns) or figures
        missing += figures is None
        slower += figures is not None and is_slower(figures)
        print(row(c, figures), flush=True)
    return slower, missing


def main():
    o = parse()
    slower = missing = 0
    for isa in o.isa or ["all"]:
        os.environ.update(ISAS[isa])
        print(f"\n{isa}:\n")
        counts = compare(o)
        slower, missing = slower + counts[0], missing + counts[1]
        for name in ISAS[isa]:
            del os.environ[name]
    print(f"\n{slower} slower by more than {100 * LIMIT - 100:.0f} % in median and minimum, "
          f"{missing} not measured")
    sys.exit(1 if slower else 2 if missing else 0)


if __name__ == "__main__":
    main()
