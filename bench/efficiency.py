#!/usr/bin/env python3
"""The efficiency of kernels on this machine: measures every candidate of a list of convolutions by `adjoint bench
--all`, cold, and prints the tables of backends/efficiency.c with the shares found, in the form of that file. A row
whose kind no candidate is of keeps its shares. Under each table: the untuned regret of the list, with the file's
shares and with those found. ADJOINT_MAX_ISA and ONEDNN_MAX_CPU_ISA measure lesser instruction sets. A type takes a
minute or two; nothing else may run meanwhile."""
import argparse
import math
import pathlib
import re
import statistics

from programs import ROOT, Tool, say

# kernel, inputs, outputs, size, stride
DENSE = [
    (3, 1, 32, 28, 1), (3, 3, 16, 32, 1), (3, 3, 64, 32, 1), (3, 3, 8, 96, 2), (3, 8, 8, 48, 1), (3, 16, 16, 32, 1),
    (3, 32, 32, 16, 1), (3, 64, 64, 16, 1), (3, 128, 128, 8, 1), (3, 128, 128, 16, 1), (3, 256, 256, 8, 1),
    (3, 16, 32, 32, 2), (3, 32, 64, 16, 2), (3, 64, 128, 16, 2), (5, 1, 6, 28, 1), (5, 6, 16, 14, 1),
    (5, 16, 16, 28, 1), (5, 32, 64, 14, 1), (5, 64, 64, 14, 1), (1, 8, 16, 48, 1), (1, 16, 32, 24, 1),
    (1, 32, 32, 24, 1), (1, 32, 64, 12, 1), (1, 64, 128, 6, 1), (1, 128, 128, 14, 1), (1, 256, 256, 14, 1)]
DEPTHWISE = [(3, 4, 48, 1), (3, 8, 48, 1), (3, 16, 48, 2), (3, 32, 24, 1), (3, 64, 24, 2), (3, 128, 12, 1),
             (3, 256, 6, 1), (5, 64, 24, 1), (7, 64, 14, 1)]
GFLOP = 0.3  # of a dense convolution, about
TYPES = {"f32": ("f32", "exact"), "f32 fast": ("f32", "fast"), "bf16": ("bf16", "exact")}

# What backends/efficiency.c and exec/candidate.c have as well.
HERTZ, BYTES_PER_SECOND, CALL_SECONDS = 3e9, 8e9, 2e-6
ISA_FLOATS = {"amx": 16, "avx512": 16, "avx2": 8, "sse41": 4, "base": 4}
DIRECTIONS = {"FORWARD": 1, "INPUT": 2, "FILTER": 4, "ALL_DIRECTIONS": 7}
KINDS = {"POINT": 1, "SMALL": 2, "LARGE": 4, "GROUPED_SMALL": 8, "GROUPED_LARGE": 16, "MATMUL": 32, "PACKED": 64,
         "WINDOW": 6, "DENSE": 7, "GROUPED": 24}
ROW = re.compile(r'    \{"([^"]*)", "([^"]*)", ([A-Z_ |]+), ([A-Z_ |]+), \{([^}]*)\}\},')


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--type", action="append", choices=list(TYPES), help="only this one; may be repeated")
    p.add_argument("--seconds", type=float, default=0.02, help="of each candidate")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "adjoint")
    return p.parse_args()


class Row:
    def __init__(self, match):
        self.family, self.isa, directions, kinds = match.groups()[:4]
        self.words = (directions, kinds)
        self.directions = sum(DIRECTIONS[w] for w in directions.split(" | "))
        self.kinds = sum(KINDS[w] for w in kinds.split(" | "))
        self.share = [float(x) for x in match.group(5).split(",")]

    def takes(self, c):
        return (c.implementation.startswith(self.family) and self.isa in c.isa and self.directions & c.direction
                and self.kinds & c.kind)

    def text(self, share):
        numbers = ", ".join(f"{x:.2f}" if x < 1 else f"{x:.3g}" for x in share)
        return f'    {{"{self.family}", "{self.isa}", {self.words[0]}, {self.words[1]}, {{{numbers}}}}},'


class Candidate:
    """A row of adjoint bench --op --all."""

    def __init__(self, answer, threads, widest):
        op, shapes = answer["op"], answer["shapes"]
        self.backend, self.implementation = answer["backend"], answer["implementation"]
        self.isa = self.implementation.rsplit(":", 1)[-1]
        self.direction = 4 if op.endswith("filter") else 2 if op.endswith("input") else 1
        image, kernel, result = self.roles(shapes)
        grouped = op.startswith("depthwise")
        taps = max(kernel[:2])
        self.kind = (8 if taps <= 3 else 16) if grouped else 1 if taps == 1 else 2 if taps <= 3 else 4
        channels = result[3] if grouped else min(image[3], result[3])
        self.channels = 0 if channels < 16 else 1 if channels < 64 else 2
        self.seconds = 1e-6 * answer["min_us"]
        floats = next((f for name, f in ISA_FLOATS.items() if name in self.isa), widest)
        self.at_peak = 1e3 * answer["gflops"] * answer["us"] / (threads * HERTZ * 4 * floats)
        layouts = [x for x in answer["layouts"].split() if x != "->"]
        element = answer["bytes"] / sum(math.prod(s) for s in shapes)
        self.reorders = sum(2 * element * math.prod(s) / (threads * BYTES_PER_SECOND) + CALL_SECONDS
                            for s, layout in zip(shapes, layouts) if layout != "plain")

    def roles(self, shapes):
        """The image, the filter and the result of the convolution, or their gradients."""
        order = {1: (0, 1, 2), 2: (2, 0, 1), 4: (0, 2, 1)}[self.direction]
        return [shapes[i] for i in order]


def ask(tool, o, kind, op, size, inputs, last, k, stride, batch):
    dtype, math_mode = TYPES[kind]
    answer = tool.bench("--op", op, "--in", f"{batch},{size},{size},{inputs}", "--filter", f"{k},{k},{inputs},{last}",
                        "--attr", f"strides=1,{stride},{stride},1", "--dtype", dtype, "--math", math_mode, "--all",
                        "--backend", "onednn,direct", "--threads", str(o.threads), "--seconds", str(o.seconds))
    rows = [r for r in answer.get("rows", []) if r["min_us"]]
    widest = max((f for r in rows for name, f in ISA_FLOATS.items() if name in r["implementation"]), default=4)
    groups = {}
    for r in rows:
        groups.setdefault(r["op"], []).append(Candidate(r, o.threads, widest))
    return list(groups.values())


def measure(tool, o, kind):
    """Lists of candidates, one list for each convolution and each of its gradients."""
    found = []
    for k, inputs, outputs, size, stride in DENSE:
        if TYPES[kind][1] == "fast" and k == 1:
            continue
        gflop = 2e-9 * k * k * inputs * outputs * (size / stride) ** 2
        batch = max(4, min(64, round(GFLOP / gflop)))
        say(f"{kind} {k}x{k} {inputs}->{outputs} {size}x{size} /{stride}")
        found += ask(tool, o, kind, "conv2d", size, inputs, outputs, k, stride, batch)
    for k, channels, size, stride in DEPTHWISE if TYPES[kind][1] != "fast" else []:
        say(f"{kind} depthwise {k}x{k} {channels} {size}x{size} /{stride}")
        found += ask(tool, o, kind, "depthwise_conv2d_native", size, channels, 1, k, stride, 32)
    return found


def row_of(rows, candidate):
    return next((i for i, r in enumerate(rows) if r.takes(candidate)), None)


def shares(rows, cells):
    """By row: the medians of its candidates by class of channels; the file's where there are none."""
    found = [[[], [], []] for _ in rows]
    for c in (c for cell in cells for c in cell):
        i = row_of(rows, c)
        if i is not None:
            found[i][c.channels].append(c.at_peak / c.seconds)
    return [[statistics.median(x) if x else old for x, old in zip(classes, row.share)]
            for classes, row in zip(found, rows)]


def regret(tables, chosen, cells):
    """The geometric mean of what the estimate takes over the fastest, reorders included."""
    logs = []
    for cell in cells:
        def estimate(c):
            rows = tables[c.backend]
            i = row_of(rows, c)
            share = chosen[c.backend][i][c.channels] if i is not None else 0.5
            return c.at_peak / share + c.reorders
        taken = min(cell, key=estimate)
        fastest = min(c.seconds + c.reorders for c in cell)
        logs.append(math.log((taken.seconds + taken.reorders) / fastest))
    return math.exp(statistics.mean(logs)) if logs else 1


def main():
    o = parse()
    text = (ROOT / "backends" / "efficiency.c").read_text()
    tables = {b: [Row(m) for m in ROW.finditer(re.search(f"{b}_efficiencies.*?;", text, re.DOTALL)[0])]
              for b in ("direct", "onednn")}
    cells = [cell for kind in o.type or TYPES for cell in measure(Tool(o.tool), o, kind)]
    old = {b: [r.share for r in rows] for b, rows in tables.items()}
    new = {b: shares(rows, cells) for b, rows in tables.items()}
    for b, rows in tables.items():
        print(f"const efficiency {b}_efficiencies[] = {{")
        print("\n".join(row.text(share) for row, share in zip(rows, new[b])))
        print("    {0},\n};")
    print(f"regret with the shares of the file {regret(tables, old, cells):.3f}, found {regret(tables, new, cells):.3f}")


if __name__ == "__main__":
    main()
