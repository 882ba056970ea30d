#!/usr/bin/env python3
"""The whole benchmark (ninja bench): the four nets and the grid of convolutions, ours beside the peers
that are installed. Writes bench/results/DATE-CPU-ISA.md; says on stderr what it is at.

What is measured is kept in build/bench/state.json, so that it can be run in parts: a part replaces
its own figures and leaves the others, as long as the sources and the options are the same.
"""
import argparse
import json
import os
import pathlib
import sys

import grid
import nets
import programs
import ranks
import report
from programs import ROOT, say

PARTS = ("nets", "infer", "raw", "regret", "threads", "ranks", "grid")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--only", action="append", choices=PARTS,
                   help="nets: training; infer: inference; raw: the nets' convolutions alone;\n"
                        "regret: the planned ones beside the fastest; threads: 1 against all;\n"
                        "ranks: two and four processes over MPI;\n"
                        "grid: single convolutions. May be repeated")
    p.add_argument("--net", action="append", choices=list(nets.BATCH), help="only this one")
    p.add_argument("--dtype", action="append", choices=["f32", "bf16"], help="only this one")
    p.add_argument("--seconds", type=float, default=float(os.environ.get("BENCH_SECONDS", 3)),
                   help="of each measurement of a net; default: BENCH_SECONDS or 3")
    p.add_argument("--cell-seconds", type=float, default=0.1, help="of a single kernel")
    p.add_argument("--raw-seconds", type=float, default=20,
                   help="of all convolutions of a net: raw, regret")
    p.add_argument("--rounds", type=int, default=3, help="turns of each measurement")
    p.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    p.add_argument("--tune", action="store_true", help="ours with --tune as well")
    p.add_argument("--without", action="append", default=[], metavar="WORD",
                   help="not the peers whose name and format contain it, such as compiled,\n"
                        "which takes minutes to compile. May be repeated")
    p.add_argument("--no-peers", action="store_true", help="ours alone")
    p.add_argument("--full", action="store_true",
                   help="the whole grid instead of 300 cells; goes on where it was stopped")
    p.add_argument("--list", action="store_true", help="prints the cells and ends")
    p.add_argument("--quick", action="store_true",
                   help="a little of everything in seconds, to see that it works; its numbers mean\n"
                        "nothing and go to build/bench/quick.md")
    p.add_argument("--fresh", action="store_true", help="forgets what earlier runs measured")
    p.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "adjoint")
    p.add_argument("--out", type=pathlib.Path, help="instead of bench/results/DATE-CPU-ISA.md")
    o = p.parse_args()
    if o.quick:
        o.seconds, o.cell_seconds, o.rounds = min(o.seconds, 0.02), 0.002, 1
        o.raw_seconds = 0.1
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning is slow on a busy machine
        o.net = o.net or ["lenet"]
    os.environ.setdefault("ADJOINT_TUNE", str(ROOT / "build" / "bench" / "tune"))
    o.parts = o.only or list(PARTS)
    o.net = o.net or list(nets.BATCH)
    o.dtype = o.dtype or ["f32", "bf16"]
    return o


class State:
    """Everything measured, written after each measurement."""

    def __init__(self, o, machine, peers):
        name = "quick-state.json" if o.quick else "state.json"
        self.path = ROOT / "build" / "bench" / name
        key = [machine["commit"], machine["cpu"], machine["onednn"], o.seconds, o.cell_seconds,
               o.raw_seconds, o.rounds, o.threads]
        self.run = {"nets": {}, "raw": {}, "regret": {}, "threads": {}, "ranks": {}, "grid": {},
                    "parts": []}
        if not o.fresh and not o.quick and self.path.exists():
            self._take_over(key)
        self.run.update(key=key, machine=machine, threads_used=o.threads, rounds=o.rounds,
                        seconds=o.seconds, quick=o.quick,
                        peers=[p.name for p in peers])

    def _take_over(self, key):
        try:
            run = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            run = {}
        if run.get("key") == key:
            self.run = run
        else:
            kept = self.path.with_suffix(".before.json")
            self.path.replace(kept)
            say(f"earlier figures are of other sources or options: left out, and kept in {kept}")

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.run), encoding="utf-8")
        partial.replace(self.path)

    def done(self, part):
        if part not in self.run["parts"]:
            self.run["parts"].append(part)
        self.write()


def run_nets(o, tool, peers, state):
    parts = [p for p in programs.PARTS if ("nets" if p == "train" else "infer") in o.parts]
    for net in o.net if parts else []:
        for dtype in o.dtype:
            found = state.run["nets"].setdefault(f"{net} {dtype}", {})
            for label, by_part in nets.measure(tool, peers, net, dtype, parts, o).items():
                found.setdefault(label, {}).update(by_part)
            state.write()
    for part in {"nets", "infer"} & set(o.parts):
        state.done(part)


def run_convolutions(o, tool, state, part, measure):
    """part: raw or regret."""
    for net in o.net:
        for dtype in o.dtype:
            state.run[part][f"{net} {dtype}"] = measure(tool, net, dtype, o)
            state.write()
    state.done(part)


def run_threads(o, tool, state):
    for net in o.net:
        state.run["threads"][net] = nets.threads(tool, net, o)
    state.done("threads")


def run_ranks(o, tool, state):
    if ranks.mpirun() is None:
        say("skipped: ranks: there is no MPI, or no libadjoint_mpi (./setup.sh --mpi, ninja mpi)")
        return
    peers = [] if o.no_peers else programs.find_peers("ddp")
    for net in o.net:
        figures = ranks.measure(tool, peers, net, o)
        figures["prediction"] = ranks.predict(tool, net, figures, o)
        figures["link"] = {"hidden": ranks.hidden(o.tool.parent, net)}
        state.run["ranks"][net] = figures
        state.write()
    state.done("ranks")


def cells_of(o):
    cells = grid.full() if o.full else grid.listed()
    return cells[::40] if o.quick else cells


def run_grid(o, tool, peers, state):
    cells = cells_of(o)
    for i, c in enumerate(cells):
        name = grid.name(c)
        if o.full and name in state.run["grid"]:
            continue
        say(f"cell {i + 1} of {len(cells)}: {name}")
        state.run["grid"][name] = grid.measure(tool, peers, c, o)
        state.write()
    state.done("grid")


def failures(run):
    """Sentences of our own that could not be measured; what is refused by this build is none."""
    found = []
    for key, by_label in run["nets"].items():
        for label, by_part in by_label.items():
            found += [f"{key}, {label}, {part}: {r['error']}" for part, r in by_part.items()
                      if "error" in r and label == report.OURS]
    found += [f"{key}: {r['error']}" for key, r in run["raw"].items() if "error" in r]
    found += [f"{key}, regret, {plan}: {r['error']}" for key, by_plan in run["regret"].items()
              for plan, r in by_plan.items() if "error" in r]
    found += [f"{net}, ranks, {label}: {r['error']}" for net, by_label in run["ranks"].items()
              for label, r in by_label.items() if "error" in r and "rank" in label]
    found += [f"{name}: {r['error']}" for name, r in run["grid"].items() if r["error"]]
    return found


def main():
    o = parse()
    if o.list:
        for c in cells_of(o):
            for direction in grid.DIRECTIONS:
                print(grid.name(c), direction)
        return 0
    if not o.tool.exists():
        say(f"{o.tool} is missing: run ninja first")
        return 1
    tool = programs.Tool(o.tool)
    step_peers = [] if o.no_peers else programs.find_peers("step")
    conv_peers = [] if o.no_peers else programs.find_peers("conv")
    state = State(o, programs.machine(tool), step_peers)
    state.write()  # makes the folder, in which tune files are, too
    run_nets(o, tool, step_peers, state)
    if "raw" in o.parts:
        run_convolutions(o, tool, state, "raw", nets.raw)
    if "regret" in o.parts:
        run_convolutions(o, tool, state, "regret", nets.regret)
    if "threads" in o.parts:
        run_threads(o, tool, state)
    if "ranks" in o.parts:
        run_ranks(o, tool, state)
    if "grid" in o.parts:
        run_grid(o, tool, conv_peers, state)
    for peer in conv_peers:
        peer.close()
    usual = ROOT / "bench" / "results" / f"{programs.results_name(state.run['machine'])}.md"
    out = o.out or (ROOT / "build" / "bench" / "quick.md" if o.quick else usual)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(report.render(state.run), encoding="utf-8")
    for sentence in failures(state.run):
        say(f"failed: {sentence}")
    print(f"{out}: written")
    return 1 if failures(state.run) else 0


if __name__ == "__main__":
    sys.exit(main())
